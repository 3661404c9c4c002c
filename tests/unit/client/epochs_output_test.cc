#include "client/fusionctl/report/epochs_output.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace fusion {
namespace {

using testing::HasSubstr;
using testing::Not;

EpochList TwoEpochs() {
  EpochList list;
  for (int64_t number : {2, 1}) {
    list.epochs.push_back(
        {.number = number,
         .device = {"toy", "avx2", 1},
         .factors = {.memory = 2, .product = {{"f32", 0.5}}},
         .kernels = 9,
         .before = {.errors = {9, std::log(2), 1}, .rank = 0.5},
         .after = {.errors = {9, std::log(1.1), 1}, .choices = 3, .rank = 0.75},
         .events = {{1000, EpochState::kShadow, "better"}, {2000, EpochState::kActive, "proven"}},
         .plans = {{Sha256("p"), "bert", 20, 10, "changed"}}});
  }
  list.decisions.push_back({3000, 2, "", Sha256("p"), "bert", "made again"});
  list.decisions.push_back({1000, 0, "", Sha256("q"), "", "not fused"});
  return list;
}

TEST(EpochsOutput, SaysWhatIsInForceAndWhy) {
  const std::string text = EpochsText(TwoEpochs(), 10);
  EXPECT_THAT(text, HasSubstr("epoch 2: active, for toy, avx2, 1 thread, fitted to 9 kernels"));
  EXPECT_THAT(text, HasSubstr("median error 100.0 % -> 10.0 %"));
  EXPECT_THAT(text, HasSubstr("memory 2.00 x"));
  EXPECT_THAT(text, HasSubstr("products of f32 0.50 x"));
  EXPECT_THAT(text, HasSubstr("1970-01-01T00:00:02Z active: proven"));
  EXPECT_THAT(text, HasSubstr("of bert, epoch 2: made again"));
  EXPECT_THAT(text, HasSubstr(": not fused"));
}

TEST(EpochsOutput, OlderOnesAreCounted) {
  const std::string text = EpochsText(TwoEpochs(), 1);
  EXPECT_THAT(text, Not(HasSubstr("epoch 1:")));
  EXPECT_THAT(text, HasSubstr("and 1 older"));
  EXPECT_THAT(text, Not(HasSubstr("not fused")));
}

TEST(EpochsOutput, WithoutEpochsItSaysWhatPlansUse) {
  EXPECT_THAT(EpochsText({}, 10), HasSubstr("constants of the device specs"));
}

TEST(EpochsOutput, JsonHasEveryFigure) {
  const nlohmann::ordered_json json = EpochsJson(TwoEpochs(), 10);
  ASSERT_EQ(json["epochs"].size(), 2U);
  EXPECT_EQ(json["epochs"][0]["number"], 2);
  EXPECT_EQ(json["epochs"][0]["state"], "active");
  EXPECT_EQ(json["epochs"][0]["after"]["rank_correlation"], 0.75);
  EXPECT_EQ(json["epochs"][0]["after"]["choices"], 3);
  EXPECT_EQ(json["epochs"][0]["constants"].back()["factor"], 0.5);
  EXPECT_EQ(json["epochs"][0]["events"][1]["reason"], "proven");
  EXPECT_EQ(json["epochs"][0]["plans"][0]["new_us"], 10);
  EXPECT_EQ(json["decisions"][1]["text"], "not fused");
}

}  // namespace
}  // namespace fusion
