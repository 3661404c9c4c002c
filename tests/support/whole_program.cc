#include "tests/support/whole_program.h"

#include <algorithm>

#include "core/device/host_isa.h"
#include "core/graph/halves.h"

namespace fusion {

DeviceSpec DeviceNamed(std::string_view name, int threads) {
  auto specs = BuiltInSpecs();
  FUSION_CHECK(specs.ok(), StrCat("built-in specs: ", Message(specs.status())));
  auto spec = ResolveTarget(*specs, {.name = std::string(name), .threads = threads}, nullptr);
  FUSION_CHECK(spec.ok(), StrCat("a built-in spec: ", Message(spec.status())));
  return *spec;
}

std::vector<std::string> RunnableDevices() {
  std::vector<std::string> names;
  for (Isa isa : kIsas) {
    // But for products of bf16 (tests/conformance/low_precision_kernels_test.cc) as avx512.
    if (HostRuns(isa) && isa != Isa::kAvx512Bf16) names.push_back(StrCat("generic-", IsaName(isa)));
  }
  return names;
}

absl::StatusOr<WholeProgram> AsOneGroup(const Program& program) {
  WholeProgram whole;
  std::vector<LoopId> loops;
  for (size_t i = 0; i < program.ops.size(); ++i) loops.push_back(static_cast<LoopId>(i));
  std::vector<ValueId> values;
  whole.program = ExtractProgram(program, loops, &values);
  std::vector<bool> outside;
  std::vector<bool> constant;
  for (ValueId v : values) {
    outside.push_back(std::find(program.outputs.begin(), program.outputs.end(), v) !=
                      program.outputs.end());
    constant.push_back(program.value(v).kind == TensorKind::kWeight);
  }
  loops = KeepWide(outside, &whole.program);
  ASSIGN_OR_RETURN(whole.group, MakeGroup(whole.program, loops, outside, constant));
  return whole;
}

}  // namespace fusion
