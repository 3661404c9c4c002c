#pragma once

#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/bundle/rules/registered_kernel.h"
#include "core/wire/options/rules.h"

namespace fusion {

/// Reads the registrations of a server from a file with a RegisteredKernels in protobuf's text
/// format, or from all files of a directory whose names end with ".textproto", by name; and the
/// sources that they name. InvalidArgument, naming file, line, registration and field:
/// `kernels.textproto:3: kernels[0] "leaky": source: cannot read ...`. `check` as of
/// ParseRulesText. Reads files; any thread.
absl::StatusOr<RegisteredKernels> ReadRegisteredKernels(const std::string& path,
                                                        const RuleCheck& check = nullptr);

/// Everything that ReadRegisteredKernels could have said; empty: all of it is right.
std::vector<absl::Status> ProblemsOfRegisteredKernels(const std::string& path,
                                                      const RuleCheck& check = nullptr);

}  // namespace fusion
