#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "core/device/device_spec.h"
#include "core/schedule/schedule.h"

namespace fusion {

/// A generated kernel source: one translation unit without includes.
struct KernelSource {
  std::string symbol;  // entry point; <symbol>_descriptor describes it
  std::string text;
  int64_t scratch_bytes = 0;    // per worker
  int64_t workspace_bytes = 0;  // of one run
};

/// A code generator for one family of devices. Pure: text out, no tools run here, so it tests
/// without a device.
class Backend {
 public:
  virtual ~Backend() = default;

  /// "cpu".
  virtual std::string_view name() const = 0;

  /// Raised whenever the text emitted for an equal schedule changes; part of every kernel key.
  virtual int version() const = 0;

  /// The source of a verified schedule for a device. `symbol` must be a C identifier of ours.
  /// Unimplemented, naming the op or type, for what this backend does not emit.
  virtual absl::StatusOr<KernelSource> Emit(const Schedule& schedule, const DeviceSpec& device,
                                            std::string_view symbol) const = 0;
};

/// The backend a device spec names, or Unimplemented. Lives for ever.
absl::StatusOr<const Backend*> FindBackend(std::string_view name);

}  // namespace fusion
