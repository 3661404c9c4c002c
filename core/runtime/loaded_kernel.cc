#include "core/runtime/loaded_kernel.h"

#include "core/runtime/kernel_loader.h"

namespace fusion {

// backends.inc is written by core/CMakeLists.txt from the list of backends: FUSION_BACKEND(Cpu) ...
#define FUSION_BACKEND(name) KernelLoader Make##name##Loader();
#include "backends.inc"
#undef FUSION_BACKEND

absl::Status CheckReach(const LoadedKernel& kernel, const FusionInt64* dims,
                        std::span<const FusionInt64> elements) {
  if (kernel.guarded()) return absl::OkStatus();  // it names the access that leaves its tensor
  const FusionKernelDescriptor& d = kernel.descriptor();
  if (d.reach == nullptr) {
    if (d.dims == 0) return absl::OkStatus();  // written by hand, for the shapes of its place
    return DataLoss("it takes run-time dims and does not tell what it accesses");
  }
  for (size_t i = 0; i < elements.size(); ++i) {
    const FusionInt64 reach = d.reach(static_cast<int>(i), dims);
    if (reach <= elements[i]) continue;
    return DataLoss("it accesses ", reach, " elements of tensor ", i, ", which has ", elements[i],
                    ": it was made for other dims");
  }
  return absl::OkStatus();
}

absl::Status FaultStatus(const FusionKernelFault& f) {
  const std::string what =
      StrCat(f.tensor >= 0 ? StrCat("tensor ", f.tensor) : "its buffer", " (", f.name, ")");
  const std::string step = f.step == nullptr ? "" : StrCat(", computing ", Quote(f.step));
  if (f.code == FUSION_KERNEL_BAD_INDEX) {
    return InvalidArgument("index ", f.element, " into ", what, " out of range; expected ",
                           -f.elements, "..", f.elements - 1, step);
  }
  return Internal("out of bounds of ", what, ": ",
                  f.count == 1 ? StrCat("element ", f.element)
                               : StrCat("elements ", f.element, "..", f.element + f.count - 1),
                  " of ", f.elements, step);
}

absl::StatusOr<std::shared_ptr<const LoadedKernel>> LoadKernel(std::string_view backend,
                                                               std::string_view shared_object,
                                                               std::string_view symbol) {
  const KernelLoader loaders[] = {
#define FUSION_BACKEND(name) Make##name##Loader(),
#include "backends.inc"
#undef FUSION_BACKEND
  };
  for (const KernelLoader& loader : loaders) {
    if (loader.backend == backend) return loader.load(shared_object, symbol);
  }
  return Unimplemented("kernel ", symbol, " was made by the backend ", Quote(backend),
                       "; this build loads ",
                       StrJoin(loaders, ", ", [](const KernelLoader& l) { return l.backend; }));
}

}  // namespace fusion
