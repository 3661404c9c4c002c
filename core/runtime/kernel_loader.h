#pragma once

#include "core/runtime/loaded_kernel.h"

namespace fusion {

/// What runtime/<backend>/ gives to LoadKernel: `Make<Backend>Loader()` of core/CMakeLists.txt's
/// list of backends.
struct KernelLoader {
  std::string_view backend;  // Backend::name() of the code generator
  absl::StatusOr<std::shared_ptr<const LoadedKernel>> (*load)(std::string_view shared_object,
                                                              std::string_view symbol);
};

}  // namespace fusion
