#include "core/base/text/decimal_numbers.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "core/base/text/text.h"

namespace fusion {
namespace {

TEST(DecimalNumbers, HexFloatsBecomeWhatPeopleRead) {
  EXPECT_EQ(DecimalNumbers("max 0x1.8p+1, min -0x1p-2"), "max 3, min -0.25");
  EXPECT_EQ(DecimalNumbers("{alpha=f(0x1.99999ap-4)}"), "{alpha=f(0.10000000149011612)}");
  EXPECT_EQ(DecimalNumbers("x * 0x1p-1f + 0x0p+0"), "x * 0.5 + 0");
}

TEST(DecimalNumbers, AreTheSameNumbers) {
  for (double value : {0.1, 1e-310, 123456789.125, -7e300}) {
    EXPECT_EQ(std::strtod(DecimalNumbers(HexDouble(value)).c_str(), nullptr), value);
  }
}

TEST(DecimalNumbers, AllElseStays) {
  for (const char* text : {"", "0x", "0x1f", "key 0x1p", "0x1pq", "a0x1p+1", "0x1p+1_a", "0xp1",
                           "node \"0x1p+1\" (Add)", "\"a \\\" 0x1p+1\"", "\"0x1p+1"}) {
    EXPECT_EQ(DecimalNumbers(text), text);
  }
}

}  // namespace
}  // namespace fusion
