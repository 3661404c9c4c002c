#include "core/graph/symbol_names.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include "absl/strings/cord.h"
#include "core/base/text/text.h"

namespace fusion {
namespace {

bool IsWordCharacter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.';
}

std::string NameOf(const SymbolDecl& symbol) {
  constexpr size_t kLongest = 40;
  const std::string& name = symbol.name;
  const bool plain = !name.empty() && name.size() <= kLongest &&
                     std::isdigit(static_cast<unsigned char>(name.front())) == 0 &&
                     std::all_of(name.begin(), name.end(), IsWordCharacter);
  return plain ? name : QuoteShort(name);
}

// Where the quoted part that begins at `begin` ends.
size_t EndOfQuoted(std::string_view text, size_t begin) {
  size_t i = begin + 1;
  while (i < text.size() && text[i] != '"') i += text[i] == '\\' ? 2 : 1;
  return std::min(i + 1, text.size());
}

}  // namespace

std::string WithSymbolNames(std::string_view text, const std::vector<SymbolDecl>& symbols) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    size_t end = i + 1;
    if (text[i] == '"') {
      end = EndOfQuoted(text, i);
    } else if (IsWordCharacter(text[i])) {
      while (end < text.size() && IsWordCharacter(text[end])) ++end;
    }
    const std::string_view word = text.substr(i, end - i);
    i = end;
    size_t id = 0;
    const auto [last, error] = std::from_chars(word.data() + 1, word.data() + word.size(), id);
    const bool symbol = word.size() > 1 && word[0] == 's' && error == std::errc() &&
                        last == word.data() + word.size() && id < symbols.size();
    out += symbol ? NameOf(symbols[id]) : std::string(word);
  }
  return out;
}

absl::Status WithSymbolNames(const absl::Status& status, const std::vector<SymbolDecl>& symbols) {
  if (status.ok() || symbols.empty()) return status;
  absl::Status out(status.code(), WithSymbolNames(Message(status), symbols));
  status.ForEachPayload(
      [&](absl::string_view type, const absl::Cord& payload) { out.SetPayload(type, payload); });
  return out;
}

}  // namespace fusion
