// What is derived for windows: the mapping of a read that slides, and which dims may be cut into
// blocks that each compute their halo.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/graph/build/text.h"
#include "core/smg/slicers.h"
#include "tests/support/window_cases.h"

namespace fusion {
namespace {

Smg SmgOf(std::string_view text) {
  auto graph = ParseGraph(text);
  FUSION_CHECK(graph.ok(), Message(graph.status()));
  Program program = BuildProgram(*graph).value();
  std::vector<LoopId> loops;
  for (size_t i = 0; i < program.ops.size(); ++i) loops.push_back(static_cast<LoopId>(i));
  auto smg = BuildSmg(program, loops);
  FUSION_CHECK(smg.ok(), Message(smg.status()));
  return *std::move(smg);
}

// What the slicer says of the dims of the last op that have halos: "oh halo d2 oh + 2; ...".
std::string SlicesOf(const Smg& smg) {
  std::string out;
  for (DimId d : smg.ops.back().OutputDims()) {
    SpatialVerdict verdict = SliceSpatially(smg, d);
    if (verdict.halos.empty()) continue;
    StrAppend(&out,
              StrCat(out.empty() ? "" : "; ", smg.dim(d).name, " ", SpatialText(smg, d, verdict)));
  }
  return out;
}

class Windows : public ::testing::TestWithParam<WindowCase> {};

TEST_P(Windows, AreSlicedWithTheirHalos) {
  Smg smg = SmgOf(GetParam().graph);
  std::string slices = SlicesOf(smg);
  RecordProperty("slices", slices.empty() ? "windows tile their input" : slices);
  EXPECT_EQ(slices, GetParam().slices) << ToString(smg);
}

INSTANTIATE_TEST_SUITE_P(All, Windows, ::testing::ValuesIn(kWindowCases),
                         [](const auto& param) { return std::string(param.param.name); });

std::vector<std::string> MappingsOf(const Smg& smg, SmgMapping::Kind kind) {
  std::vector<std::string> out;
  for (const SmgMapping& m : Mappings(smg)) {
    if (m.kind == kind) out.push_back(LabelOf(smg, m));
  }
  return out;
}

TEST(WindowMapping, SaysStrideDilationAndPadding) {
  Smg smg = SmgOf(R"(graph "g" {
  %0 = input "x" : f32[1,4,12,14]
  %1 = weight "w" : f32[5,4,3,2]
  %2 = Conv(%0, %1) {dilations=[1, 2], pads=[0, 1, 2, 3], strides=[2, 3]} : f32[1,5,6,6]  "" @ ""
  output %2
}
)");
  EXPECT_THAT(MappingsOf(smg, SmgMapping::kWindow),
              ::testing::ElementsAre("window oh over kh:3 stride 2 dilation 1 pad 0 1",
                                     "window ow over kw:2 stride 3 dilation 2 pad 1 3"));
}

TEST(WindowMapping, IsNoneOfAHeadOfAttentionNorOfWindowsThatTileTheirInput) {
  Smg heads = SmgOf(R"(graph "g" {
  %0 = input "x" : f32[5,12]
  %1 = Reshape(%0) {shape=[5, 3, 4]} : f32[5,3,4]  "" @ ""
  %2 = ReduceSum(%1) {axes=[2], keepdims=0} : f32[5,3]  "" @ ""
  output %2
}
)");
  EXPECT_THAT(MappingsOf(heads, SmgMapping::kWindow), ::testing::IsEmpty());
}

TEST(SpatialSlicer, KeepsADimWholeThatIsReadAtOtherPlacesOfItself) {
  // e^x is added where it lies and pooled around it: one dim at two places.
  Smg smg = SmgOf(R"(graph "g" {
  %0 = input "x" : f32[1,4,8,9]
  %1 = Exp(%0) : f32[1,4,8,9]  "" @ ""
  %2 = MaxPool(%1) {kernel_shape=[3, 3], pads=[1, 1, 1, 1]} : f32[1,4,8,9]  "" @ ""
  %3 = Add(%2, %1) : f32[1,4,8,9]  "" @ ""
  output %3
}
)");
  const SmgOp& add = smg.ops.back();
  SpatialVerdict verdict = SliceSpatially(smg, add.OutputDims()[1]);
  EXPECT_FALSE(verdict.sliceable);
  EXPECT_THAT(verdict.reason, ::testing::HasSubstr("at other places along"));
}

TEST(SpatialSlicer, KeepsADimWholeIfWhatItsHaloIsOfIsReduced) {
  Smg smg = SmgOf(R"(graph "g" {
  %0 = input "x" : f32[1,4,9,8]
  %1 = weight "w" : f32[4,4,3,1]
  %2 = Softmax(%0) {axis=2} : f32[1,4,9,8]  "" @ ""
  %3 = Conv(%2, %1) : f32[1,4,7,8]  "" @ ""
  output %3
}
)");
  const SmgOp& conv = smg.ops.back();
  for (DimId d : conv.OutputDims()) {
    if (smg.dim(d).name == "oh") {
      EXPECT_FALSE(SliceSpatially(smg, d).sliceable) << ToString(smg);
    }
  }
}

}  // namespace
}  // namespace fusion
