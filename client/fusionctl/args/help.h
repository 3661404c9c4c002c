#pragma once

#include <string>
#include <string_view>

namespace CLI {
class App;
}  // namespace CLI

namespace fusion {

/// No line of help is longer.
inline constexpr size_t kHelpColumns = 100;

/// Help of `app` and of the commands that are added to it afterwards: descriptions beside the
/// options, wrapped, and what an option needs or excludes in words.
void FormatHelp(CLI::App* app);

/// What is said below the options of a command: an example of it and the exit codes. Empty `name`:
/// of the whole program.
std::string HelpFooter(std::string_view name);

/// Whether it is a command of `app`.
bool IsCommand(const CLI::App& app, std::string_view word);

/// What is wrong with a command line that `app` could not parse, if a command or an option of it is
/// unknown: with the one that it was meant to be, where there is one. Else empty.
std::string UnknownWord(const CLI::App& app, int argc, const char* const* argv);

}  // namespace fusion
