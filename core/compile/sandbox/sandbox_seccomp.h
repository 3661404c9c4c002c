#pragma once

#include <string>

#include "core/base/status.h"

namespace fusion {

/// Filters of system calls for this process and all that it starts; what they refuse fails with
/// EPERM. They need no_new_privs, and add up. Both return "seccomp"; FailedPrecondition if the
/// kernel, or a container, forbids filters.

/// For processes that run compilers: everything but sockets, tracing, mounts, namespaces, modules,
/// eBPF, keys and the like, truncating what is not open for writing, rights, owners, times and
/// attributes of files, and limits, priorities and CPUs of other processes.
absl::StatusOr<std::string> EnterCompilerFilter();

/// For a process that runs kernels: nothing but memory, threads, clocks, its own signals, and
/// reading and writing descriptors that it has. Files may be opened for reading, as far as landlock
/// lets it.
absl::StatusOr<std::string> EnterKernelFilter();

}  // namespace fusion
