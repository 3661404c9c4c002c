#pragma once

#include <string>
#include <string_view>

#include "client/fusionctl/args/arguments.h"

namespace fusion {

/// A message of the service, which names fields of the request, as the user of the command line
/// wrote them: options, and the files that he gave.
///
///   lock.groups[0].ops[1]: 7; ...      ->  --lock "my.lock": groups[0].ops[1]: 7; ...
///   options.dim_ranges["n"]: 5..3; ... ->  --range "n": 5..3; ...
///
/// What is quoted, as names of the model are, stays.
std::string InUserWords(std::string_view message, const Arguments& arguments);

}  // namespace fusion
