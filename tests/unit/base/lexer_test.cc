#include "core/base/parse/lexer.h"

#include <gtest/gtest.h>

namespace fusion {
namespace {

TEST(Lexer, WordsAreMatchedWhole) {
  Lexer in("input in");
  EXPECT_FALSE(in.Accept("in"));
  EXPECT_TRUE(in.Accept("input"));
  EXPECT_TRUE(in.Accept("in"));
  EXPECT_TRUE(in.AtEnd());
}

TEST(Lexer, ReadsNumbersOfEveryForm) {
  Lexer in("-12 0x1.8p+1 inf -inf 7 # comment\n 9");
  EXPECT_EQ(in.Integer().value(), -12);
  EXPECT_EQ(in.Number().value(), 3.0);
  EXPECT_EQ(in.Number().value(), HUGE_VAL);
  EXPECT_EQ(in.Number().value(), -HUGE_VAL);
  EXPECT_EQ(in.Integer().value(), 7);
  EXPECT_EQ(in.Integer().value(), 9);
  EXPECT_FALSE(in.Integer().ok());
}

TEST(Lexer, ErrorsNameLineAndColumn) {
  Lexer in("a {\n  b ?");
  ASSERT_TRUE(in.Identifier().ok());
  ASSERT_TRUE(in.Expect("{").ok());
  ASSERT_TRUE(in.Identifier().ok());
  absl::Status status = in.Expect("}");
  EXPECT_EQ(Message(status), "line 2, column 5: expected '}', got \"?\"");
}

TEST(Lexer, IntegersOutOfRangeAreErrors) {
  EXPECT_FALSE(Lexer("99999999999999999999").Integer().ok());
}

}  // namespace
}  // namespace fusion
