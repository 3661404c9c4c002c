// How a reduced dim is split. That what is derived is right is shown where it is lowered
// (unit/schedule) and compiled (conformance).
#include "core/smg/split.h"

#include <gtest/gtest.h>

#include "core/graph/build/text.h"
#include "tests/support/dims.h"
#include "tests/support/stream_cases.h"

namespace fusion {
namespace {

Smg SmgOf(const char* text, Program* program) {
  auto graph = ParseGraph(text);
  FUSION_CHECK(graph.ok(), Message(graph.status()));
  *program = BuildProgram(*graph).value();
  std::vector<LoopId> all;
  for (size_t i = 0; i < program->ops.size(); ++i) all.push_back(static_cast<LoopId>(i));
  return BuildSmg(*program, all).value();
}

class Splits : public ::testing::TestWithParam<StreamCase> {};

TEST_P(Splits, WhereStreamsReduce) {
  const StreamCase& c = GetParam();
  Program program;
  Smg smg = SmgOf(c.graph, &program);
  DimId dim = DimOf(smg, c.extent);
  Split split = SplitAlong(smg, program.outputs, dim, 3);
  bool reduced = c.kind != Streamed::kRefused && c.kind != Streamed::kStream;
  EXPECT_EQ(split.refusal.empty(), reduced) << split.refusal.words;
  if (!reduced) return;
  EXPECT_FALSE(split.states.empty());
  // The parts are a dim of every partial result, and what the merge adds to what is reduced.
  for (const SplitState& state : split.states) EXPECT_EQ(state.shape[0], 3);
  auto parts = static_cast<DimId>(split.partial.dims.size()) - 1;
  EXPECT_EQ(split.partial.dim(parts).extent, 3) << ToString(split.partial);
  for (const Smg* phase : {&split.partial, &split.merge}) {
    for (size_t i = 0; i < phase->ops.size(); ++i) {
      for (const SmgRead& read : phase->ops[i].reads) EXPECT_LT(read.producer, static_cast<int>(i));
    }
  }
  size_t merged = 0;
  for (const SmgOp& op : split.merge.ops) {
    if (op.Reduces(static_cast<DimId>(split.merge.dims.size()) - 1)) ++merged;
  }
  EXPECT_GT(merged, 0u) << ToString(split.merge);
  EXPECT_LE(merged, split.states.size()) << ToString(split.merge);
}

INSTANTIATE_TEST_SUITE_P(Cases, Splits, ::testing::ValuesIn(kStreamCases),
                         [](const auto& param) { return std::string(param.param.name); });

TEST(Split, NeedsPartsOfEqualLengthAndAReducedDim) {
  Program program;
  Smg smg = SmgOf(kStreamCases[0].graph, &program);
  DimId keys = DimOf(smg, 12);
  for (int64_t parts : {0, 1, 5, 12, 13}) {
    EXPECT_EQ(SplitAlong(smg, program.outputs, keys, parts).refusal.code, RefusalCode::kNoSchedule)
        << parts;
  }
  EXPECT_FALSE(SplitAlong(smg, program.outputs, DimOf(smg, 10), 2).refusal.empty());
}

}  // namespace
}  // namespace fusion
