#include "core/base/text/nearest_word.h"

#include <gtest/gtest.h>

namespace fusion {
namespace {

TEST(NearestWord, IsTheOneThatWasMeant) {
  const std::vector<std::string> commands = {"plan", "run", "bench", "verify", "status", "store"};
  EXPECT_EQ(NearestWord("paln", commands), "plan");
  EXPECT_EQ(NearestWord("benhc", commands), "bench");
  EXPECT_EQ(NearestWord("verfy", commands), "verify");
  EXPECT_EQ(NearestWord("stat", commands), "status");
  EXPECT_EQ(NearestWord("st", commands), "") << "two begin so";
  EXPECT_EQ(NearestWord("foo", commands), "");
  EXPECT_EQ(NearestWord("", commands), "");
  EXPECT_EQ(NearestWord(std::string(100'000, 'p'), commands), "");
}

TEST(DidYouMean, SaysItOrNothing) {
  EXPECT_EQ(DidYouMean("--thread", {"--threads", "--server"}), "; did you mean --threads?");
  EXPECT_EQ(DidYouMean("--colour", {"--threads", "--server"}), "");
}

}  // namespace
}  // namespace fusion
