#pragma once

#include "core/device/target.h"

namespace fusion {

/// The highest level that this machine and its operating system run. Only for deciding whether a
/// kernel may be executed here; plans are made for the caller's machine, never for this one.
Isa HostIsa();

}  // namespace fusion
