#pragma once

#include <functional>
#include <string>

#include "core/device/target.h"

namespace fusion {

/// Whether the client may measure this machine. It takes ProbeConsent::seconds of all its cores.
enum class ProbePolicy : uint8_t {
  kNever,
  kOnce,  // if the CPU has no device spec of its own: measured once, kept, and sent with requests
};

/// The consent of an application to measure the machine that it runs on.
struct ProbeConsent {
  ProbePolicy policy = ProbePolicy::kNever;
  /// Duration of the measurement: 0.05..60.
  double seconds = 2;
  /// Keeps the result for later starts, in one file for each CPU name, ISA and thread count (0600);
  /// created if necessary. Empty: for this process only; ResilientModel then uses the directory of
  /// its cache.
  std::string directory;
  /// Called with the reason why there are no measured constants, or why they cannot be kept, on the
  /// thread of the call. The model loads in any case.
  std::function<void(const std::string&)> warn = [](const std::string&) {};
};

/// Sets target->measured if `consent` allows it, `target` is this machine (DetectTarget) and no
/// device spec is made for its CPU. Measures at most once in a process for each kind of target, and
/// only if the directory has no valid result; other calls wait meanwhile. Never fails: see `warn`.
/// Thread-safe.
void AddMeasured(const ProbeConsent& consent, Target* target);

/// The path of the result for `target` in `directory`.
std::string MeasuredPath(const std::string& directory, const Target& target);

}  // namespace fusion
