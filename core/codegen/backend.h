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

/// Options of a source that do not change what it computes.
struct EmitOptions {
  /// Checks the bounds of every element that the kernel reads or writes. The caller must pass
  /// FusionGuardedKernelArgs (core/base/kernel_guard_abi.h).
  bool guard = false;
};

/// A code generator for one family of devices. Pure: it returns text and runs no tools, so it can
/// be tested without a device. Any thread.
class Backend {
 public:
  virtual ~Backend() = default;

  /// The name by which device specs select the backend: "cpu".
  virtual std::string_view name() const = 0;

  /// Raise it whenever the text for an equal schedule changes: it is part of every kernel key.
  virtual int version() const = 0;

  /// The source of a schedule that passes Verify, for a device. `symbol`: the entry point, a C
  /// identifier. Unimplemented, naming the op or type, for what this backend does not emit.
  virtual absl::StatusOr<KernelSource> Emit(const Schedule& schedule, const DeviceSpec& device,
                                            std::string_view symbol,
                                            const EmitOptions& options = {}) const = 0;

  /// The source of one member of a family: schedules that differ in numbers only. Apart from these
  /// numbers the text must not depend on which member it is for. `most`: the largest member, which
  /// bounds the lengths of windows and local buffers. `varies`: by dim, whether its extent differs
  /// between members.
  ///
  /// Texts of several members are merged by GeneraliseSource, which needs three marks in them.
  /// kSizesLine stands in every function that uses a number of `schedule`, at a place where the
  /// function's `dims` are in scope. kSizesCount stands for the number of run-time dims in the
  /// descriptor. A line of kNeedsLine and "<a> <= <b>" states a condition on numbers that must hold
  /// in every member. Otherwise as Emit.
  virtual absl::StatusOr<KernelSource> EmitMember(const Schedule& schedule, const Schedule& most,
                                                  const std::vector<bool>& varies,
                                                  const DeviceSpec& device, std::string_view symbol,
                                                  const EmitOptions& options = {}) const = 0;
};

inline constexpr std::string_view kSizesLine = "/* sizes */";
inline constexpr std::string_view kSizesCount = "/* number of sizes */ 0";
inline constexpr std::string_view kNeedsLine = "// needs ";

/// The backend of this name (DeviceSpec::backend). Valid until the process exits. Unimplemented if
/// this build has none. Thread-safe.
absl::StatusOr<const Backend*> FindBackend(std::string_view name);

}  // namespace fusion
