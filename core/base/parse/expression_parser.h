#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "core/base/parse/lexer.h"
#include "core/base/status.h"

namespace fusion {

/// The operators of a language of expressions. `Op` is what the language makes of one.
template <typename Op>
struct OperatorTable {
  struct Token {
    std::string_view text;
    Op op;
  };
  /// Binary operators by precedence, loosest first. Those of one level bind alike, from left to
  /// right. Of two that begin alike the longer one comes first.
  std::vector<std::vector<Token>> binary;
  /// They bind tighter than all binary ones.
  std::vector<Token> prefix;
  /// Tokens that begin like a binary operator but end the expression: "->".
  std::vector<std::string_view> ends = {};
  /// True: "-2" is a number. False: it is the prefix "-" before the number 2.
  bool signed_numbers = false;
};

/// Reads the expressions of a language: operands between binary operators of any number of levels,
/// prefixes and parentheses. `Language` derives from this and has these members, which say what an
/// operand is and what to make of it all. Their errors end the parser.
///
///   StatusOr<Value> Operand();    // the next token is neither a prefix nor "("
///   StatusOr<Value> Whole();      // what stands in parentheses; calls Level(0)
///   Status Expect(token);         // consumes ")", or says that it is missing
///   StatusOr<Value> Binary(Op op, size_t place, Value left, Value right);
///   StatusOr<Value> Prefix(Op op, size_t place, Value of);
///
/// Places are offsets into the text. The parser calls itself: a language without a short text
/// bounds the nesting with Enter. `text` and `operators` outlive the parser. Not thread-safe.
template <typename Language, typename Value, typename Op>
class ExpressionParser {
 protected:
  ExpressionParser(std::string_view text, const OperatorTable<Op>& operators)
      : in_(text), operators_(operators) {}

  /// An expression of the binary operators of `level`, of the levels behind it, and of prefixes.
  absl::StatusOr<Value> Level(size_t level) {
    if (level == operators_.binary.size()) return Prefixed();
    ASSIGN_OR_RETURN(Value out, Level(level + 1));
    for (;;) {
      const size_t place = in_.position();
      const Token* found = IsEnd() ? nullptr : Find(operators_.binary[level]);
      if (found == nullptr) return out;
      in_.Accept(found->text);
      ASSIGN_OR_RETURN(Value right, Level(level + 1));
      ASSIGN_OR_RETURN(out, language().Binary(found->op, place, std::move(out), std::move(right)));
    }
  }

  /// Called before and after what is nested by a prefix. Hidden by a language with a bound, whose
  /// Whole does the same for parentheses.
  absl::Status Enter() { return absl::OkStatus(); }
  void Leave() {}

  Lexer in_;

 private:
  using Token = typename OperatorTable<Op>::Token;

  Language& language() { return static_cast<Language&>(*this); }

  bool IsEnd() const {
    for (std::string_view end : operators_.ends) {
      if (in_.Peek(end)) return true;
    }
    return false;
  }

  // The one that is next; null: none of them.
  const Token* Find(const std::vector<Token>& tokens) const {
    for (const Token& token : tokens) {
      if (in_.Peek(token.text)) return &token;
    }
    return nullptr;
  }

  absl::StatusOr<Value> Prefixed() {
    const size_t place = in_.position();
    const bool number = operators_.signed_numbers && in_.PeekNumber();
    const Token* found = number ? nullptr : Find(operators_.prefix);
    if (found == nullptr) return Primary();
    RETURN_IF_ERROR(language().Enter());
    in_.Accept(found->text);
    ASSIGN_OR_RETURN(Value of, Prefixed());
    language().Leave();
    return language().Prefix(found->op, place, std::move(of));
  }

  absl::StatusOr<Value> Primary() {
    if (!in_.Accept("(")) return language().Operand();
    ASSIGN_OR_RETURN(Value inner, language().Whole());
    RETURN_IF_ERROR(language().Expect(")"));
    return inner;
  }

  const OperatorTable<Op>& operators_;
};

}  // namespace fusion
