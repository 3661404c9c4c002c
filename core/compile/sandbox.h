#pragma once

#include <string>

namespace fusion {

/// Takes away from this process, and from all it starts, what compiling and checking a kernel never
/// needs: new privileges, sockets (no network), tracing other processes, mounting, loading modules,
/// eBPF, new namespaces. Refused calls fail with EPERM. There is no way back.
///
/// Returns the level reached, for /statusz: "seccomp", or "no_new_privs" where the kernel or a
/// container forbids filters, or "none". Call once, before other threads exist.
std::string EnterSandbox();

}  // namespace fusion
