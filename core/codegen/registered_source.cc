#include "core/codegen/registered_source.h"

#include "core/base/text/text.h"

namespace fusion {
namespace {

// kernel_abi.inc is the text of core/base/kernel_abi.h as a string literal (core/CMakeLists.txt).
constexpr std::string_view kRegisteredAbi =
#include "kernel_abi.inc"
    ;

}  // namespace

std::string RegisteredSource(std::string_view source, const DeviceSpec& device,
                             std::string_view symbol,
                             const std::vector<std::pair<std::string, std::string>>& constants) {
  std::string out(kRegisteredAbi);
  StrAppend(&out, StrCat("#define FUSION_KERNEL ", symbol, "\n#define FUSION_KERNEL_DESCRIPTOR ",
                         symbol, "_descriptor\n#define FUSION_KERNEL_ISA \"", device.arch,
                         "\"\n#define FUSION_KERNEL_VECTOR_BYTES ", device.vector_bytes, "\n"));
  // Declared here, so that plain C defines them as what a loader looks for.
  StrAppend(&out,
            "extern \"C\" int FUSION_KERNEL(const FusionKernelArgs* args, int phase, FusionInt64 "
            "task_begin, FusionInt64 task_end, int worker);\n"
            "extern \"C\" const FusionKernelDescriptor FUSION_KERNEL_DESCRIPTOR;\n");
  for (const auto& [name, literal] : constants) {
    StrAppend(&out, StrCat("#define ", name, " (", literal, ")\n"));
  }
  // Messages of the compiler name the lines of the file.
  return StrCat(out, "#line 1 \"kernel.c\"\n", source, "\n");
}

}  // namespace fusion
