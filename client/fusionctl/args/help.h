#pragma once

#include <string>
#include <string_view>

namespace CLI {
class App;
}  // namespace CLI

namespace fusion {

/// Maximum width of the help text, in columns.
inline constexpr size_t kHelpColumns = 100;

/// Sets the help formatter of `app` and of commands added to it later: wrapped descriptions beside
/// the options, with the options that each needs or excludes.
void FormatHelp(CLI::App* app);

/// The text below the options of the command `name`: an example and the exit codes. Empty `name`:
/// for the whole program.
std::string HelpFooter(std::string_view name);

/// Whether `word` is a command of `app`.
bool IsCommand(const CLI::App& app, std::string_view word);

/// The error text for a command line that `app` could not parse because of a missing command, or an
/// unknown command or option (with a suggestion if there is a similar one). Empty: another reason.
std::string UnknownWord(const CLI::App& app, int argc, const char* const* argv);

}  // namespace fusion
