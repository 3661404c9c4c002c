#include "core/base/text/number_word.h"

#include <gtest/gtest.h>

namespace fusion {
namespace {

TEST(NumberError, NaNIsNone) {
  for (const char* word : {"0", "1.5", "-3", "1e9", "inf", "words are for others to refuse"}) {
    EXPECT_EQ(NumberError(word), "");
  }
  for (const char* word : {"nan", "-nan", "NaN", "nan(7)"}) {
    EXPECT_EQ(NumberError(word), std::string("expected a number, got \"") + word + "\"");
  }
}

}  // namespace
}  // namespace fusion
