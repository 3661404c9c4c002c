#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace fusion {

/// The name of a device whose constants were measured on it by a probe, in parts.
struct ProbedName {
  std::string spec;    // the device spec that has the other constants: "generic-avx512"
  std::string date;    // of the measurement: "2026-11-30"
  std::string digest;  // of the constants, eight digits: "1a2b3c4d"

  bool operator==(const ProbedName&) const = default;
};

/// "generic-avx512+probe-20261130-1a2b3c4d".
std::string ProbedNameText(const ProbedName& name);
/// Its inverse; nullopt for any other name of a device.
std::optional<ProbedName> ParseProbedName(std::string_view name);

/// A device for people: "generic-avx512 with constants measured by probe on 2026-11-30 (1a2b3c4d)";
/// other names unchanged.
std::string DeviceNameText(std::string_view name);

}  // namespace fusion
