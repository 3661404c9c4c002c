// What the temporal slicer derives. That what it derives is right is shown where it is lowered
// (unit/schedule) and compiled (conformance).
#include "core/smg/stream.h"

#include <gtest/gtest.h>

#include "core/graph/text.h"
#include "core/smg/smg.h"
#include "tests/support/stream_cases.h"

namespace fusion {
namespace {

struct Built {
  Program program;
  Smg smg;
  DimId dim = -1;
};

Built Build(const StreamCase& c) {
  auto graph = ParseGraph(c.graph);
  FUSION_CHECK(graph.ok(), Message(graph.status()));
  Built out;
  out.program = BuildProgram(*graph).value();
  std::vector<LoopId> all;
  for (size_t i = 0; i < out.program.ops.size(); ++i) all.push_back(static_cast<LoopId>(i));
  out.smg = BuildSmg(out.program, all).value();
  for (size_t d = 0; d < out.smg.dims.size(); ++d) {
    if (out.smg.dims[d].extent == c.extent) out.dim = static_cast<DimId>(d);
  }
  return out;
}

std::string Describe(const Streamed& streamed) {
  return StrCat("kind ", streamed.kind, "; ", streamed.refusal.ToString(), "\n",
                StrJoin(streamed.certificate, "\n"), "\n", ToString(streamed.smg));
}

class Streams : public ::testing::TestWithParam<StreamCase> {};

TEST_P(Streams, AsDerived) {
  const StreamCase& c = GetParam();
  Built b = Build(c);
  ASSERT_GE(b.dim, 0);
  Streamed streamed = StreamAlong(b.smg, b.program.outputs, b.dim);
  EXPECT_EQ(streamed.kind, c.kind) << Describe(streamed);
  const Refusal& refusal = c.kind == Streamed::kRefused ? streamed.refusal : streamed.apart;
  EXPECT_EQ(refusal.empty() ? "" : RefusalRow(refusal.code).word, c.refusal) << refusal.words;
  if (c.kind == Streamed::kRefused) return;
  EXPECT_EQ(streamed.needed.size(), c.needed) << Describe(streamed);
  // An equal form: outputs are written, ops come behind what they read.
  for (size_t i = 0; i < streamed.smg.ops.size(); ++i) {
    for (const SmgRead& read : streamed.smg.ops[i].reads) {
      EXPECT_LT(read.producer, static_cast<int>(i)) << Describe(streamed);
    }
  }
  for (ValueId v : b.program.outputs) {
    EXPECT_TRUE(std::any_of(streamed.smg.ops.begin(), streamed.smg.ops.end(),
                            [&](const SmgOp& op) { return op.output == v; }));
  }
  EXPECT_EQ(streamed.rewritten, !streamed.certificate.empty()) << Describe(streamed);
}

INSTANTIATE_TEST_SUITE_P(Cases, Streams, ::testing::ValuesIn(kStreamCases),
                         [](const auto& param) { return std::string(param.param.name); });

// Each law is needed: without it some case comes out otherwise.
TEST(Streams, NoLawIsIdle) {
  for (int r = 0; r < kAlgebraRuleCount; ++r) {
    AlgebraRules rules = AlgebraRules().Without(static_cast<AlgebraRule>(r));
    bool differs = false;
    for (const StreamCase& c : kStreamCases) {
      Built b = Build(c);
      Streamed with = StreamAlong(b.smg, b.program.outputs, b.dim);
      Streamed without = StreamAlong(b.smg, b.program.outputs, b.dim, rules);
      differs = differs || with.kind != without.kind ||
                with.refusal.words != without.refusal.words ||
                with.certificate != without.certificate;
    }
    EXPECT_TRUE(differs) << "law " << r;
  }
}

}  // namespace
}  // namespace fusion
