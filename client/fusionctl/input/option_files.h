#pragma once

#include "client/fusionctl/args/arguments.h"
#include "core/base/status.h"

namespace fusion {

/// Reads the file of --rules into arguments->options.rules; does nothing without the option. Bad
/// input: "--rules: FILE:LINE: ...".
absl::Status LoadRules(Arguments* arguments);
/// The same for --custom-ops. Bad input: the option, file, line and column, then the line and a
/// caret.
absl::Status LoadCustomOps(Arguments* arguments);
/// The same for --device-constants into arguments->measured. Bad input: the option, file and field.
absl::Status LoadDeviceConstants(Arguments* arguments);
/// Puts file and line of the rule before an error of a command that a rule of the file caused.
/// Returns other errors unchanged.
absl::Status LocateRule(const absl::Status& status, const Arguments& arguments);
/// Reads the file of --lock into arguments->options.lock; does nothing without the option. Errors
/// are bad input.
absl::Status LoadLock(Arguments* arguments);

}  // namespace fusion
