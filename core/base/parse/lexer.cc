#include "core/base/parse/lexer.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>

namespace fusion {
namespace {

bool IsWordStart(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsWord(char c) { return IsWordStart(c) || IsDigit(c) || c == '.'; }

}  // namespace

void Lexer::SkipSpace() {
  while (pos_ < text_.size()) {
    char c = text_[pos_];
    if (c == '#') {
      while (pos_ < text_.size() && text_[pos_] != '\n') ++pos_;
    } else if (c == ' ' || c == '\t' || c == '\r' || c == '\n') {
      ++pos_;
    } else {
      break;
    }
  }
}

bool Lexer::Peek(std::string_view token) const {
  if (text_.substr(pos_, token.size()) != token) return false;
  size_t end = pos_ + token.size();
  return !(IsWordStart(token.front()) && end < text_.size() && IsWord(text_[end]));
}

bool Lexer::Accept(std::string_view token) {
  if (!Peek(token)) return false;
  pos_ += token.size();
  SkipSpace();
  return true;
}

absl::Status Lexer::Expect(std::string_view token) {
  if (Accept(token)) return absl::OkStatus();
  return Error(StrCat("'", token, "'"));
}

bool Lexer::PeekIdentifier() const { return !AtEnd() && IsWordStart(text_[pos_]); }

absl::StatusOr<std::string> Lexer::Identifier() {
  if (!PeekIdentifier()) return Error("a name");
  size_t begin = pos_;
  while (pos_ < text_.size() && IsWord(text_[pos_])) ++pos_;
  std::string name(text_.substr(begin, pos_ - begin));
  SkipSpace();
  return name;
}

bool Lexer::PeekNumber() const {
  if (AtEnd()) return false;
  size_t i = pos_;
  if (text_[i] == '-' || text_[i] == '+') ++i;
  if (i >= text_.size()) return false;
  return IsDigit(text_[i]) || text_.substr(i, 3) == "inf" || text_.substr(i, 3) == "nan";
}

absl::StatusOr<int64_t> Lexer::Integer() {
  int64_t value = 0;
  const char* begin = text_.data() + pos_;
  auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
  if (error != std::errc()) return Error("an integer of 64 bits");
  pos_ += static_cast<size_t>(end - begin);
  SkipSpace();
  return value;
}

absl::StatusOr<double> Lexer::Number() {
  if (!PeekNumber()) return Error("a number");
  // strtod wants a terminated string and reads hex floats, inf and nan; no number of ours is longer
  // than this.
  std::string head(text_.substr(pos_, 64));
  char* end = nullptr;
  double value = std::strtod(head.c_str(), &end);
  if (end == head.c_str()) return Error("a number");
  pos_ += static_cast<size_t>(end - head.c_str());
  SkipSpace();
  return value;
}

absl::StatusOr<std::string> Lexer::QuotedString() {
  std::string out;
  if (!Unquote(text_, &pos_, &out)) return Error("a quoted string");
  SkipSpace();
  return out;
}

absl::StatusOr<int64_t> Lexer::PercentId() {
  if (!PeekPercent()) return Error("%id");
  ++pos_;
  return Integer();
}

absl::StatusOr<std::string_view> Lexer::Until(char stop) {
  size_t end = text_.find(stop, pos_);
  if (end == std::string_view::npos) return Error(StrCat("'", stop, "' somewhere behind"));
  std::string_view out = text_.substr(pos_, end - pos_);
  pos_ = end;
  return out;
}

absl::Status Lexer::Error(std::string_view expected) const {
  std::string_view before = text_.substr(0, std::min(pos_, text_.size()));
  auto line = 1 + std::count(before.begin(), before.end(), '\n');
  size_t newline = before.rfind('\n');
  size_t column = newline == std::string_view::npos ? before.size() + 1 : before.size() - newline;
  std::string_view got = text_.substr(std::min(pos_, text_.size()), 20);
  return InvalidArgument("line ", line, ", column ", column, ": expected ", expected, ", got ",
                         AtEnd() ? std::string("the end") : Quote(got));
}

}  // namespace fusion
