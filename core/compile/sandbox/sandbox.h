#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"

namespace fusion {

/// Confinement of the worker processes, weakest first. Each level includes those before it, but
/// kBwrap lacks those that the machine does not support: check the reached level with
/// IsWeakSandbox.
enum class Sandbox : uint8_t {
  kNone,      // resource limits only
  kSeccomp,   // system calls are filtered
  kLandlock,  // only files of a list can be opened
  kBwrap,     // only these files exist: namespaces of bubblewrap around the worker
  kAuto       // the strongest that works here
};
inline constexpr std::array kSandboxes = {Sandbox::kAuto, Sandbox::kBwrap, Sandbox::kLandlock,
                                          Sandbox::kSeccomp, Sandbox::kNone};

/// "auto", "bwrap", "landlock", "seccomp", "none".
std::string_view SandboxName(Sandbox sandbox);
/// InvalidArgument, with all names, for an unknown name.
absl::StatusOr<Sandbox> ParseSandbox(std::string_view name);

/// Directories of programs and libraries that a compiler needs on any machine.
const std::vector<std::string>& ToolchainDirectories();

/// Confines this process, which runs compilers, and all its descendants. They can read and execute
/// files in ToolchainDirectories() and `readable`, and write below the current directory. They
/// cannot change rights, owners or times of files or affect other processes, and have no network,
/// tracing, mounts, new namespaces or new privileges. Refused calls fail with EPERM or EACCES. This
/// cannot be undone. Signals are not refused here, because this process sends them; fusion-exec
/// refuses them.
///
/// Returns the level reached, for display: "landlock-7 seccomp no_new_privs rlimits" (the number is
/// the version of landlock; rlimits are set by fusion-exec). FailedPrecondition, naming what is
/// missing, if the level is below `sandbox`; with kAuto and kBwrap a lower level is accepted. Call
/// once, before other threads exist.
absl::StatusOr<std::string> ConfineCompilers(Sandbox sandbox,
                                             const std::vector<std::string>& readable);

/// Confines this process, which runs kernels, further: it can compute, with threads, use the
/// descriptors that it has and load code from its memory. It cannot open a file by path, and cannot
/// write files, start, kill or trace processes, or connect. Result, errors and calling rules as
/// ConfineCompilers.
absl::StatusOr<std::string> ConfineKernels(Sandbox sandbox);

/// True if `level` (a result of the functions above) is weaker than landlock and seccomp together.
/// Any version of landlock suffices: the filters refuse what early versions do not (truncate,
/// signals).
bool IsWeakSandbox(std::string_view level);

}  // namespace fusion
