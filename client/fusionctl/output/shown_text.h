#pragma once

#include <string>
#include <string_view>

namespace fusion {

/// Makes untrusted text (from a server, a file, a model) safe for a terminal: escapes ("\x1b",
/// "\u202e") control characters except tabs and line ends, invalid UTF-8, and characters that
/// change the text direction. `own_colours`: keeps the sequences of Bold, Good and Bad, and
/// terminates them.
std::string Shown(std::string_view text, bool own_colours);

}  // namespace fusion
