#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace fusion {

using Json = nlohmann::ordered_json;

// All that goes to stdout and stderr goes through these: what comes from servers, files and models
// cannot drive the terminal (shown_text.h).

/// Prints an object to stdout; strings that are not UTF-8 are repaired.
void PrintJson(const Json& json);
/// Prints text for people to stdout; on a terminal its lines are wrapped.
void Print(const std::string& text);
/// The same of a text whose lines stay as they are: sources, scripts, dumps.
void PrintAsItIs(const std::string& text);
/// A line on stderr, behind the name of the program.
void PrintWarning(std::string_view text);

}  // namespace fusion
