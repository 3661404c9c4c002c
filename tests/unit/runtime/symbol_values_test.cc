#include "core/bundle/symbol_values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fusion {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

PlanTensor Open(std::vector<SizeExpr> sizes, int index, const std::vector<int64_t>& most) {
  PlanTensor t{.space = Space::kInput, .index = index, .sizes = std::move(sizes)};
  for (size_t d = 0; d < t.sizes.size(); ++d) t.dims.push_back(*t.sizes[d].Evaluate(most));
  t.strides = RowMajorStrides(t.dims);
  for (int64_t stride : t.strides) t.sizes.emplace_back(stride);
  return t;
}

// x [batch, seq], mask [batch, past + seq], where seq is a multiple of 8.
Plan OpenPlan() {
  Plan plan;
  plan.symbols = {
      {.least = 1, .most = 4}, {.least = 0, .most = 100}, {.least = 8, .most = 64, .multiple = 8}};
  const std::vector<int64_t> most = {4, 100, 8};
  const SizeExpr batch = SizeExpr::Sum({{1, {0}}});
  const SizeExpr seq = SizeExpr::Sum({{8, {2}}});
  const SizeExpr total = SizeExpr::Sum({{1, {1}}, {8, {2}}});
  plan.tensors = {Open({batch, seq}, 0, most), Open({batch, total}, 1, most)};
  plan.inputs = {0, 1};
  return plan;
}

const RunNames kNames = {{"x", "mask"}, {"batch", "past", "seq"}};

TEST(SymbolUnits, AreFoundOneAfterTheOther) {
  EXPECT_THAT(SymbolUnits(OpenPlan(), {{3, 16}, {3, 20}}).value(), ElementsAre(3, 4, 2));
  EXPECT_THAT(SymbolUnits(OpenPlan(), {{1, 64}, {1, 64}}).value(), ElementsAre(1, 0, 8));
}

TEST(SymbolUnits, NameWhatDoesNotFit) {
  auto why = [](const std::vector<Dims>& dims) {
    return std::string(SymbolUnits(OpenPlan(), dims, kNames).status().message());
  };
  EXPECT_THAT(why({{5, 16}, {5, 20}}),
              HasSubstr("dim 0 of input \"x\" is 5 = batch; the plan is for \"batch\" = 1..4"));
  EXPECT_THAT(why({{3, 12}, {3, 20}}), HasSubstr("\"seq\" = 8..64 in multiples of 8"));
  EXPECT_THAT(why({{3, 16}, {2, 20}}),
              HasSubstr("dim 0 of input \"mask\" is 2, expected 3 = batch"));
  EXPECT_THAT(why({{3, 16}, {3, 8}}), HasSubstr("dim 1 of input \"mask\" is 8"));
  EXPECT_THAT(why({{3, 16}, {3}}), HasSubstr("input \"mask\" has rank 1, expected 2"));
  EXPECT_THAT(why({{3, 16}}), HasSubstr("1 inputs given, the plan has 2"));
}

TEST(SymbolUnits, SaysWhichSymbolNoInputShows) {
  Plan plan = OpenPlan();
  plan.inputs = {0, -1};
  EXPECT_THAT(std::string(SymbolUnits(plan, {{3, 16}, {3, 20}}, kNames).status().message()),
              HasSubstr("no dim of an input that kernels read says what \"past\" is (of input "
                        "\"mask\" at most the shape is used)"));
}

TEST(DimsAt, EvaluatesDimsAndStrides) {
  const PlanTensor mask = OpenPlan().tensors[1];
  EXPECT_THAT(DimsAt(mask, {2, 10, 1}), ElementsAre(2, 18));
  EXPECT_THAT(DimsAt(PlanTensor{.dims = {7}, .strides = {1}}, {}), ElementsAre(7));
  EXPECT_THAT(StridesAt(mask, {2, 10, 1}), ElementsAre(164, 1));
}

TEST(CheckRange, NamesWhatIsWrong) {
  EXPECT_TRUE(CheckRange({.least = 0, .most = 64, .multiple = 8, .likely = 16}).ok());
  for (DimRange bad : {DimRange{.least = -1, .most = 4}, DimRange{.least = 5, .most = 4},
                       DimRange{.least = 1, .most = 4, .multiple = 0},
                       DimRange{.least = 1, .most = 8, .multiple = 8},
                       DimRange{.least = 1, .most = 4, .likely = 5}}) {
    EXPECT_TRUE(absl::IsInvalidArgument(CheckRange(bad)));
  }
}

TEST(VerifyPlan, SizesOutsideWhatTheLargestValuesSayAreRefused) {
  Plan plan = OpenPlan();
  for (PlanTensor& t : plan.tensors) t.bytes = 1 << 20;
  ASSERT_TRUE(Verify(plan).ok()) << Verify(plan);
  Plan shrinking = plan;
  shrinking.tensors[0].sizes[0] = SizeExpr::Sum({{-1, {0}}, {8, {}}});
  EXPECT_THAT(std::string(Verify(shrinking).message()), HasSubstr("plan tensor 0: size -s0 + 8"));
  Plan unknown = plan;
  unknown.tensors[0].sizes[0] = SizeExpr::Sum({{1, {3}}});
  EXPECT_THAT(std::string(Verify(unknown).message()), HasSubstr("size s3 of 3 symbols"));
  Plan few = plan;
  few.tensors[1].sizes.pop_back();
  EXPECT_THAT(std::string(Verify(few).message()), HasSubstr("3 sizes for rank 2"));
  Plan sample = plan;
  sample.samples = {{.values = {1}}};
  EXPECT_TRUE(absl::IsInvalidArgument(Verify(sample)));
}

}  // namespace
}  // namespace fusion
