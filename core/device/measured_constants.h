#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/status.h"

namespace fusion {

struct DeviceSpec;

/// A constant of a CPU that can be measured on it (core/probe), and the values that are plausible.
struct MeasurableConstant {
  std::string_view name;  // as in the files of core/device/specs: "product_rate", "l2.bandwidth"
  std::string_view unit;  // "flop/s", "op/s", "B/s", "s"
  double least = 0;
  double most = 0;
};

/// All of them. Rates and bandwidths come in pairs: "product_rate" with one thread, and
/// "total_product_rate" with all `MeasuredConstants::threads` together. "bf16.product_rate" and
/// "i8.product_rate" are those of other types, "l1.bandwidth" to "memory.bandwidth" of memory
/// levels. "launch", "barrier", "relaunch", "call" and "task" are costs.
const std::map<std::string_view, MeasurableConstant>& MeasurableConstants();

/// Constants of a CPU as they were measured on it. A request carries them instead of those of the
/// device spec (Target::measured).
///
///   {.isa = "avx512", .threads = 8, .date = "2026-11-30", .source = "fusionctl probe 0.9, ...",
///    .values = {{"product_rate", 1.1e11}, {"total_product_rate", 6.8e11}}}
struct MeasuredConstants {
  std::string isa;                       // IsaName: the instructions that were measured
  int threads = 1;                       // of the "total_" rates
  std::string date;                      // of the measurement, UTC: "2026-11-30"
  std::string source;                    // program and CPU, for people; changes no plan
  std::map<std::string, double> values;  // by name; the spec's count for names that are missing

  bool operator==(const MeasuredConstants&) const = default;
};

/// Maximum bytes of MeasuredConstants::source.
inline constexpr size_t kMaxMeasuredSource = 256;

/// InvalidArgument, naming the field below `where` ("target.measured"), for an unknown name, a
/// value that is not finite or not plausible, no value at all, a date, a thread count or an ISA
/// that is none.
absl::Status CheckMeasured(const MeasuredConstants& measured, std::string_view where);

/// All fields that can change a plan, as stable text.
std::string KeyText(const MeasuredConstants& measured);

/// Replaces constants of `spec`, whose `threads` are those of the plan. Between one thread and
/// `measured.threads`, the rate of a thread is interpolated; costs of handing over work count only
/// if both have one thread, or both have several. Rates of types that the spec computes
/// as f32, and bandwidths of levels that it lacks, mean nothing. Renames the spec to
/// "<name>+probe-20261130-1a2b3c4d" (core/base/text/probed_name.h), so that everything that
/// is kept by the name of a device, such as timings, is kept apart. InvalidArgument if the spec is
/// not of a CPU or its ISA is not `measured.isa`.
absl::Status ApplyMeasured(const MeasuredConstants& measured, DeviceSpec* spec);

/// The value of a measurable constant in `spec`, for its threads; nullopt if the spec has none.
std::optional<double> ConstantOf(const DeviceSpec& spec, std::string_view name);

}  // namespace fusion
