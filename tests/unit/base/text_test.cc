#include "core/base/text/text.h"

#include <gtest/gtest.h>

#include <limits>

namespace fusion {
namespace {

TEST(Text, QuoteRoundTripsEveryByte) {
  std::string all;
  for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
  std::string quoted = Quote(all);
  for (char c : quoted) EXPECT_TRUE(c >= 0x20 && c < 0x7f);
  size_t pos = 0;
  std::string back;
  ASSERT_TRUE(Unquote(quoted, &pos, &back));
  EXPECT_EQ(back, all);
  EXPECT_EQ(pos, quoted.size());
}

TEST(Text, QuoteShowsNamesAsTheyAre) {
  EXPECT_EQ(Quote("\xe5\xb1\xa4/\"a\\b\""), "\"\xe5\xb1\xa4/\\\"a\\\\b\\\"\"");
  EXPECT_EQ(Quote("x\ny\xe2\x80\xaez\xff"), "\"x\\x0ay\\u202ez\\xff\"");
  for (const char* text :
       {"\xe5\xb1\xa4", "a\xe2\x80\xae", "\xd8\x9c", "\xc2\x9b", "\xe2\x80", "\\u202e"}) {
    size_t pos = 0;
    std::string back;
    ASSERT_TRUE(Unquote(Quote(text), &pos, &back));
    EXPECT_EQ(back, text);
  }
}

TEST(Text, QuoteShortCutsBetweenCharacters) {
  std::string name;
  for (int i = 0; i < 100; ++i) name += "\xe5\xb1\xa4";
  const std::string shown = QuoteShort(name);
  EXPECT_LT(shown.size(), 140U);
  EXPECT_EQ(shown.find("\\x"), std::string::npos) << shown;
}

TEST(Text, UnquoteRefusesBrokenStrings) {
  for (const char* text :
       {"", "abc", "\"open", "\"\\", "\"\\x1", "\"\\xzz\"", "\"\\u20\"", "\"\\u202\""}) {
    size_t pos = 0;
    std::string out;
    EXPECT_FALSE(Unquote(text, &pos, &out)) << text;
    EXPECT_EQ(pos, 0u);
  }
}

TEST(Text, HexDoubleReadsBackExactly) {
  for (double v : {0.0, -0.0, 1.0, 0.1, 1e-310, 1e300, -1.0 / 3}) {
    EXPECT_EQ(std::strtod(HexDouble(v).c_str(), nullptr), v);
  }
  EXPECT_EQ(HexDouble(std::numeric_limits<double>::infinity()), "inf");
  EXPECT_EQ(HexDouble(-std::numeric_limits<double>::infinity()), "-inf");
  EXPECT_EQ(HexDouble(std::numeric_limits<double>::quiet_NaN()), "nan");
}

TEST(Text, SplitKeepsEmptyPieces) {
  EXPECT_EQ(StrSplit("a,,b", ',').size(), 3u);
  EXPECT_EQ(StrSplit("", ',').size(), 1u);
}

TEST(Text, HumanBytesPicksTheUnit) {
  EXPECT_EQ(HumanBytes(512), "512 B");
  EXPECT_EQ(HumanBytes(1536), "1.50 KiB");
  EXPECT_EQ(HumanBytes(int64_t{3} << 30), "3.00 GiB");
}

}  // namespace
}  // namespace fusion
