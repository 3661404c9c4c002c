#include "core/runtime/loaded_kernel.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>

#include "core/base/files/unique_fd.h"
#include "core/device/host_isa.h"
#include "core/runtime/kernel_loader.h"

namespace fusion {
namespace {

// No kernel of ours comes near these; a damaged one may.
constexpr int kMaxPhases = 4096;
constexpr int kMaxTensors = 65536;
constexpr int kMaxDims = 64;
constexpr unsigned kMaxAlignment = 1 << 16;
constexpr unsigned long long kMaxBytes = 1ULL << 40;

using EntryPoint = int (*)(const FusionKernelArgs*, int, FusionInt64, FusionInt64, int);

struct CloseLibrary {
  void operator()(void* handle) const { dlclose(handle); }
};
using Library = std::unique_ptr<void, CloseLibrary>;

class CpuKernel final : public LoadedKernel {
 public:
  /// `file`: of a library with line tables.
  CpuKernel(Library library, UniqueFd file, EntryPoint entry,
            const FusionKernelDescriptor* descriptor, bool guarded)
      : library_(std::move(library)),
        file_(std::move(file)),
        entry_(entry),
        descriptor_(descriptor),
        guarded_(guarded) {}

  const FusionKernelDescriptor& descriptor() const override { return *descriptor_; }
  bool guarded() const override { return guarded_; }

  absl::Status Run(const FusionKernelArgs& args, int phase, int64_t begin, int64_t end,
                   int worker) const override {
    int code = entry_(&args, phase, begin, end, worker);
    if (code == FUSION_KERNEL_OK) return absl::OkStatus();
    return Internal("a kernel answered ", code, " to phase ", phase, " tasks ", begin, "..", end);
  }

 private:
  Library library_;
  UniqueFd file_;
  EntryPoint entry_;
  const FusionKernelDescriptor* descriptor_;
  bool guarded_;
};

// A file descriptor on an anonymous file with these bytes; dlopen takes it by its /proc name.
absl::StatusOr<UniqueFd> AnonymousFile(std::string_view bytes) {
  UniqueFd fd(memfd_create("fusion-kernel", MFD_CLOEXEC));
  if (!fd.valid()) return ResourceExhausted("no anonymous file for a kernel");
  size_t written = 0;
  while (written < bytes.size()) {
    ssize_t n = write(fd.get(), bytes.data() + written, bytes.size() - written);
    if (n <= 0) return ResourceExhausted("no memory for a kernel of ", bytes.size(), " bytes");
    written += static_cast<size_t>(n);
  }
  return fd;
}

// Debuggers read line tables from the file that the dynamic linker names.
bool HasLineTables(std::string_view shared_object) {
  return shared_object.find(".debug_line") != std::string_view::npos;
}

// The dynamic linker takes two files of one name for one library, and descriptor numbers come back.
// So every load spells the path of its descriptor differently: the bits of a counter as "/." and
// "/". Other processes, debuggers, can follow it as long as the descriptor is open.
std::string UniquePath(int fd) {
  static std::atomic<uint64_t> counter{0};
  std::string path = StrCat("/proc/", getpid(), "/fd");
  for (uint64_t bits = counter.fetch_add(1) + 1; bits != 0; bits >>= 1)
    path += (bits & 1) != 0 ? "/." : "/";
  return StrCat(path, "/", fd);
}

absl::Status CheckNumbers(const FusionKernelDescriptor& d) {
  auto wrong = [](std::string_view field, auto value) {
    return DataLoss("descriptor: ", field, " is ", value);
  };
  if (d.tensors < 0 || d.tensors > kMaxTensors) return wrong("tensors", d.tensors);
  if (d.dims < 0 || d.dims > kMaxDims) return wrong("dims", d.dims);
  if (d.phases < 1 || d.phases > kMaxPhases) return wrong("phases", d.phases);
  if (d.scratch_bytes > kMaxBytes) return wrong("scratch_bytes", d.scratch_bytes);
  if (d.workspace_bytes > kMaxBytes) return wrong("workspace_bytes", d.workspace_bytes);
  bool power_of_two = d.alignment != 0 && (d.alignment & (d.alignment - 1)) == 0;
  if (!power_of_two || d.alignment > kMaxAlignment) return wrong("alignment", d.alignment);
  if (d.tasks == nullptr) return DataLoss("descriptor: tasks is null");
  return absl::OkStatus();
}

absl::Status CheckDescriptor(const FusionKernelDescriptor& d) {
  if (d.abi_version != FUSION_KERNEL_ABI_VERSION || d.struct_size != sizeof(d)) {
    return FailedPrecondition("ABI version ", d.abi_version, " (", d.struct_size,
                              " bytes), this build runs ", FUSION_KERNEL_ABI_VERSION, " (",
                              sizeof(d), " bytes)");
  }
  absl::StatusOr<Isa> isa = ParseIsa(d.isa == nullptr ? "" : d.isa);
  if (!isa.ok() || !HostRuns(*isa)) {
    return FailedPrecondition("needs ", d.isa == nullptr ? "?" : d.isa, ", this machine has ",
                              HostIsaName());
  }
  RETURN_IF_ERROR(CheckNumbers(d));
  // With run-time dims the counts depend on extents that only a caller knows.
  for (int phase = 0; d.dims == 0 && phase < d.phases; ++phase) {
    FusionInt64 tasks = d.tasks(phase, nullptr);
    if (tasks < 0) return DataLoss("descriptor: phase ", phase, " has ", tasks, " tasks");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const LoadedKernel>> LoadCpuKernel(std::string_view shared_object,
                                                                  std::string_view symbol) {
  ASSIGN_OR_RETURN(UniqueFd fd, AnonymousFile(shared_object));
  Library library(dlopen(UniquePath(fd.get()).c_str(), RTLD_NOW | RTLD_LOCAL));
  if (!HasLineTables(shared_object)) fd.Reset();
  if (!library) {
    const char* error = dlerror();
    return DataLoss("kernel ", symbol, " is no loadable object: ", error != nullptr ? error : "");
  }
  std::string names[] = {std::string(symbol), StrCat(symbol, "_descriptor")};
  void* found[] = {nullptr, nullptr};
  for (int i = 0; i < 2; ++i) {
    found[i] = dlsym(library.get(), names[i].c_str());
    if (found[i] == nullptr) {
      return DataLoss("kernel ", symbol, ": the object has no symbol ", Quote(names[i]));
    }
  }
  auto entry = reinterpret_cast<EntryPoint>(found[0]);
  const auto* descriptor = static_cast<const FusionKernelDescriptor*>(found[1]);
  RETURN_IF_ERROR(Annotate(CheckDescriptor(*descriptor), StrCat("kernel ", symbol)));
  const auto* guard =
      static_cast<const unsigned*>(dlsym(library.get(), StrCat(symbol, "_guarded").c_str()));
  if (guard != nullptr && *guard != sizeof(FusionGuardedKernelArgs)) {
    return FailedPrecondition("kernel ", symbol, ": guarded with arguments of ", *guard,
                              " bytes, this build passes ", sizeof(FusionGuardedKernelArgs));
  }
  return std::make_shared<CpuKernel>(std::move(library), std::move(fd), entry, descriptor,
                                     guard != nullptr);
}

}  // namespace

KernelLoader MakeCpuLoader();  // declared by the list of backends
KernelLoader MakeCpuLoader() { return {"cpu", LoadCpuKernel}; }

}  // namespace fusion
