#pragma once

#include <optional>

#include "core/device/target.h"

namespace fusion {

/// The highest level that this machine and its operating system run. Only for deciding whether a
/// kernel may be executed here; plans are made for the caller's machine, never for this one.
/// nullopt: none of them. Asked once; where the CPU has AMX, the first call asks the system to let
/// this process use it (the data of tiles is 8 KiB more of state for each thread that does), and
/// where that is refused the level is that below. From then on Linux refuses stacks for signals
/// (sigaltstack) below about 11 KiB, in every thread. Any thread.
std::optional<Isa> HostIsa();
/// True if a kernel made for `isa` runs here.
bool HostRuns(Isa isa);
/// IsaName of HostIsa(), or "none of our ISA levels".
std::string_view HostIsaName();

}  // namespace fusion
