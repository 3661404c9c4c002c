#include "core/base/refusal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace fusion {
namespace {

TEST(Refusal, EveryCodeHasAWordOfItsOwnAndAMeaning) {
  std::set<std::string_view> words;
  int code = 1;
  for (const RefusalEntry& entry : RefusalTable()) {
    EXPECT_EQ(static_cast<int>(entry.code), code++) << entry.word << ": rows follow the enum";
    EXPECT_THAT(std::string(entry.word), testing::MatchesRegex("[a-z]+(-[a-z]+)*"));
    EXPECT_TRUE(words.insert(entry.word).second) << entry.word;
    EXPECT_GT(entry.meaning.size(), 20u) << entry.word;
    EXPECT_EQ(entry.meaning.find('\n'), std::string_view::npos) << entry.word;
    EXPECT_NE(entry.verdict, Verdict::kChosen) << entry.word;
    EXPECT_EQ(FindRefusal(entry.word), &entry);
    EXPECT_EQ(&RefusalRow(entry.code), &entry);
  }
}

TEST(Refusal, TextReadsBack) {
  Refusal refusal = Refuse(RefusalCode::kAlias, "Add reads %", 1, ": twice");
  EXPECT_EQ(refusal.ToString(), "alias: Add reads %1: twice");
  Refusal again = RefusalFrom(refusal.ToString());
  EXPECT_EQ(again.code, RefusalCode::kAlias);
  EXPECT_EQ(again.words, refusal.words);
  EXPECT_EQ(again.verdict(), Verdict::kRefused);
  EXPECT_EQ(Message(RefusalStatus(RefusalCode::kAlias, "Add")), "alias: Add");
}

TEST(Refusal, WordsOfNoCodeAreKept) {
  EXPECT_EQ(RefusalFrom("some: thing").code, RefusalCode::kNoSchedule);
  EXPECT_EQ(RefusalFrom("some: thing").words, "some: thing");
  EXPECT_TRUE(RefusalFrom("").empty());
  EXPECT_EQ(Refusal().ToString(), "");
  EXPECT_EQ(Refusal().verdict(), Verdict::kChosen);
  EXPECT_EQ(FindRefusal("somewhere"), nullptr);
}

}  // namespace
}  // namespace fusion
