#include "core/base/parse/expression_parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace fusion {
namespace {

// Writes an expression with all its parentheses: "(a + (b * c))".
class Writer : public ExpressionParser<Writer, std::string, std::string> {
 public:
  Writer(std::string_view text, const OperatorTable<std::string>& operators)
      : ExpressionParser(text, operators) {}

  absl::StatusOr<std::string> Run(size_t level) {
    ASSIGN_OR_RETURN(std::string out, Level(level));
    return StrCat(out, in_.AtEnd() ? "" : StrCat(" | rest at ", in_.position()));
  }

 private:
  friend class ExpressionParser<Writer, std::string, std::string>;

  absl::StatusOr<std::string> Operand() {
    if (in_.PeekIdentifier()) return in_.Identifier();
    ASSIGN_OR_RETURN(double number, in_.Number());
    return StrCat(number);
  }
  absl::StatusOr<std::string> Whole() { return Level(0); }
  absl::Status Expect(std::string_view token) { return in_.Expect(token); }
  static absl::StatusOr<std::string> Binary(const std::string& op, size_t place,
                                            const std::string& left, const std::string& right) {
    if (op == "bad") return InvalidArgument("bad at ", place);
    return StrCat("(", left, " ", op, " ", right, ")");
  }
  static absl::StatusOr<std::string> Prefix(const std::string& op, size_t /*place*/,
                                            const std::string& of) {
    return StrCat("(", op, of, ")");
  }
  absl::Status Enter() {
    return ++depth_ > 3 ? InvalidArgument("too deep at ", in_.position()) : absl::OkStatus();
  }
  void Leave() { --depth_; }

  int depth_ = 0;
};

OperatorTable<std::string> Table() {
  return {
      .binary = {{{"<=", "<="}, {"<", "<"}}, {{"+", "+"}, {"-", "-"}, {"@", "bad"}}, {{"*", "*"}}},
      .prefix = {{"-", "-"}, {"!", "!"}},
      .ends = {"->"}};
}

std::string Read(std::string_view text, const OperatorTable<std::string>& table = Table(),
                 size_t level = 0) {
  absl::StatusOr<std::string> out = Writer(text, table).Run(level);
  return out.ok() ? *out : std::string(Message(out.status()));
}

TEST(ExpressionParser, TighterOperatorsGoFirst) {
  EXPECT_EQ(Read("a + b * c"), "(a + (b * c))");
  EXPECT_EQ(Read("a * b + c"), "((a * b) + c)");
  EXPECT_EQ(Read("a <= b + c * d"), "(a <= (b + (c * d)))");
}

TEST(ExpressionParser, OperatorsThatBindAlikeGoFromLeftToRight) {
  EXPECT_EQ(Read("a - b + c - d"), "(((a - b) + c) - d)");
  EXPECT_EQ(Read("a < b <= c"), "((a < b) <= c)");
}

TEST(ExpressionParser, ParenthesesGoBeforeAll) {
  EXPECT_EQ(Read("(a + b) * (c)"), "((a + b) * c)");
  EXPECT_EQ(Read("((a))"), "a");
  EXPECT_EQ(Read("(a + b"), "line 1, column 7: expected ')', got the end");
}

TEST(ExpressionParser, PrefixesBindTighterThanBinaryOperators) {
  EXPECT_EQ(Read("-a * !b"), "((-a) * (!b))");
  EXPECT_EQ(Read("a - -b"), "(a - (-b))");
  EXPECT_EQ(Read("-(a + b)"), "(-(a + b))");
  EXPECT_EQ(Read("!!!a"), "(!(!(!a)))");
  EXPECT_EQ(Read("a + !!!!b"), "too deep at 7");
  EXPECT_EQ(Read("!!!a + !!!b"), "((!(!(!a))) + (!(!(!b))))") << "depth is of what is open";
}

TEST(ExpressionParser, SignsBelongToNumbersWhereTheLanguageSaysSo) {
  OperatorTable<std::string> table = Table();
  EXPECT_EQ(Read("-2 * -2", table), "((-2) * (-2))");
  table.signed_numbers = true;
  EXPECT_EQ(Read("-2 * - 2", table), "(-2 * (-2))");
  EXPECT_EQ(Read("+2 - 2", table), "(2 - 2)");
}

TEST(ExpressionParser, ReadsFromALevelOn) {
  EXPECT_EQ(Read("a + b < c", Table(), 1), "(a + b) | rest at 6");
  EXPECT_EQ(Read("a + (b < c)", Table(), 1), "(a + (b < c))");
}

TEST(ExpressionParser, StopsAtTokensThatEndIt) {
  EXPECT_EQ(Read("a -> b"), "a | rest at 2");
  EXPECT_EQ(Read("a - > b"), "line 1, column 5: expected a number, got \"> b\"");
}

TEST(ExpressionParser, ErrorsOfTheLanguageComeThrough) {
  EXPECT_EQ(Read("a + b @ c"), "bad at 6");
  EXPECT_EQ(Read("a +"), "line 1, column 4: expected a number, got the end");
}

}  // namespace
}  // namespace fusion
