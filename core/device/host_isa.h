#pragma once

#include <optional>

#include "core/device/target.h"

namespace fusion {

/// The highest level that this machine and its operating system run. Only for deciding whether a
/// kernel may be executed here; plans are made for the caller's machine, never for this one.
/// nullopt: none of them.
std::optional<Isa> HostIsa();
/// True if a kernel made for `isa` runs here.
bool HostRuns(Isa isa);
/// IsaName of HostIsa(), or "none of our ISA levels".
std::string_view HostIsaName();

}  // namespace fusion
