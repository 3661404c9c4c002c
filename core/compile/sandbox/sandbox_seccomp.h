#pragma once

#include <string>

#include "core/base/status.h"

namespace fusion {

// System call filters for this process and all its descendants; refused calls fail with EPERM. They
// need no_new_privs, and accumulate. Both functions return "seccomp". FailedPrecondition if the
// kernel or a container forbids filters.

/// For processes that run compilers. Refuses sockets, tracing, mounts, namespaces, modules, eBPF,
/// keys and the like; truncating files that are not open for writing; changing rights, owners,
/// times and attributes of files; and changing limits, priorities and CPUs of other processes.
/// Allows everything else.
absl::StatusOr<std::string> EnterCompilerFilter();

/// For a process that runs kernels. Allows memory, threads, clocks, its own signals, and reading
/// and writing of its descriptors; opening files for reading, if landlock allows it. Refuses
/// everything else.
absl::StatusOr<std::string> EnterKernelFilter();

}  // namespace fusion
