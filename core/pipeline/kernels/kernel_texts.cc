#include "core/pipeline/kernels/kernel_texts.h"

#include <numeric>

#include "core/schedule/lower/reference.h"

namespace fusion {
namespace {

absl::StatusOr<std::string> SmgText(std::string_view reference) {
  ASSIGN_OR_RETURN(const KernelReference parsed, ParseReference(reference));
  std::vector<LoopId> loops(parsed.program.ops.size());
  std::iota(loops.begin(), loops.end(), LoopId{0});
  ASSIGN_OR_RETURN(const Smg smg, BuildSmg(parsed.program, loops));
  return ToString(smg);
}

}  // namespace

KernelTexts TextsOf(const KernelArtifact& kernel) {
  KernelTexts texts{.key = kernel.key,
                    .content = kernel.content,
                    .source = kernel.source,
                    .schedule = kernel.schedule,
                    .reference = kernel.reference,
                    .smg = "",
                    .compiler = kernel.compiler};
  if (kernel.reference.empty()) return texts;
  absl::StatusOr<std::string> smg = SmgText(kernel.reference);
  texts.smg = smg.ok() ? *std::move(smg) : StrCat("# ", Message(smg.status()), "\n");
  return texts;
}

}  // namespace fusion
