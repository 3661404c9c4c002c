#include "core/smg/smg.h"

#include <gtest/gtest.h>

#include "core/graph/build/text.h"
#include "core/smg/slicers.h"
#include "core/smg/stream.h"

namespace fusion {
namespace {

struct Built {
  Program program;
  Smg smg;
};

Built Build(std::string_view text) {
  auto graph = ParseGraph(text);
  EXPECT_TRUE(graph.ok()) << graph.status();
  auto program = BuildProgram(*graph);
  EXPECT_TRUE(program.ok()) << program.status();
  std::vector<LoopId> all;
  for (size_t i = 0; i < program->ops.size(); ++i) all.push_back(static_cast<LoopId>(i));
  auto smg = BuildSmg(*program, all);
  EXPECT_TRUE(smg.ok()) << smg.status();
  EXPECT_EQ(ToString(*ParseSmg(ToString(*smg), *program)), ToString(*smg));
  return {*std::move(program), *std::move(smg)};
}

int Count(const Smg& smg, SmgMapping::Kind kind) {
  int n = 0;
  for (const SmgMapping& m : Mappings(smg)) n += m.kind == kind ? 1 : 0;
  return n;
}

DimId Find(const Smg& smg, int64_t extent) {
  for (size_t d = 0; d < smg.dims.size(); ++d) {
    if (smg.dims[d].extent == extent) return static_cast<DimId>(d);
  }
  return -1;
}

constexpr const char* kGemmSoftmaxGemm = R"(graph "gsg" {
  %0 = input "q" : f32[10,4]
  %1 = input "k" : f32[4,12]
  %2 = input "v" : f32[12,6]
  %3 = MatMul(%0, %1) : f32[10,12]  "s" @ "qk"
  %4 = Softmax(%3) {axis=-1} : f32[10,12]  "p" @ "sm"
  %5 = MatMul(%4, %2) : f32[10,6]  "o" @ "pv"
  output %5
}
)";

TEST(Smg, GemmSoftmaxGemmHasSixOneToAllAndFourAllToOne) {
  Built b = Build(kGemmSoftmaxGemm);
  EXPECT_EQ(b.smg.dims.size(), 4u) << ToString(b.smg);
  EXPECT_EQ(Count(b.smg, SmgMapping::kOneToAll), 6) << ToString(b.smg);
  EXPECT_EQ(Count(b.smg, SmgMapping::kAllToOne), 4) << ToString(b.smg);
}

TEST(Smg, GemmMapsAsInThePaper) {
  Built b = Build(R"(graph "g" {
  %0 = input "a" : f32[10,4]
  %1 = input "b" : f32[4,12]
  %2 = MatMul(%0, %1) : f32[10,12]  "c" @ "mm"
  output %2
}
)");
  EXPECT_EQ(ToString(b.smg), R"(smg {
  dims m:10 n:12 k:4
  op 0 MatMul @0 %2[m, n] = sum(%0[m, k], %1[k, n]) : mul(in0, in1) over [m, n, k]
  map %0 -> op 0 one-to-all n
  map %1 -> op 0 one-to-all m
  map op 0 -> %2 all-to-one k sum
}
)");
}

TEST(Smg, SelfAttentionKeepsQueriesAndKeysApart) {
  // X feeds both sides of the scores; uniting through X would make them S[m,m].
  Built b = Build(R"(graph "self" {
  %0 = input "x" : f32[10,4]
  %1 = Exp(%0) : f32[10,4]  "e" @ "e"
  %2 = Transpose(%1) {perm=[1, 0]} : f32[4,10]  "t" @ "t"
  %3 = MatMul(%1, %2) : f32[10,10]  "s" @ "qk"
  %4 = Softmax(%3) {axis=-1} : f32[10,10]  "p" @ "sm"
  %5 = MatMul(%4, %0) : f32[10,4]  "o" @ "pv"
  output %5
}
)");
  const SmgOp* qk = nullptr;
  for (const SmgOp& op : b.smg.ops) {
    if (op.label == "MatMul" && qk == nullptr) qk = &op;
  }
  ASSERT_NE(qk, nullptr);
  EXPECT_EQ(qk->dims.size(), 3u) << ToString(b.smg);
  EXPECT_EQ(qk->reads[0].relation, SmgRead::kAligned);
  EXPECT_EQ(qk->reads[1].relation, SmgRead::kAliased);
}

