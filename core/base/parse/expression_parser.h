#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "core/base/parse/lexer.h"
#include "core/base/status.h"

namespace fusion {

/// The operators of an expression language. `Op` is the language's own type for an operator.
template <typename Op>
struct OperatorTable {
  struct Token {
    std::string_view text;
    Op op;
  };
  /// Binary operators by level of precedence, loosest first. Operators of a level are
  /// left-associative. In a level, a token comes before its own prefixes ("<=" before "<").
  std::vector<std::vector<Token>> binary;
  /// Prefix operators. They bind tighter than all binary operators.
  std::vector<Token> prefix;
  /// Tokens that begin like a binary operator but end the expression, such as "->".
  std::vector<std::string_view> ends = {};
  /// True: "-2" is a number. False: it is the prefix "-" before the number 2.
  bool signed_numbers = false;
};

/// Recursive-descent parser (CRTP base) for expressions of binary operators with precedence,
/// prefix operators and parentheses. `Language` derives from this class and has the members below,
/// which parse operands and build values. Their errors end the parse and are returned.
///
///   StatusOr<Value> Operand();    // the next token is neither a prefix nor "("
///   StatusOr<Value> Whole();      // the content of parentheses; calls Level(0)
///   Status Expect(token);         // consumes ")", or fails because it is missing
///   StatusOr<Value> Binary(Op op, size_t place, Value left, Value right);
///   StatusOr<Value> Prefix(Op op, size_t place, Value of);
///
/// `place` is the offset of the operator in the text, in bytes. The parser is recursive: a language
/// whose texts may be long must bound the nesting with Enter. `text` and `operators` must outlive
/// the parser. Not thread-safe.
template <typename Language, typename Value, typename Op>
class ExpressionParser {
 protected:
  ExpressionParser(std::string_view text, const OperatorTable<Op>& operators)
      : in_(text), operators_(operators) {}

  /// Parses an expression with the binary operators of `level` and of all tighter levels. Level(0)
  /// parses a whole expression.
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

  /// Called before and after the operand of a prefix operator. A language that bounds the nesting
  /// declares its own pair, which hides these, and calls it in Whole too, for parentheses.
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

  // The first of `tokens` that comes next in the text; null: none does.
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
