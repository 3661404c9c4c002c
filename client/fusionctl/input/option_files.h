#pragma once

#include "client/fusionctl/args/arguments.h"
#include "core/base/status.h"

namespace fusion {

/// Reads the file of --rules, if there is one, into the options. Bad input: "FILE:LINE: ...".
absl::Status LoadRules(Arguments* arguments);
/// The same of --custom-ops: "FILE: line L, column C: ..", the line and a caret.
absl::Status LoadCustomOps(Arguments* arguments);
/// An error of a command; if rules of the file are to blame for it, with file and line in front.
absl::Status LocateRule(const absl::Status& status, const Arguments& arguments);
/// Reads the file of --lock, if one is given, into the options. What is wrong with it is bad input.
absl::Status LoadLock(Arguments* arguments);

}  // namespace fusion
