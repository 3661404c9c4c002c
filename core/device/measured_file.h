#pragma once

#include <string>
#include <string_view>

#include "core/device/measured_constants.h"

namespace fusion {

/// The text of a file with measured constants: JSON, each value with its unit and source.
///
///   {"fusion_device_constants": 1, "isa": "avx512", "threads": 2, "date": "2026-11-30",
///    "source": "fusionctl probe 0.9, Intel(R) Xeon(R)",
///    "constants": {"launch": {"value": 1.2e-6, "unit": "s", "source": "measured by ..."}, ...}}
std::string MeasuredFileText(const MeasuredConstants& measured);

/// Inverse of MeasuredFileText. `file` is for messages. InvalidArgument, naming file and field: no
/// JSON, a field that is missing, unknown or of another form, another unit, an empty source, and as
/// CheckMeasured.
absl::StatusOr<MeasuredConstants> ParseMeasuredFile(std::string_view text, std::string_view file);

/// Maximum length of such a file.
inline constexpr int64_t kMaxMeasuredFileBytes = int64_t{64} << 10;

}  // namespace fusion
