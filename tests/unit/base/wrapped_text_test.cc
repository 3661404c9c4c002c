#include "core/base/text/wrapped_text.h"

#include <gtest/gtest.h>

namespace fusion {
namespace {

TEST(Wrapped, BreaksAtSpaces) {
  EXPECT_EQ(Wrapped("one two three four", 10), "one two\n  three\n  four");
  EXPECT_EQ(Wrapped("  in: a b c d e f", 10), "  in: a b\n    c d e\n    f");
  EXPECT_EQ(Wrapped("short\nlines\n", 10), "short\nlines\n");
  EXPECT_EQ(Wrapped("a averylongwordthatfitsnowhere b", 10),
            "a\n  averylongwordthatfitsnowhere\n  b");
  EXPECT_EQ(Wrapped("one two three four", 0), "one two three four");
  EXPECT_EQ(Wrapped("trailing          ", 10), "trailing");
  EXPECT_EQ(Wrapped("\x1b[1mone two\x1b[0m", 7), "\x1b[1mone two\x1b[0m") << "colours take no room";
  EXPECT_EQ(Wrapped("--a    one two three", 12, 7), "--a    one\n      two\n      three")
      << "at most in the middle";
  EXPECT_EQ(Wrapped("--a  one two three", 12, 5), "--a  one two\n     three");
  EXPECT_EQ(Wrapped("caf\xc3\xa9 tw", 7), "caf\xc3\xa9 tw") << "a character is a cell";
  EXPECT_EQ(Wrapped("\xe5\xb1\xa4\xe5\xb1\xa4 two", 7), "\xe5\xb1\xa4\xe5\xb1\xa4\n  two")
      << "a wide one is two";
}

}  // namespace
}  // namespace fusion
