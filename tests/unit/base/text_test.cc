#include "core/base/text.h"

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

TEST(Text, UnquoteRefusesBrokenStrings) {
  for (const char* text : {"", "abc", "\"open", "\"\\", "\"\\x1", "\"\\xzz\""}) {
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
