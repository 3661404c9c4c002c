#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/status.h"

namespace fusion {

/// Reads the small text forms of our IRs token by token. Spaces and comments ('#' to the end of the
/// line) separate tokens; errors say "line 3, column 7: expected ...".
///
///   Lexer in("dims { m = 128 }");
///   RETURN_IF_ERROR(in.Expect("dims"));  RETURN_IF_ERROR(in.Expect("{"));
///   ASSIGN_OR_RETURN(std::string name, in.Identifier());
///
/// The text must outlive the lexer. Not thread-safe.
class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) { SkipSpace(); }

  bool AtEnd() const { return pos_ >= text_.size(); }
  /// Of the next token, in bytes from the start of the text.
  size_t position() const { return pos_; }
  /// True if the next token is `token` (a word is matched whole: "in" does not match "input").
  bool Peek(std::string_view token) const;
  /// Consumes `token` if it is next.
  bool Accept(std::string_view token);
  absl::Status Expect(std::string_view token);

  /// [A-Za-z_][A-Za-z0-9_.]*
  absl::StatusOr<std::string> Identifier();
  bool PeekIdentifier() const;
  /// Decimal integer with optional sign.
  absl::StatusOr<int64_t> Integer();
  bool PeekNumber() const;
  /// Integer, decimal or hex float, "inf", "-inf", "nan".
  absl::StatusOr<double> Number();
  /// A string written by Quote().
  absl::StatusOr<std::string> QuotedString();
  /// "%12" -> 12.
  absl::StatusOr<int64_t> PercentId();
  bool PeekPercent() const { return !AtEnd() && text_[pos_] == '%'; }
  /// The raw text up to (not including) the next `stop` character on this or a later line.
  absl::StatusOr<std::string_view> Until(char stop);

  /// What a parser that calls itself for what is written within counts by.
  int& depth() { return depth_; }

  /// InvalidArgument with the position of the next token. Counts the lines before it: where a token
  /// may turn out wrong once it is read, keep a copy of the lexer, not an error made ahead.
  absl::Status Error(std::string_view expected) const;

 private:
  void SkipSpace();
  std::string_view text_;
  size_t pos_ = 0;
  int depth_ = 0;
};

}  // namespace fusion
