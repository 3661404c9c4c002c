#pragma once

#include <string>

#include "core/base/files/file.h"

namespace fusion {

/// A complete kernel source: y[i] = x[i] * `factor`, with `extra` in front of the entry point and
/// `tasks_body` as the body of the function that counts tasks.
inline std::string TestKernelText(const std::string& symbol, const std::string& isa,
                                  const std::string& extra = "",
                                  const std::string& tasks_body = "return 4;", int factor = 2) {
  return StrCat(
      ReadFile(FUSION_KERNEL_ABI_H, 1 << 20).value(), "\n", extra,
      "\nstatic FusionInt64 Tasks(int phase, const FusionInt64* dims) { (void)phase; "
      "(void)dims; ",
      tasks_body, " }\nextern \"C\" int ", symbol,
      "(const FusionKernelArgs* args, int phase, FusionInt64 begin, FusionInt64 end, int) {\n"
      "  if (phase != 0) return FUSION_KERNEL_BAD_PHASE;\n"
      "  const float* x = (const float*)args->tensors[0].data;\n"
      "  float* y = (float*)args->tensors[1].data;\n"
      "  for (FusionInt64 i = begin * 64; i < end * 64; ++i) y[i] = x[i] * ",
      factor,
      ";\n  return FUSION_KERNEL_OK;\n}\n"
      "extern \"C\" const FusionKernelDescriptor ",
      symbol, "_descriptor = {sizeof(FusionKernelDescriptor), FUSION_KERNEL_ABI_VERSION, \"", isa,
      "\", 2, 0, 1, Tasks, 0, 0, 64};\n");
}

}  // namespace fusion
