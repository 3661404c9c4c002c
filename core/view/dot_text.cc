#include "core/view/dot_text.h"

#include "core/base/text/utf8.h"

namespace fusion {

// Backslashes begin escapes in labels.
std::string DotString(std::string_view text) {
  std::string out = "\"";
  size_t bytes = 0;
  for (; !text.empty(); text.remove_prefix(bytes)) {
    const std::string shown = ShownCharacter(text, &bytes);
    if (text[0] == '\n') {
      out += "\\n";
      continue;
    }
    if (shown[0] == '"' || shown[0] == '\\') out += '\\';
    out += shown;
  }
  return out + "\"";
}

}  // namespace fusion
