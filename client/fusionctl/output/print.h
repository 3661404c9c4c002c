#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace fusion {

using Json = nlohmann::ordered_json;

// All output to stdout and stderr goes through these functions. They escape text from servers,
// files and models, so that it cannot control the terminal (shown_text.h).

/// Prints `json` to stdout. Invalid UTF-8 in strings is replaced.
void PrintJson(const Json& json);
/// Prints text to stdout; on a terminal long lines are wrapped.
void Print(const std::string& text);
/// Prints text to stdout without wrapping: sources, scripts, dumps.
void PrintAsItIs(const std::string& text);
/// A text on a terminal that is drawn again and again, such as that of `fusionctl top`. Each Draw
/// replaces the previous one; the last one stays. Long lines are wrapped, and lines for which the
/// terminal has no room are left out. The cursor is hidden during its lifetime. Not thread-safe.
class FrameOnTerminal {
 public:
  FrameOnTerminal();
  ~FrameOnTerminal();
  FrameOnTerminal(const FrameOnTerminal&) = delete;
  FrameOnTerminal& operator=(const FrameOnTerminal&) = delete;
  void Draw(const std::string& text);
};

/// Prints a line to stderr after the name of the program.
void PrintWarning(std::string_view text);

}  // namespace fusion
