#pragma once

#include <string>
#include <string_view>

namespace fusion {

// What a terminal may get of texts that come from elsewhere: a server, a file, a model.

/// `text` with all that a terminal would act on escaped ("\x1b", "\u202e"): control characters but
/// tabs and line ends, bytes that are no UTF-8, and characters that turn the direction of text.
/// `own_colours`: the sequences of Bold, Good and Bad stay, and are ended.
std::string Shown(std::string_view text, bool own_colours);

}  // namespace fusion
