#pragma once

#include "core/runtime/loaded_kernel.h"

namespace fusion {

/// The entry of a backend in LoadKernel. core/runtime/<backend>/ defines `Make<Backend>Loader()`,
/// which returns it, for each backend listed in core/CMakeLists.txt.
struct KernelLoader {
  std::string_view backend;  // Backend::name() of the code generator
  /// As LoadKernel.
  absl::StatusOr<std::shared_ptr<const LoadedKernel>> (*load)(std::string_view shared_object,
                                                              std::string_view symbol);
};

}  // namespace fusion
