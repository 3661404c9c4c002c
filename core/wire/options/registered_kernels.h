#pragma once

#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/bundle/rules/registered_kernel.h"
#include "core/wire/options/rules.h"

namespace fusion {

/// Reads the registrations of a server and the sources that they name. `path` is a file with a
/// RegisteredKernels in protobuf's text format, or a directory. In a directory all files
/// *.textproto are read, in the order of their names; there must be at least one. Sources are
/// relative to the directory of the file. InvalidArgument, also for unreadable files, names file,
/// line, registration and field: `kernels.textproto:3: kernels[0] "leaky": source: cannot read
/// ...`. `check` is applied to the rule of each registration. Any thread.
absl::StatusOr<RegisteredKernels> ReadRegisteredKernels(const std::string& path,
                                                        const RuleCheck& check = nullptr);

/// All problems that ReadRegisteredKernels can report; empty: everything is valid.
std::vector<absl::Status> ProblemsOfRegisteredKernels(const std::string& path,
                                                      const RuleCheck& check = nullptr);

}  // namespace fusion
