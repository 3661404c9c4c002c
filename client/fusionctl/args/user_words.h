#pragma once

#include <string>
#include <string_view>

#include "client/fusionctl/args/arguments.h"

namespace fusion {

/// Replaces the names of request fields in a message of the service by the options and files of the
/// command line.
///
///   lock.groups[0].ops[1]: 7; ...      ->  --lock "my.lock": groups[0].ops[1]: 7; ...
///   options.dim_ranges["n"]: 5..3; ... ->  --range "n": 5..3; ...
///
/// Quoted text, such as names of the model, stays unchanged.
std::string InUserWords(std::string_view message, const Arguments& arguments);

}  // namespace fusion
