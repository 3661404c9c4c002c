#include "core/view/html.h"

#include "core/base/text/text.h"
#include "core/wire/basics/scalars.h"

namespace fusion {

std::string EscapeHtml(std::string_view text) {
  std::string out;
  for (char c : TextToWire(text)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        bool control = (c >= 0 && c < 0x20) || c == 0x7f;
        out += control ? '?' : c;
    }
  }
  return out;
}

std::string ForeignText(std::string_view text) {
  return StrCat("<bdi>", EscapeHtml(text), "</bdi>");
}

}  // namespace fusion
