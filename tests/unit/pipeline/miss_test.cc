#include "core/pipeline/requests/miss.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/hash.h"
#include "core/cache/memory/memory_store.h"
#include "tests/support/sample_bundle.h"

namespace fusion {
namespace {

using testing::HasSubstr;

std::string Key(const std::string& graph, const std::string& device, int threads) {
  return FieldHasher().Add("graph", graph).Add("device", device).Add("threads", threads).bytes();
}

class MissTest : public testing::Test {
 protected:
  Digest Put(const std::string& key, int64_t created = 1) {
    auto plan = std::make_shared<StoredPlan>(MakeStoredPlan(key, SamplePlan(), created));
    EXPECT_TRUE(store_.PutBundle({.plan = plan, .kernels = {}}).ok());
    return plan->key;
  }
  MissExplanation Explain(const std::string& key) {
    return ExplainMiss(key, store_, CancelToken(), Clock::Real());
  }
  MemoryStore store_{1 << 24, Logger::Silent()};
};

TEST_F(MissTest, AnEmptyStoreHasNothingNear) {
  const MissExplanation miss = Explain(Key("a", "cpu", 1));
  EXPECT_EQ(miss.nearest, std::nullopt);
  EXPECT_EQ(miss.compared, 0);
  EXPECT_EQ(miss.summary, "no other plan is stored");
}

TEST_F(MissTest, TheNearestDiffersInTheFewestFields) {
  Put(Key("another graph", "gpu", 4));
  const Digest nearest = Put(Key("a", "cpu", 2));
  Put(Key("a", "gpu", 2));
  const MissExplanation miss = Explain(Key("a", "cpu", 1));
  EXPECT_EQ(miss.nearest, nearest);
  EXPECT_EQ(miss.compared, 3);
  ASSERT_EQ(miss.differences.size(), 1);
  EXPECT_EQ(miss.differences[0].field, "threads");
  EXPECT_EQ(miss.differences[0].asked, "1");
  EXPECT_EQ(miss.differences[0].stored, "2");
  EXPECT_EQ(miss.summary, "a plan of the same graph is stored; it differs in threads");
}

TEST_F(MissTest, OfGraphsTheOneWithTheMostLinesInCommonIsNearest) {
  Put(Key("x\ny\nz\n", "cpu", 1));
  const Digest nearest = Put(Key("a\nb\nz\n", "cpu", 1));
  const MissExplanation miss = Explain(Key("a\nb\nc\n", "cpu", 1));
  EXPECT_EQ(miss.nearest, nearest);
  EXPECT_THAT(miss.summary, HasSubstr("of another graph"));
}

TEST_F(MissTest, ThePlanItselfIsNotTheNearest) {
  Put(Key("a", "cpu", 1));
  const Digest other = Put(Key("a", "cpu", 8));
  EXPECT_EQ(Explain(Key("a", "cpu", 1)).nearest, other);
}

TEST_F(MissTest, AFieldThatOneSideLacksIsADifference) {
  Put(FieldHasher().Add("graph", "a").Add("lock", "12").bytes());
  const MissExplanation miss = Explain(FieldHasher().Add("graph", "a").Add("guard", 1).bytes());
  ASSERT_EQ(miss.differences.size(), 2);
  EXPECT_EQ(miss.differences[0].field, "guard");
  EXPECT_EQ(miss.differences[0].stored, "");
  EXPECT_EQ(miss.differences[1].field, "lock");
  EXPECT_EQ(miss.differences[1].asked, "");
}

TEST_F(MissTest, NothingOfAnotherTenantIsShown) {
  auto key = [](const std::string& tenant, int threads) {
    return FieldHasher().Add("graph", "a").Add("threads", threads).Add("tenant", tenant).bytes();
  };
  Put(key("acme", 2));
  Put(Key("a", "cpu", 1));
  EXPECT_EQ(Explain(key("shop", 1)).nearest, std::nullopt);
  EXPECT_EQ(Explain(key("shop", 1)).compared, 0);
  EXPECT_NE(Explain(key("acme", 1)).nearest, std::nullopt);
}

TEST(DescribeDifference, OfLongTextsShowsTheFirstLineThatDiffers) {
  std::string a;
  for (int i = 0; i < 100; ++i) a += StrCat("%", i, " = Relu(%", i - 1, ") : f32[8,64]\n");
  std::string b = a;
  b.replace(b.find("%41 = Relu"), 10, "%41 = Tanh");
  b.replace(b.find("%77 = Relu"), 10, "%77 = Tanh");
  const KeyDifference difference = DescribeDifference("graph", a, b);
  EXPECT_EQ(difference.asked, "[42 of 101, 2 differ] %41 = Relu(%40) : f32[8,64]");
  EXPECT_EQ(difference.stored, "[42 of 101, 2 differ] %41 = Tanh(%40) : f32[8,64]");
}

TEST(Unlikeness, IsThePartThatIsNotCommon) {
  EXPECT_EQ(Unlikeness("a\nb", "a\nb"), 0);
  EXPECT_EQ(Unlikeness("a\nb", "b\na"), 0);
  EXPECT_EQ(Unlikeness("a\nb\nc\nd", "a\nb\nx\ny"), 0.5);
  EXPECT_EQ(Unlikeness("x", "y"), 1);
}

}  // namespace
}  // namespace fusion
