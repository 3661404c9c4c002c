#include "client/fusionctl/output/shown_text.h"

#include <array>

#include "core/base/text/utf8.h"

namespace fusion {
namespace {

constexpr std::string_view kReset = "\x1b[0m";
// The sequences with which Bold, Good, Bad and tables begin and end.
constexpr std::array<std::string_view, 6> kOwn = {kReset,     "\x1b[m",   "\x1b[1m",
                                                  "\x1b[31m", "\x1b[32m", "\x1b[0;1m"};

// The one of these sequences at the beginning of `text`; empty: there is none.
std::string_view OwnSequence(std::string_view text) {
  for (std::string_view own : kOwn) {
    if (text.starts_with(own)) return own;
  }
  return {};
}

}  // namespace

std::string Shown(std::string_view text, bool own_colours) {
  std::string out;
  out.reserve(text.size());
  bool coloured = false;
  while (!text.empty()) {
    const std::string_view own = own_colours ? OwnSequence(text) : std::string_view();
    size_t bytes = 1;
    if (!own.empty()) {
      out += own;
      coloured = own != kReset && own != kOwn[1];
      bytes = own.size();
    } else if (text[0] == '\n' || text[0] == '\t') {
      out += text[0];
    } else {
      out += ShownCharacter(text, &bytes);
    }
    text.remove_prefix(bytes);
  }
  if (coloured) out += kReset;
  return out;
}

}  // namespace fusion
