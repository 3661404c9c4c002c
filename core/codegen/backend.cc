#include "core/codegen/backend.h"

namespace fusion {

// backends.inc is written by core/CMakeLists.txt from the list of backends: FUSION_BACKEND(Cpu) ...
#define FUSION_BACKEND(name) std::unique_ptr<Backend> Make##name##Backend();
#include "backends.inc"
#undef FUSION_BACKEND

absl::StatusOr<const Backend*> FindBackend(std::string_view name) {
  static const auto* const kBackends = [] {
    auto* all = new std::vector<std::unique_ptr<Backend>>;  // lives for ever
#define FUSION_BACKEND(name) all->push_back(Make##name##Backend());
#include "backends.inc"
#undef FUSION_BACKEND
    return all;
  }();
  for (const auto& backend : *kBackends) {
    if (backend->name() == name) return backend.get();
  }
  return Unimplemented("no backend ", Quote(name), " in this build");
}

}  // namespace fusion
