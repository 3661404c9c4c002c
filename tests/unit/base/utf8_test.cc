#include "core/base/text/utf8.h"

#include <gtest/gtest.h>

#include "core/base/text/cells.h"

namespace fusion {
namespace {

TEST(Utf8, ActsOnTextIsEscapedAndTheRestStays) {
  EXPECT_EQ(OneLine("\xe3\x83\xa2\xe3\x83\x87\xe3\x83\xab caf\xc3\xa9 \xf0\x9f\x98\x80"),
            "\xe3\x83\xa2\xe3\x83\x87\xe3\x83\xab caf\xc3\xa9 \xf0\x9f\x98\x80");
  EXPECT_EQ(OneLine("a\nb\tc\x1b[31m\x7f"), "a\\x0ab\\x09c\\x1b[31m\\x7f");
  EXPECT_EQ(OneLine("\xe2\x80\xae \xe2\x81\xa6 \xe2\x80\xa8 \xc2\x9b"),
            "\\u202e \\u2066 \\u2028 \\u009b");
  EXPECT_EQ(OneLine("\xff\xc0\xaf \xed\xa0\x80 \xe2\x82"),
            "\\xff\\xc0\\xaf \\xed\\xa0\\x80 \\xe2\\x82")
      << "no UTF-8";
}

TEST(Utf8, PartsEndBetweenCharacters) {
  const std::string text = "ab\xe3\x83\xa2z";  // 2 + 3 + 1 bytes
  EXPECT_EQ(Utf8Prefix(text, 6), text);
  EXPECT_EQ(Utf8Prefix(text, 5), "ab\xe3\x83\xa2");
  EXPECT_EQ(Utf8Prefix(text, 4), "ab");
  EXPECT_EQ(Utf8Prefix(text, 3), "ab");
  EXPECT_EQ(Utf8Prefix(text, 0), "");
  EXPECT_EQ(Utf8Suffix(text, 6), text);
  EXPECT_EQ(Utf8Suffix(text, 4), "\xe3\x83\xa2z");
  EXPECT_EQ(Utf8Suffix(text, 3), "z");
  EXPECT_EQ(Utf8Suffix(text, 0), "");
  EXPECT_EQ(Utf8Prefix(std::string(9, '\x83'), 4), std::string(4, '\x83')) << "no UTF-8";
  EXPECT_EQ(Utf8Suffix(std::string(9, '\x83'), 4), std::string(4, '\x83'));
}

TEST(ShownJson, IsTheSameJson) {
  EXPECT_EQ(ShownJson("{\n  \"a\": \"x\xc2\x9b\xe2\x80\xae\x7f caf\xc3\xa9\"\n}"),
            "{\n  \"a\": \"x\\u009b\\u202e\\u007f caf\xc3\xa9\"\n}");
}

TEST(Cells, WideCharactersTakeTwo) {
  EXPECT_EQ(CellsOf("abc"), 3U);
  EXPECT_EQ(CellsOf("caf\xc3\xa9"), 4U);
  EXPECT_EQ(CellsOf("\xe3\x83\xa2\xe3\x83\x87\xe3\x83\xab"), 6U);
  EXPECT_EQ(CellsOf("e\xcc\x81"), 1U) << "a mark is on its letter";
  EXPECT_EQ(CellsOf("\x1b[1mone\x1b[0m"), 3U);
  EXPECT_EQ(CellsOf("\xff"), 1U);
}

TEST(Cells, WhatIsLongerLosesItsMiddle) {
  EXPECT_EQ(CutToCells("short", 5), "short");
  EXPECT_EQ(CutToCells("abcdefghij", 9), "abc...hij");
  EXPECT_EQ(CutToCells("abcdefghij", 8), "abc...ij");
  EXPECT_EQ(CutToCells("abcdefghij", 2), "..");
  // Half of a wide character is none.
  EXPECT_EQ(CutToCells("\xe3\x83\xa2\xe3\x83\x87\xe3\x83\xab.onnx", 10),
            "\xe3\x83\xa2\xe3\x83\x87...nnx");
  for (size_t most = 0; most < 12; ++most) {
    EXPECT_LE(CellsOf(CutToCells("\xe3\x83\xa2\xe3\x83\x87\xe3\x83\xab.onnx", most)), most);
  }
}

}  // namespace
}  // namespace fusion
