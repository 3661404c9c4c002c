#include "core/compile/descriptor_checker.h"

#include <dlfcn.h>

#include "core/base/kernel_abi.h"

namespace fusion {
namespace {

constexpr int kMaxPhases = 4096;
constexpr int kMaxTensors = 65536;
constexpr int kMaxDims = 64;
constexpr unsigned kMaxAlignment = 1 << 16;
constexpr unsigned long long kMaxBytes = 1ULL << 40;

// A loaded shared object, unloaded at the end of the scope.
class Library {
 public:
  explicit Library(const std::string& path)
      : handle_(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {}
  ~Library() {
    if (handle_ != nullptr) dlclose(handle_);
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  bool loaded() const { return handle_ != nullptr; }
  const void* Find(const std::string& symbol) const { return dlsym(handle_, symbol.c_str()); }

 private:
  void* handle_;
};

CheckReport NotCompared(std::string reason) {
  CheckReport report;
  report.reason = std::move(reason);
  return report;
}

absl::Status CheckNumbers(const FusionKernelDescriptor& d) {
  auto wrong = [](std::string_view field, auto value) {
    return Internal("descriptor: ", field, " is ", value);
  };
  if (d.tensors < 0 || d.tensors > kMaxTensors) return wrong("tensors", d.tensors);
  if (d.dims < 0 || d.dims > kMaxDims) return wrong("dims", d.dims);
  if (d.phases < 1 || d.phases > kMaxPhases) return wrong("phases", d.phases);
  if (d.scratch_bytes > kMaxBytes) return wrong("scratch_bytes", d.scratch_bytes);
  if (d.workspace_bytes > kMaxBytes) return wrong("workspace_bytes", d.workspace_bytes);
  bool power_of_two = d.alignment != 0 && (d.alignment & (d.alignment - 1)) == 0;
  if (!power_of_two || d.alignment > kMaxAlignment) return wrong("alignment", d.alignment);
  if (d.tasks == nullptr) return Internal("descriptor: tasks is null");
  return absl::OkStatus();
}

absl::Status CheckDescriptor(const FusionKernelDescriptor& d, Isa isa) {
  if (d.abi_version != FUSION_KERNEL_ABI_VERSION) {
    return Internal("descriptor: ABI version ", d.abi_version, "; expected ",
                    FUSION_KERNEL_ABI_VERSION);
  }
  if (d.struct_size != sizeof(FusionKernelDescriptor)) {
    return Internal("descriptor: ", d.struct_size, " bytes; expected ",
                    sizeof(FusionKernelDescriptor));
  }
  if (d.isa == nullptr || d.isa != IsaName(isa)) {
    return Internal("descriptor: isa ", Quote(d.isa == nullptr ? "" : d.isa), "; expected ",
                    Quote(IsaName(isa)));
  }
  RETURN_IF_ERROR(CheckNumbers(d));
  // With run-time dims the counts depend on extents that only a caller knows.
  for (int phase = 0; d.dims == 0 && phase < d.phases; ++phase) {
    FusionInt64 tasks = d.tasks(phase, nullptr);
    if (tasks < 0) return Internal("descriptor: phase ", phase, " has ", tasks, " tasks");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<CheckReport> DescriptorChecker::Check(const CompileJob& job,
                                                     const std::string& shared_object_path) {
  if (job.isa > host_isa_) {
    return NotCompared(
        StrCat("needs ", IsaName(job.isa), ", this machine has ", IsaName(host_isa_)));
  }
  Library library(shared_object_path);
  if (!library.loaded()) return Internal("loading the kernel: ", dlerror());
  if (library.Find(job.symbol) == nullptr) {
    return Internal("the kernel has no symbol ", Quote(job.symbol));
  }
  const auto* descriptor =
      static_cast<const FusionKernelDescriptor*>(library.Find(StrCat(job.symbol, "_descriptor")));
  if (descriptor == nullptr) {
    return Internal("the kernel has no symbol ", Quote(StrCat(job.symbol, "_descriptor")));
  }
  RETURN_IF_ERROR(CheckDescriptor(*descriptor, job.isa));
  return NotCompared("not compared: no reference");
}

}  // namespace fusion