TEST(Smg, ReshapeSplitsDimsIntoAtoms) {
  Built b = Build(R"(graph "heads" {
  %0 = input "x" : f32[6,8]
  %1 = weight "w" : f32[8,8]
  %2 = MatMul(%0, %1) : f32[6,8]  "y" @ "fc"
  %3 = Reshape(%2) {shape=[6, 2, 4]} : f32[6,2,4]  "r" @ "r"
  %4 = Transpose(%3) {perm=[1, 0, 2]} : f32[2,6,4]  "t" @ "t"
  %5 = Softmax(%4) {axis=-1} : f32[2,6,4]  "s" @ "s"
  output %5
}
)");
  // m:6, n split into 2 x 4, k:8.
  EXPECT_EQ(b.smg.dims.size(), 4u) << ToString(b.smg);
  for (const SmgOp& op : b.smg.ops) {
    for (const SmgRead& read : op.reads) {
      if (read.producer < 0) continue;
      EXPECT_EQ(read.relation, SmgRead::kAligned);
    }
  }
}

TEST(Slicers, AttentionIsSlicedAlongQueriesOnly) {
  Built b = Build(kGemmSoftmaxGemm);
  DimId m = Find(b.smg, 10);
  DimId l = Find(b.smg, 12);
  DimId k = Find(b.smg, 4);
  DimId n = Find(b.smg, 6);
  EXPECT_TRUE(SliceSpatially(b.smg, m).sliceable);
  EXPECT_TRUE(SliceSpatially(b.smg, m).recomputed.empty());
  EXPECT_EQ(SliceSpatially(b.smg, l).reason, "reduced by op 1 ReduceMax");
  EXPECT_FALSE(SliceSpatially(b.smg, k).sliceable);
  // n of the second product is a One-to-All from an intermediate: every block would redo the
  // scores.
  SpatialVerdict over_n = SliceSpatially(b.smg, n);
  EXPECT_TRUE(over_n.sliceable);
  EXPECT_EQ(over_n.recomputed.size(), b.smg.ops.size() - 1);

  auto kind = [&](DimId d) { return StreamAlong(b.smg, b.program.outputs, d).kind; };
  EXPECT_EQ(kind(k), Streamed::kSimpleAggregate);
  EXPECT_EQ(kind(n), Streamed::kStream);
  EXPECT_EQ(kind(l), Streamed::kUpdateThenAggregate);
}

TEST(Slicers, TwoLayerMlpStreamsItsHiddenDim) {
  Built b = Build(R"(graph "mlp" {
  %0 = input "x" : f32[10,4]
  %1 = weight "w1" : f32[4,32]
  %2 = weight "w2" : f32[32,6]
  %3 = MatMul(%0, %1) : f32[10,32]  "h" @ "a"
  %4 = Relu(%3) : f32[10,32]  "r" @ "r"
  %5 = MatMul(%4, %2) : f32[10,6]  "y" @ "b"
  output %5
}
)");
  DimId hidden = Find(b.smg, 32);
  EXPECT_FALSE(SliceSpatially(b.smg, hidden).sliceable);
  EXPECT_EQ(StreamAlong(b.smg, b.program.outputs, hidden).kind, Streamed::kSimpleAggregate);
}

TEST(Slicers, ShiftedReadsForbidCuttingTheirDim) {
  // The rotation of RoPE: halves of d change places, so d must stay whole; rows are free.
  Built b = Build(R"(graph "rope" {
  %0 = input "x" : f32[6,8]
  %1 = weight "w" : f32[8,8]
  %2 = MatMul(%0, %1) : f32[6,8]  "y" @ "fc"
  %3 = Slice(%2) {ends=[4], starts=[0], axes=[1]} : f32[6,4]  "lo" @ "lo"
  %4 = Slice(%2) {ends=[8], starts=[4], axes=[1]} : f32[6,4]  "hi" @ "hi"
  %5 = Neg(%4) : f32[6,4]  "neg" @ "neg"
  %6 = Concat(%5, %3) {axis=1} : f32[6,8]  "rot" @ "rot"
  %7 = Add(%6, %2) : f32[6,8]  "out" @ "add"
  output %7
}
)");
  const SmgOp& add = b.smg.ops.back();
  ASSERT_EQ(add.dims.size(), 2u);
  EXPECT_TRUE(SliceSpatially(b.smg, add.dims[0]).sliceable)
      << SliceSpatially(b.smg, add.dims[0]).reason;
  EXPECT_FALSE(SliceSpatially(b.smg, add.dims[1]).sliceable);
}

}  // namespace
}  // namespace fusion
