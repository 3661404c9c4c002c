#pragma once

#include <optional>

#include "core/device/target.h"

namespace fusion {

/// The highest level that this machine and its operating system support; nullopt if none. Use it
/// only to decide whether a kernel can be executed here: plans are made for the caller's machine.
/// Detected by the first call. If the CPU has AMX, that call requests permission from Linux for
/// this process (8 KiB more state for each thread that uses tiles); if it is denied, the level is
/// kAvx512Bf16. Once it is granted, Linux rejects signal stacks (sigaltstack) below about 11 KiB in
/// every thread. Thread-safe.
std::optional<Isa> HostIsa();
/// True if a kernel made for `isa` runs here.
bool HostRuns(Isa isa);
/// IsaName of HostIsa(), or "none of our ISA levels".
std::string_view HostIsaName();

}  // namespace fusion
