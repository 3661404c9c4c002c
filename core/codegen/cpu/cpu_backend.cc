#include "core/codegen/cpu/emitter.h"

namespace fusion {
namespace {

class CpuBackend final : public Backend {
 public:
  std::string_view name() const override { return "cpu"; }
  int version() const override { return 23; }
  absl::StatusOr<KernelSource> Emit(const Schedule& schedule, const DeviceSpec& device,
                                    std::string_view symbol,
                                    const EmitOptions& options) const override {
    return CpuEmitter(schedule, device, symbol, options).Emit();
  }
  absl::StatusOr<KernelSource> EmitMember(const Schedule& schedule, const Schedule& most,
                                          const std::vector<bool>& varies, const DeviceSpec& device,
                                          std::string_view symbol,
                                          const EmitOptions& options) const override {
    return CpuEmitter(schedule, device, symbol, options, &most, varies).Emit();
  }
};

}  // namespace

std::unique_ptr<Backend> MakeCpuBackend() { return std::make_unique<CpuBackend>(); }

}  // namespace fusion
