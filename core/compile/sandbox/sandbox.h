#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"

namespace fusion {

/// What confines the worker processes, weakest first; each but kAuto takes in those before it. Only
/// kBwrap does so as far as the machine has them: see IsWeakSandbox for what it came to.
enum class Sandbox : uint8_t {
  kNone,      // resource limits only
  kSeccomp,   // system calls are filtered
  kLandlock,  // and files outside a list cannot be opened
  kBwrap,     // and there is nothing else to see: namespaces of bubblewrap around the worker
  kAuto       // the strongest that works here
};
inline constexpr std::array kSandboxes = {Sandbox::kAuto, Sandbox::kBwrap, Sandbox::kLandlock,
                                          Sandbox::kSeccomp, Sandbox::kNone};

/// "auto", "bwrap", "landlock", "seccomp", "none".
std::string_view SandboxName(Sandbox sandbox);
/// InvalidArgument with the names there are.
absl::StatusOr<Sandbox> ParseSandbox(std::string_view name);

/// What a compiler needs to read and execute on any machine: where programs and libraries lie.
const std::vector<std::string>& ToolchainDirectories();

/// Confines this process, which runs compilers, and all that it starts: they read and execute what
/// lies in ToolchainDirectories() or `readable`, write below the current directory, change no
/// rights, owners and times of files and nothing about other processes, and have no network, no
/// tracing, no mounts, no new namespaces and no new privileges. Refused calls fail with EPERM or
/// EACCES. There is no way back. Signals are for fusion-exec to refuse: this process needs them.
///
/// Returns the level reached, for people: "landlock-7 seccomp no_new_privs rlimits" (the number is
/// the version of landlock; rlimits are fusion-exec's). FailedPrecondition, saying what is missing,
/// if that is less than `sandbox`; with kAuto and kBwrap less is fine. Call once, before other
/// threads exist.
absl::StatusOr<std::string> ConfineCompilers(Sandbox sandbox,
                                             const std::vector<std::string>& readable);

/// Confines this process, which runs kernels, further: besides computing, with threads, it can do
/// nothing but talk over the descriptors it has and load what is in its memory. No file is opened
/// by its path, nothing is written, started, killed, traced or connected to. As above.
absl::StatusOr<std::string> ConfineKernels(Sandbox sandbox);

/// True for a level, in words, that is weaker than landlock and seccomp together. Any version of
/// landlock will do: what the first ones lack (truncate, signals), the filters refuse.
bool IsWeakSandbox(std::string_view level);

}  // namespace fusion
