#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/device/device_spec.h"
#include "core/schedule/ir/schedule.h"

namespace fusion {

/// A generated kernel source: one translation unit without includes.
struct KernelSource {
  std::string symbol;  // entry point; <symbol>_descriptor describes it
  std::string text;
  int64_t scratch_bytes = 0;    // per worker
  int64_t workspace_bytes = 0;  // of one run
};

/// How a source is written, beside what it does.
struct EmitOptions {
  /// Every element that is read or written is checked against the bounds of its tensor or buffer.
  /// The kernel is called with FusionGuardedKernelArgs (core/base/kernel_guard_abi.h).
  bool guard = false;
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
                                            std::string_view symbol,
                                            const EmitOptions& options = {}) const = 0;

  /// The source of one member of a family: schedules that differ in nothing but numbers, none of
  /// which depends on which member it is but for the numbers in it. `most` is the largest member:
  /// it says how long windows and local buffers can become; `varies` which dims are not as long in
  /// every member. kSizesLine stands in every function
  /// that a number of `schedule` is in, where its `dims` are in scope, kSizesCount for the dims of
  /// the descriptor. kNeedsLine begins lines "<a> <= <b>" of numbers that must lie so in
  /// every member. Otherwise as Emit.
  virtual absl::StatusOr<KernelSource> EmitMember(const Schedule& schedule, const Schedule& most,
                                                  const std::vector<bool>& varies,
                                                  const DeviceSpec& device, std::string_view symbol,
                                                  const EmitOptions& options = {}) const = 0;
};

inline constexpr std::string_view kSizesLine = "/* sizes */";
inline constexpr std::string_view kSizesCount = "/* number of sizes */ 0";
inline constexpr std::string_view kNeedsLine = "// needs ";

/// The backend a device spec names, or Unimplemented. Lives for ever.
absl::StatusOr<const Backend*> FindBackend(std::string_view name);

}  // namespace fusion
