#include "core/schedule/tiles/near_choices.h"

#include <gtest/gtest.h>

#include <set>

#include "core/graph/build/text.h"
#include "core/schedule/tiles/candidates.h"
#include "core/schedule/tiles/legal_choice.h"
#include "tests/support/whole_program.h"

namespace fusion {
namespace {

WholeProgram GroupOf(std::string_view text) {
  return AsOneGroup(BuildProgram(ParseGraph(text).value()).value()).value();
}

constexpr std::string_view kProduct = R"(graph "g" {
  %0 = input "x" : f32[128,96]
  %1 = input "w" : f32[96,160]
  %2 = MatMul(%0, %1) : f32[128,160]  "" @ ""
  %3 = Relu(%2) : f32[128,160]  "" @ ""
  output %3
}
)";

constexpr std::string_view kRows = R"(graph "g" {
  %0 = input "x" : f32[512,256]
  %1 = Softmax(%0) {axis=-1} : f32[512,256]  "" @ ""
  output %1
}
)";

TEST(ChoicesNear, AreLegalAndDifferentAndHaveSchedules) {
  const DeviceSpec device = DeviceNamed("generic-avx512", 2);
  for (std::string_view text : {kProduct, kRows}) {
    for (bool bitwise : {false, true}) {
      const WholeProgram whole = GroupOf(text);
      CandidateOptions options{.bitwise = bitwise};
      const Choice pick = EnumerateChoices(whole.group, device, options, nullptr).at(0);
      const std::vector<Choice> near = ChoicesNear(whole.group, pick, device, bitwise);
      EXPECT_FALSE(near.empty());
      std::set<std::string> schedules = {
          ToString(Lower(whole.group, pick, device, bitwise)->schedule)};
      size_t lowered = 0;
      for (const Choice& choice : near) {
        EXPECT_TRUE(CheckChoice(whole.group, choice, device, bitwise).ok());
        absl::StatusOr<Lowered> made = Lower(whole.group, choice, device, bitwise);
        if (!made.ok()) continue;
        ++lowered;
        schedules.insert(ToString(made->schedule));
      }
      EXPECT_GT(lowered, 1u);
      EXPECT_GT(schedules.size(), 2u);
    }
  }
}

TEST(ChoicesNear, ProductsGetOtherBlocksAndDimsOtherTiles) {
  const DeviceSpec device = DeviceNamed("generic-avx512", 2);
  const WholeProgram whole = GroupOf(kProduct);
  const Choice pick = EnumerateChoices(whole.group, device, {}, nullptr).at(0);
  bool other_block = false;
  bool more_blocks = false;
  auto blocks = [&](const Choice& choice) {
    int64_t count = 1;
    for (const GridDim& g : choice.grid) {
      count *= (whole.group.smg.dim(g.dim).extent + g.tile - 1) / g.tile;
    }
    return count;
  };
  for (const Choice& choice : ChoicesNear(whole.group, pick, device, false)) {
    const RegisterBlock& a = choice.products.begin()->second.block;
    const RegisterBlock& b = pick.products.begin()->second.block;
    other_block |= a.m != b.m || a.n != b.n;
    more_blocks |= blocks(choice) > blocks(pick);
  }
  EXPECT_TRUE(other_block);
  EXPECT_TRUE(more_blocks);
}

}  // namespace
}  // namespace fusion
