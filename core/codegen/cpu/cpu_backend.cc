#include "core/codegen/cpu/emitter.h"

namespace fusion {
namespace {

class CpuBackend final : public Backend {
 public:
  std::string_view name() const override { return "cpu"; }
  int version() const override { return 9; }
  absl::StatusOr<KernelSource> Emit(const Schedule& schedule, const DeviceSpec& device,
                                    std::string_view symbol) const override {
    return CpuEmitter(schedule, device, symbol).Emit();
  }
  absl::StatusOr<KernelSource> EmitMember(const Schedule& schedule, const Schedule& most,
                                          const std::vector<bool>& varies, const DeviceSpec& device,
                                          std::string_view symbol) const override {
    return CpuEmitter(schedule, device, symbol, &most, varies).Emit();
  }
};

}  // namespace

std::unique_ptr<Backend> MakeCpuBackend() { return std::make_unique<CpuBackend>(); }

}  // namespace fusion
