#include "core/runtime/loaded_kernel.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>

namespace fusion {
namespace {

using EntryPoint = int (*)(const FusionKernelArgs*, int, FusionInt64, FusionInt64, int);

// Levels lowest first; a kernel for one runs on machines of the same or a later one.
constexpr std::array<std::string_view, 3> kLevels = {"x86-64-v2", "avx2", "avx512"};

int LevelOf(std::string_view isa) {
  for (size_t i = 0; i < kLevels.size(); ++i) {
    if (kLevels[i] == isa) return static_cast<int>(i);
  }
  return -1;
}

struct CloseLibrary {
  void operator()(void* handle) const { dlclose(handle); }
};
using Library = std::unique_ptr<void, CloseLibrary>;

class CpuKernel final : public LoadedKernel {
 public:
  CpuKernel(Library library, EntryPoint entry, const FusionKernelDescriptor* descriptor)
      : library_(std::move(library)), entry_(entry), descriptor_(descriptor) {}

  const FusionKernelDescriptor& descriptor() const override { return *descriptor_; }

  absl::Status Run(const FusionKernelArgs& args, int phase, int64_t begin, int64_t end,
                   int worker) const override {
    int code = entry_(&args, phase, begin, end, worker);
    if (code == FUSION_KERNEL_OK) return absl::OkStatus();
    return Internal("a kernel answered ", code, " to phase ", phase, " tasks ", begin, "..", end);
  }

 private:
  Library library_;
  EntryPoint entry_;
  const FusionKernelDescriptor* descriptor_;
};

// A file descriptor on an anonymous file with these bytes; dlopen takes it by its /proc name.
absl::StatusOr<int> AnonymousFile(std::string_view bytes) {
  int fd = memfd_create("fusion-kernel", MFD_CLOEXEC);
  if (fd < 0) return ResourceExhausted("no anonymous file for a kernel");
  size_t written = 0;
  while (written < bytes.size()) {
    ssize_t n = write(fd, bytes.data() + written, bytes.size() - written);
    if (n <= 0) {
      close(fd);
      return ResourceExhausted("no memory for a kernel of ", bytes.size(), " bytes");
    }
    written += static_cast<size_t>(n);
  }
  return fd;
}

// The dynamic linker takes two files of one name for one library, and descriptor numbers come back. So every load spells
// the path of its descriptor differently: the bits of a counter as "/." and "/".
std::string UniquePath(int fd) {
  static std::atomic<uint64_t> counter{0};
  std::string path = "/proc/self/fd";
  for (uint64_t bits = counter.fetch_add(1) + 1; bits != 0; bits >>= 1) path += (bits & 1) != 0 ? "/." : "/";
  return StrCat(path, "/", fd);
}

}  // namespace

std::string_view MachineIsa() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  bool v2 = __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt");
  bool avx2 = v2 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
              __builtin_cpu_supports("bmi2");
  bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return avx512 ? kLevels[2] : avx2 ? kLevels[1] : v2 ? kLevels[0] : std::string_view();
#else
  return {};
#endif
}

absl::StatusOr<std::shared_ptr<const LoadedKernel>> LoadCpuKernel(std::string_view shared_object,
                                                                  std::string_view symbol) {
  ASSIGN_OR_RETURN(int fd, AnonymousFile(shared_object));
  Library library(dlopen(UniquePath(fd).c_str(), RTLD_NOW | RTLD_LOCAL));
  close(fd);
  if (!library) {
    const char* error = dlerror();
    return DataLoss("kernel ", symbol, " is no loadable object: ", error != nullptr ? error : "");
  }
  auto entry = reinterpret_cast<EntryPoint>(dlsym(library.get(), std::string(symbol).c_str()));
  const auto* descriptor = static_cast<const FusionKernelDescriptor*>(
      dlsym(library.get(), StrCat(symbol, "_descriptor").c_str()));
  if (entry == nullptr || descriptor == nullptr) {
    return DataLoss("kernel ", symbol, ": the object does not define it");
  }
  if (descriptor->abi_version != FUSION_KERNEL_ABI_VERSION ||
      descriptor->struct_size != sizeof(FusionKernelDescriptor)) {
    return FailedPrecondition("kernel ", symbol, " has ABI version ", descriptor->abi_version,
                              ", this build runs ", FUSION_KERNEL_ABI_VERSION);
  }
  int needed = LevelOf(descriptor->isa);
  if (needed < 0 || needed > LevelOf(MachineIsa())) {
    return FailedPrecondition("kernel ", symbol, " needs ", descriptor->isa, ", this machine has ",
                              MachineIsa());
  }
  return std::make_shared<CpuKernel>(std::move(library), entry, descriptor);
}

}  // namespace fusion
