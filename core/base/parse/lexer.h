#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/status.h"

namespace fusion {

/// Reads the text forms of our IRs token by token. White space and comments ('#' to the end of the
/// line) separate tokens. All errors are InvalidArgument: "line 3, column 7: expected ...".
/// Functions that read a token also skip the space behind it.
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
  /// Position of the next token, in bytes from the start of the text.
  size_t position() const { return pos_; }
  /// True if the next token is `token` (a word is matched whole: "in" does not match "input").
  bool Peek(std::string_view token) const;
  /// Consumes `token` if it is next, and returns whether it was.
  bool Accept(std::string_view token);
  /// Consumes `token`; an error if it is not next.
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
  /// The raw text before the next `stop` character, on this or a later line. Does not consume
  /// `stop`. An error if there is no `stop`.
  absl::StatusOr<std::string_view> Until(char stop);

  /// A counter, 0 at first, with which a recursive parser bounds its nesting.
  int& depth() { return depth_; }

  /// InvalidArgument with the position of the next token. Takes time linear in the text before it.
  /// To report a token after it has been read, keep a copy of the lexer from before it, not an
  /// error made in advance.
  absl::Status Error(std::string_view expected) const;

 private:
  void SkipSpace();
  std::string_view text_;
  size_t pos_ = 0;
  int depth_ = 0;
};

}  // namespace fusion
