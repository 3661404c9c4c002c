#include "core/schedule/tiles/legal_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/graph/build/text.h"
#include "core/schedule/lower/streamed_group.h"
#include "core/schedule/tiles/candidates.h"
#include "tests/support/dims.h"
#include "tests/support/sample_graphs.h"
#include "tests/support/whole_program.h"

namespace fusion {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

WholeProgram Whole(std::string_view text) {
  auto graph = ParseGraph(text);
  FUSION_CHECK(graph.ok(), Message(graph.status()));
  auto whole = AsOneGroup(BuildProgram(*graph).value());
  FUSION_CHECK(whole.ok(), Message(whole.status()));
  return *std::move(whole);
}

class EnumeratedChoices : public ::testing::TestWithParam<std::tuple<SampleGraph, const char*>> {};

TEST_P(EnumeratedChoices, AreLegal) {
  auto [sample, device_name] = GetParam();
  WholeProgram whole = Whole(sample.text);
  DeviceSpec device = DeviceNamed(device_name, 2);
  for (bool bitwise : {false, true}) {
    CandidateOptions options{.limit = 100, .bitwise = bitwise};
    for (const Choice& choice : EnumerateChoices(whole.group, device, options, nullptr)) {
      absl::Status legal = CheckChoice(whole.group, choice, device, bitwise);
      EXPECT_TRUE(legal.ok()) << legal;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(SampleGraphs, EnumeratedChoices,
                         ::testing::Combine(::testing::ValuesIn(kSampleGraphs),
                                            ::testing::Values("generic-avx512", "h100",
                                                              "ascend_910b")),
                         [](const auto& param) {
                           std::string device = std::get<1>(param.param);
                           std::replace(device.begin(), device.end(), '-', '_');
                           return StrCat(std::get<0>(param.param).name, "_", device);
                         });

// Extents tell the dims apart: 10 queries, 12 keys, products over 4 and 12.
class CheckAttention : public ::testing::Test {
 protected:
  CheckAttention() {
    choice_ = EnumerateChoices(whole_.group, device_, {}, nullptr).at(0);
    queries_ = DimOf(whole_.group.smg, 10);
    keys_ = DimOf(whole_.group.smg, 12);
  }

  std::string Refusal(bool bitwise = false) const {
    absl::Status status = CheckChoice(whole_.group, choice_, device_, bitwise);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    return std::string(Message(status));
  }

  const WholeProgram whole_ = Whole(R"(graph "g" {
  %0 = input "q" : f32[10,4]
  %1 = input "k" : f32[4,12]
  %2 = input "v" : f32[12,6]
  %3 = MatMul(%0, %1) : f32[10,12]  "" @ ""
  %4 = Softmax(%3) {axis=-1} : f32[10,12]  "" @ ""
  %5 = MatMul(%4, %2) : f32[10,6]  "" @ ""
  output %5
}
)");
  const DeviceSpec device_ = DeviceNamed("generic-avx2", 2);
  Choice choice_;
  DimId queries_ = -1;
  DimId keys_ = -1;
};

TEST_F(CheckAttention, OnlyQueriesMayBeBlocks) {
  EXPECT_THAT(ParallelDims(whole_.group, /*forbid_recompute=*/true), ElementsAre(queries_));
  choice_.grid = {{keys_, 4}};
  EXPECT_THAT(Refusal(), HasSubstr("grid: dim "));
  EXPECT_THAT(Refusal(), HasSubstr(" cannot be cut into parallel blocks"));
  choice_.grid = {{99, 4}};
  EXPECT_THAT(Refusal(), HasSubstr("grid: no dim 99"));
  choice_.grid = {{queries_, 4}, {queries_, 4}};
  EXPECT_THAT(Refusal(), HasSubstr(" twice"));
  for (int64_t tile : {-1, 0, 11}) {
    choice_.grid = {{queries_, tile}};
    EXPECT_THAT(Refusal(), HasSubstr("; expected 1..10"));
  }
}

TEST_F(CheckAttention, ARefusedDimSaysWhy) {
  EXPECT_EQ(WhyNotParallel(whole_.group, queries_, /*forbid_recompute=*/true), "");
  EXPECT_THAT(WhyNotParallel(whole_.group, keys_, false), HasSubstr("reduced by op "));
  // Every block of the columns of the result would need all of the probabilities.
  DimId columns = DimOf(whole_.group.smg, 6);
  EXPECT_THAT(WhyNotParallel(whole_.group, columns, false),
              HasSubstr("every block would compute the whole of op 0 MatMul"));
  choice_.grid = {{keys_, 4}};
  EXPECT_THAT(Refusal(), HasSubstr(" cannot be cut into parallel blocks: reduced by op "));
}

TEST_F(CheckAttention, KeysMayBeStreamed) {
  const Choice base = choice_;
  choice_ = base.Streaming(StreamGroup(whole_.group, keys_), 5);
  EXPECT_TRUE(CheckChoice(whole_.group, choice_, device_, false).ok());
  EXPECT_THAT(Refusal(/*bitwise=*/true), HasSubstr("bitwise numerics forbid it"));
  for (int64_t tile : {0, 13}) {
    choice_ = base.Streaming(StreamGroup(whole_.group, keys_), tile);
    EXPECT_THAT(Refusal(), HasSubstr("streamed: tile "));
  }
  choice_ = base.Streaming(StreamGroup(whole_.group, queries_), 5);
  EXPECT_THAT(Refusal(), HasSubstr("streamed: no op reduces dim "));
}

TEST_F(CheckAttention, EveryProductHasABlockOfTheDevice) {
  const Choice good = choice_;
  ASSERT_EQ(choice_.products.size(), 2u);
  choice_.products.begin()->second.block = {1000, 1000};
  EXPECT_THAT(Refusal(), HasSubstr("has no block of 1000 rows of 1000"));
  choice_ = good;
  choice_.products.erase(choice_.products.begin());
  EXPECT_THAT(Refusal(), HasSubstr(" has no entry"));
  choice_ = good;
  choice_.products[1000] = good.products.begin()->second;
  EXPECT_THAT(Refusal(), HasSubstr("op 1000 is no matrix product"));
  // The probabilities lie on chip.
  choice_ = good;
  auto last = std::prev(choice_.products.end());
  last->second.swap = false;
  last->second.stage_rows = true;
  EXPECT_THAT(Refusal(), HasSubstr("stage_rows, but its rows lie on chip already"));
}

// What is read at every and at every second place is reached ever further apart: a block a place
// would have windows of as many lengths as there are places.
TEST(CheckChoice, WindowsThatGrowNeedLongTiles) {
  WholeProgram whole = Whole(R"(graph "g" {
  %0 = input "x" : f32[1,1,3,8193]
  %1 = Sigmoid(%0) : f32[1,1,3,8193]  "" @ ""
  %2 = Slice(%1) {axes=[3], ends=[4097], starts=[0]} : f32[1,1,3,4097]  "" @ ""
  %3 = MaxPool(%2) {kernel_shape=[1, 2]} : f32[1,1,3,4096]  "" @ ""
  %4 = MaxPool(%1) {kernel_shape=[1, 3], strides=[1, 2]} : f32[1,1,3,4096]  "" @ ""
  %5 = Add(%3, %4) : f32[1,1,3,4096]  "" @ ""
  output %5
}
)");
  DeviceSpec device = DeviceNamed("generic-avx2");
  DimId places = DimOf(whole.group.smg, 4096);
  Choice choice;
  choice.grid = {{places, 64}};
  EXPECT_TRUE(CheckChoice(whole.group, choice, device, false).ok());
  choice.grid = {{places, 1}};
  absl::Status status = CheckChoice(whole.group, choice, device, false);
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(Message(status)),
              HasSubstr("have more than 1024 lengths; expected longer tiles"));
}

WholeProgram ProductOf(std::string_view a, std::string_view b) {
  return Whole(StrCat("graph \"g\" {\n  %0 = ", a, " \"a\" : f32[8,4]\n  %1 = ", b,
                      R"( "b" : f32[4,6]
  %2 = MatMul(%0, %1) : f32[8,6]  "" @ ""
  output %2
}
)"));
}

// The rows of an activation lie apart: a constant behind them is packed into columns.
TEST(OperandRoles, AConstantMakesTheColumns) {
  EXPECT_THAT(OperandRoles(ProductOf("input", "weight").group, 0), ElementsAre(false));
}

// Columns of an activation lie side by side as they are: a constant before it may give the rows.
TEST(OperandRoles, AConstantMayGiveTheRowsOfColumnsThatLieSideBySide) {
  EXPECT_THAT(OperandRoles(ProductOf("weight", "input").group, 0), ElementsAre(true, false));
  EXPECT_THAT(OperandRoles(ProductOf("input", "input").group, 0), ElementsAre(false, true));
}

}  // namespace
}  // namespace fusion
