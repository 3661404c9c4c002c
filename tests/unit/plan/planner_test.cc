#include "core/plan/planner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/graph/build/builder.h"
#include "core/graph/build/canonical.h"
#include "core/graph/build/text.h"
#include "core/wire/plan.h"
#include "tests/support/kernel_harness.h"
#include "tests/support/no_gain_seeds.h"
#include "tests/support/plan_cases.h"
#include "tests/support/random_graph.h"

namespace fusion {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

PlannedModel PlanOf(const Graph& graph, const PlanOptions& options = {},
                    const std::map<NodeId, std::string>& unfused_nodes = {}) {
  auto model =
      MakePlan(graph, DeviceNamed("intel-skylake-server", 2), options, nullptr, unfused_nodes);
  FUSION_CHECK(model.ok(), Message(model.status()));
  return *std::move(model);
}

// Element-wise ops only: fused, a third of the traffic.
constexpr const char* kChain = R"(graph "chain" {
  %0 = input "x" : f32[512,512]
  %1 = Relu(%0) : f32[512,512]  "" @ "a"
  %2 = Neg(%1) : f32[512,512]  "" @ "b"
  %3 = Abs(%2) : f32[512,512]  "" @ "c"
  output %3
}
)";

// A value too large for the cache, summed over two dims of which the inner one could be sliced.
constexpr const char* kTwoSummedDims = R"(graph "two" {
  %0 = input "x" : f32[2,256,2048]
  %1 = weight "w" : f32[4096,64]
  %2 = Tanh(%0) : f32[2,256,2048]  "" @ ""
  %3 = Transpose(%2) {perm=[1, 0, 2]} : f32[256,2,2048]  "" @ ""
  %4 = Reshape(%3) {shape=[256, 4096]} : f32[256,4096]  "" @ ""
  %5 = MatMul(%4, %1) : f32[256,64]  "" @ ""
  output %5
}
)";

std::string Schedules(const PlannedModel& model) {
  return StrJoin(model.kernels, "\n", [](const PlannedKernel& kernel) { return kernel.text; });
}

// Largest estimate of recomputation.
int64_t RecomputeBytes(const Plan& plan) {
  int64_t most = 0;
  for (const PlanGroup& g : plan.groups) most = std::max(most, g.estimate.recompute_bytes);
  return most;
}

TEST(MakePlan, BitwiseSumsAreNotSlicedWithinAnOuterDim) {
  Graph graph = GraphOf(kTwoSummedDims);
  // Slices of the inner dim: each adds up both halves of the outer one.
  constexpr const char* kSlice = "loop k_i:";
  EXPECT_THAT(Schedules(PlanOf(graph)), HasSubstr(kSlice));
  PlannedModel bitwise = PlanOf(graph, {.numerics = Numerics::kBitwise});
  EXPECT_THAT(Schedules(bitwise), Not(HasSubstr(kSlice)));
}

TEST(MakePlan, MatMulAddReluIsOneKernel) {
  PlannedModel model = PlanOf(GraphOf(kMatMulAddRelu));
  EXPECT_EQ(Labels(model), std::vector<std::string>{"MatMul+Add+Relu"});
  const Plan& plan = model.plan;
  EXPECT_EQ(plan.target, "intel-skylake-server");
  EXPECT_EQ(plan.isa, "avx512");
  EXPECT_EQ(plan.threads, 2);
  EXPECT_EQ(plan.nodes, 3);
  EXPECT_EQ(plan.totals.kernels, 1);
  EXPECT_EQ(plan.op_by_op.kernels, 3);
  int64_t kernels_apart = 0;
  for (const PlanGroup& group : plan.groups) kernels_apart += group.op_by_op.kernels;
  EXPECT_EQ(kernels_apart, plan.op_by_op.kernels);
  EXPECT_EQ(plan.totals.activation_bytes, 128 * (256 + 512) * 4);
  EXPECT_EQ(plan.op_by_op.activation_bytes, 128 * (256 + 512 + 4 * 512) * 4);
  EXPECT_EQ(plan.arena_bytes, 0);
  EXPECT_LT(plan.totals.estimated_us, plan.op_by_op.estimated_us);
  EXPECT_EQ(plan.kernels.size(), model.kernels.size());
  EXPECT_EQ(plan.groups.size(), model.groups.size());
}

TEST(MakePlan, OpByOpIsOneKernelANode) {
  PlannedModel fused = PlanOf(GraphOf(kMatMulAddRelu));
  PlannedModel model = PlanOf(GraphOf(kMatMulAddRelu), {.fusion = FusionMode::kOpByOp});
  EXPECT_EQ(Labels(model), (std::vector<std::string>{"MatMul", "Add", "Relu"}));
  EXPECT_EQ(model.plan.candidates, 0);
  EXPECT_EQ(model.plan.totals.kernels, 3);
  // The baseline of the fused plan is this plan.
  for (const PlanTotals& totals : {model.plan.op_by_op, fused.plan.op_by_op}) {
    EXPECT_EQ(totals.launches, model.plan.totals.launches);
    EXPECT_EQ(totals.activation_bytes, model.plan.totals.activation_bytes);
    EXPECT_EQ(totals.weight_bytes, model.plan.totals.weight_bytes);
    EXPECT_DOUBLE_EQ(totals.estimated_us, model.plan.totals.estimated_us);
  }
}

TEST(MakePlan, ElementwiseOpsWorkInPlace) {
  // Both intermediates fit one place: the input is the caller's and must stay as it is.
  PlannedModel model = PlanOf(GraphOf(kChain), {.fusion = FusionMode::kOpByOp});
  EXPECT_EQ(model.plan.arena_bytes, 512 * 512 * 4);
}

TEST(MakePlan, DecisionsSayWhatTheyGainOrWhyNot) {
  std::map<std::string, int> seen;
  std::vector<uint64_t> seeds = kNoGainSeeds;
  for (uint64_t seed = 1; seed <= 60; ++seed) seeds.push_back(seed);
  for (uint64_t seed : seeds) {
    Graph graph = Canonicalise(RandomGraph(seed)).value().graph;
    PlannedModel model =
        PlanOf(graph, {.hints = {.compute_pressure = static_cast<double>(seed % 2)}});
    for (const PlanDecision& d : model.plan.decisions) {
      if (d.subject != DecisionSubject::kCandidate) continue;
      ASSERT_FALSE(d.places.empty());
      EXPECT_FALSE(d.places[0].first.empty());
      EXPECT_TRUE(std::is_sorted(d.places[0].first.begin(), d.places[0].first.end()));
      ASSERT_NE(d.reason, "");
      if (d.verdict == Verdict::kChosen) {
        EXPECT_EQ(d.code, "");
        EXPECT_GT(d.benefit_us, 0);
        ++seen["chosen"];
        continue;
      }
      ++seen[d.code];
      if (d.code == "no-gain" || d.code == "pressure") {
        EXPECT_NE(d.reason.find_first_of("0123456789"), std::string::npos) << d.reason;
      }
    }
  }
  EXPECT_GT(seen["chosen"], 20);
  EXPECT_GT(seen["no-gain"], 0);
  EXPECT_GT(seen["cyclic"], 0);
}

// Launch (prepare launches first) in which each loop op runs, -1 for none; every op in one at most.
std::vector<int> LaunchOf(const PlannedModel& model) {
  std::vector<int> launch_of(model.program.ops.size(), -1);
  int step = 0;
  for (const auto* launches : {&model.plan.prepare, &model.plan.launches}) {
    for (const PlanLaunch& launch : *launches) {
      for (LoopId l : model.groups[static_cast<size_t>(launch.group)]) {
        EXPECT_EQ(launch_of[static_cast<size_t>(l)], -1) << "op " << l << " runs twice";
        launch_of[static_cast<size_t>(l)] = step;
      }
      ++step;
    }
  }
  return launch_of;
}

// Every op runs after what it reads is written.
void ExpectInOrder(const PlannedModel& model) {
  std::vector<int> launch_of = LaunchOf(model);
  std::function<int(ValueId)> written = [&](ValueId v) {
    LoopId l = model.program.value(v).producer;
    if (l == kNoLoop) return -1;
    const LoopOp& op = model.program.op(l);
    if (op.kind == LoopOp::kReinterpret) return written(op.inputs[0]);
    return launch_of[static_cast<size_t>(l)];
  };
  for (size_t l = 0; l < model.program.ops.size(); ++l) {
    const LoopOp& op = model.program.ops[l];
    EXPECT_EQ(launch_of[l] < 0, op.kind == LoopOp::kReinterpret) << "op " << l << " " << op.label;
    for (ValueId in : op.inputs) EXPECT_LE(written(in), written(op.output)) << "op " << l;
  }
}

class RandomPlans : public ::testing::TestWithParam<uint64_t> {
 protected:
  RandomPlans() : graph_(Canonicalise(RandomGraph(GetParam())).value().graph) {
    for (bool pressed : {false, true}) {
      Hints hints{.memory_pressure = pressed ? 0.9 : 0, .compute_pressure = pressed ? 0.9 : 0};
      models_.push_back(PlanOf(graph_, {.hints = hints}));
    }
    models_.push_back(PlanOf(graph_, {.fusion = FusionMode::kOpByOp}));
    models_.push_back(PlanOf(graph_, {.numerics = Numerics::kBitwise}));
  }

  Graph graph_;
  std::vector<PlannedModel> models_;
};

TEST_P(RandomPlans, EveryOpRunsOnceAfterWhatItReads) {
  for (const PlannedModel& model : models_) {
    SCOPED_TRACE(ToString(graph_));
    ExpectInOrder(model);
  }
}

TEST_P(RandomPlans, EveryNodeIsInOneGroup) {
  for (const PlannedModel& model : models_) {
    std::vector<int> groups_of(graph_.nodes().size(), 0);
    for (const PlanGroup& g : model.plan.groups) {
      EXPECT_TRUE(std::is_sorted(g.nodes.begin(), g.nodes.end()));
      for (int n : g.nodes) ++groups_of[static_cast<size_t>(n)];
    }
    // A node is in several groups only if its loop ops are.
    std::vector<std::set<int>> launches(graph_.nodes().size());
    std::vector<int> launch_of = LaunchOf(model);
    for (size_t l = 0; l < launch_of.size(); ++l) {
      if (launch_of[l] < 0) continue;
      launches[static_cast<size_t>(model.program.ops[l].origin)].insert(launch_of[l]);
    }
    for (size_t n = 0; n < groups_of.size(); ++n) {
      // A result without elements may be there already.
      const std::vector<TensorId>& outputs = graph_.nodes()[n].outputs;
      const bool empty = std::all_of(outputs.begin(), outputs.end(), [&](TensorId t) {
        return NumElements(graph_.tensor(t).type.shape.ToDims()) == 0;
      });
      if (empty && groups_of[n] == 0) continue;
      const int wanted = std::max<int>(1, static_cast<int>(launches[n].size()));
      EXPECT_EQ(groups_of[n], wanted)
          << graph_.Describe(static_cast<NodeId>(n)) << " is node " << n << "\n"
          << ToString(graph_);
    }
  }
}

TEST_P(RandomPlans, FusionNeverCostsMoreThanTheBaselineByItsOwnEstimate) {
  EXPECT_LE(models_[0].plan.totals.estimated_us, models_[0].plan.op_by_op.estimated_us + 1e-9);
  EXPECT_LE(models_[0].plan.totals.kernels, models_[0].plan.op_by_op.kernels);
}

TEST_P(RandomPlans, ComputePressureLeavesNoRecomputationAndOnlyFastGroups) {
  PlannedModel model = PlanOf(graph_, {.hints = {.compute_pressure = 0.9}});
  EXPECT_EQ(RecomputeBytes(model.plan), 0);
  PlannedModel nodes =
      PlanOf(graph_, {.fusion = FusionMode::kOpByOp, .hints = {.compute_pressure = 0.9}});
  // Time of the op-by-op group that runs an op.
  std::vector<int> launch_of = LaunchOf(nodes);
  std::vector<const PlanLaunch*> launches;
  for (const PlanLaunch& l : nodes.plan.prepare) launches.push_back(&l);
  for (const PlanLaunch& l : nodes.plan.launches) launches.push_back(&l);
  for (const PlanLaunch& launch : model.plan.launches) {
    const PlanGroup& group = model.plan.groups[static_cast<size_t>(launch.group)];
    std::set<int> parts;
    double apart = 0;
    for (LoopId l : model.groups[static_cast<size_t>(launch.group)]) {
      int part = launch_of[static_cast<size_t>(l)];
      if (!parts.insert(part).second) continue;
      int single = launches[static_cast<size_t>(part)]->group;
      apart += nodes.plan.groups[static_cast<size_t>(single)].estimate.time_us;
    }
    if (parts.size() < 2) continue;
    EXPECT_GT(apart, 1.5 * group.estimate.time_us) << group.label << "\n" << ToString(graph_);
  }
}

TEST_P(RandomPlans, AreDeterministic) {
  PlannedModel again = PlanOf(graph_);
  EXPECT_EQ(PlanToBytes(again.plan), PlanToBytes(models_[0].plan));
  ASSERT_EQ(again.kernels.size(), models_[0].kernels.size());
  for (size_t k = 0; k < again.kernels.size(); ++k) {
    EXPECT_EQ(again.kernels[k].text, models_[0].kernels[k].text);
    EXPECT_EQ(ToString(again.kernels[k].reference), ToString(models_[0].kernels[k].reference));
  }
}

TEST_P(RandomPlans, HoldNoKernelTwice) {
  for (const PlannedModel& model : models_) {
    std::set<std::string> texts;
    for (const PlannedKernel& kernel : model.kernels) {
      EXPECT_TRUE(texts.insert(kernel.text).second) << kernel.text;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, RandomPlans, ::testing::Range(uint64_t{1}, uint64_t{41}));

TEST(MakePlan, EqualLayersShareTheirKernels) {
  Graph graph = GraphOf(R"(graph "g" {
  %0 = input "x" : f32[64,64]
  %1 = weight "w1" : f32[64,64]
  %2 = weight "w2" : f32[64,64]
  %3 = MatMul(%0, %1) : f32[64,64]  "" @ "mm1"
  %4 = Relu(%3) : f32[64,64]  "" @ "relu1"
  %5 = MatMul(%4, %2) : f32[64,64]  "" @ "mm2"
  %6 = Relu(%5) : f32[64,64]  "" @ "relu2"
  output %6
}
)");
  PlannedModel model = PlanOf(graph, {.fusion = FusionMode::kOpByOp});
  ASSERT_EQ(Labels(model), (std::vector<std::string>{"MatMul", "Relu", "MatMul", "Relu"}));
  const std::vector<PlanLaunch>& l = model.plan.launches;
  EXPECT_EQ(l[0].kernel, l[2].kernel);
  EXPECT_EQ(l[1].kernel, l[3].kernel);
  EXPECT_NE(l[0].tensors, l[2].tensors);
  // Two weights, packed by one kernel in two launches.
  ASSERT_EQ(model.plan.prepare.size(), 2u);
  EXPECT_EQ(model.plan.prepare[0].kernel, model.plan.prepare[1].kernel);
}

TEST(MakePlan, PressureUpToTheBucketBorderChangesNothing) {
  Graph graph = GraphOf(kMatMulAddRelu);
  PlanOptions none;
  PlanOptions some{.hints = {.memory_pressure = 0.8, .compute_pressure = 0.8}};
  EXPECT_EQ(PlanToBytes(PlanOf(graph, none).plan), PlanToBytes(PlanOf(graph, some).plan));
}

TEST(MakePlan, ComputePressureDissolvesAGroupThatGainsLittle) {
  PlannedModel model = PlanOf(GraphOf(kMatMulAddRelu), {.hints = {.compute_pressure = 0.9}});
  EXPECT_EQ(Labels(model), (std::vector<std::string>{"MatMul", "Add", "Relu"}));
  const PlanDecision& last = model.plan.decisions.back();
  EXPECT_EQ(last.verdict, Verdict::kForbidden);
  EXPECT_EQ(last.code, "pressure");
  EXPECT_EQ(last.places[0].first, (std::vector<int>{0, 1, 2}));
  EXPECT_THAT(last.reason, AllOf(HasSubstr("speed-up 1."), HasSubstr("below 1.5")));
  // One that gains much stays.
  EXPECT_EQ(Labels(PlanOf(GraphOf(kChain), {.hints = {.compute_pressure = 0.9}})),
            std::vector<std::string>{"Relu+Neg+Abs"});
}

TEST(MakePlan, NodesThatAreToStayAloneDo) {
  PlannedModel model = PlanOf(GraphOf(kChain), {}, {{1, "it failed"}});
  EXPECT_EQ(Labels(model), (std::vector<std::string>{"Relu", "Neg", "Abs"}));
  ASSERT_EQ(model.plan.fallbacks.size(), 1u);
  EXPECT_EQ(model.plan.fallbacks[0].node, 1);
  EXPECT_EQ(model.plan.fallbacks[0].reason, "it failed");
  EXPECT_EQ(Labels(PlanOf(GraphOf(kChain), {}, {{2, ""}})),
            (std::vector<std::string>{"Relu+Neg", "Abs"}));
}

TEST(MakePlan, KernelsOfALongChainStayBounded) {
  GraphBuilder builder;
  TensorId at = builder.AddInput("x", {DType::kF32, Shape{64}});
  for (int i = 0; i < 400; ++i) at = builder.AddNode(i % 2 == 0 ? "Neg" : "Abs", {at}).value();
  builder.MarkOutput(at);
  PlannedModel model = PlanOf(builder.Build().value());
  for (const std::vector<LoopId>& group : model.groups) EXPECT_LE(group.size(), 96u);
  EXPECT_LE(model.plan.launches.size(), 20u);
  bool explained = false;
  for (const PlanDecision& d : model.plan.decisions) explained |= d.code == "large";
  EXPECT_TRUE(explained);
}

TEST(MakePlan, EveryDecisionIsToldOnce) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    PlannedModel model = PlanOf(Canonicalise(RandomGraph(seed)).value().graph);
    std::set<std::pair<std::vector<int>, std::vector<int>>> cyclic;
    for (const PlanDecision& d : model.plan.decisions) {
      if (d.subject != DecisionSubject::kCandidate || d.code != "cyclic") continue;
      for (const DecisionPlace& place : d.places) {
        EXPECT_TRUE(cyclic.insert({place.first, place.second}).second) << "seed " << seed;
      }
    }
  }
}

TEST(MakePlan, AReshapeWithoutCommonFactorsIsABarrier) {
  // [4,6] and [3,8] meet in memory only: what is written as one is read as the other later.
  PlannedModel model = PlanOf(GraphOf(R"(graph "g" {
  %0 = input "x" : f32[4,6]
  %1 = Relu(%0) : f32[4,6]  "" @ "relu"
  %2 = Reshape(%1) {shape=[3, 8]} : f32[3,8]  "" @ "reshape"
  %3 = Exp(%2) : f32[3,8]  "" @ "exp"
  output %3
}
)"));
  EXPECT_EQ(Labels(model), (std::vector<std::string>{"Relu", "Exp"}));
  ASSERT_EQ(model.plan.candidates, 1);
  EXPECT_EQ(model.plan.decisions.back().verdict, Verdict::kRefused);
  EXPECT_EQ(model.plan.decisions.back().code, "reshape");
}

TEST(MakePlan, OpsThatDifferInWhereTheyWriteOnlyAreDifferentKernels) {
  PlannedModel model = PlanOf(GraphOf(R"(graph "g" {
  %0 = input "x" : f32[13,16]
  %1 = ReduceSum(%0) {axes=[1]} : f32[13,1]  "" @ "rows"
  %2 = ReduceSum(%0) {axes=[0, 1]} : f32[1,1]  "" @ "all"
  output %1
  output %2
}
)"),
                              {.fusion = FusionMode::kOpByOp});
  ASSERT_EQ(model.plan.launches.size(), 2u);
  EXPECT_NE(model.plan.launches[0].kernel, model.plan.launches[1].kernel);
}

TEST(MakePlan, WorkOnWeightsAloneIsPreparedUnlessItIsReturned) {
  constexpr const char* kText = R"(graph "g" {
  %0 = input "x" : f32[8,8]
  %1 = weight "w" : f32[8,8]
  %2 = Tanh(%1) : f32[8,8]  "" @ "tanh"
  %3 = Neg(%2) : f32[8,8]  "" @ "neg"
  %4 = Add(%0, %3) : f32[8,8]  "" @ "add"
  output %4
)";
  PlannedModel model = PlanOf(GraphOf(StrCat(kText, "}\n")));
  EXPECT_EQ(Labels(model), std::vector<std::string>{"Add"});
  EXPECT_EQ(model.plan.prepare.size(), 1u);
  // Runs write what is returned, so what is made from it cannot be there before.
  PlannedModel returned = PlanOf(GraphOf(StrCat(kText, "  output %2\n}\n")));
  EXPECT_TRUE(returned.plan.prepare.empty());
}

// The slice is returned, so that each run writes it, and what is gathered from it is prepared.
TEST(MakePlan, PreparedWorkReadsNothingThatARunMakes) {
  PlannedModel model = PlanOf(GraphOf(R"(graph "g" {
  %0 = input "x" : f32[]
  %1 = weight "w" : f32[40]
  %2 = const "" : i64[3] {0, 1, -19}
  %3 = Slice(%1) {axes=[0], ends=[40], starts=[6], steps=[1]} : f32[34]  "" @ ""
  %4 = Gather(%3, %2) {axis=0} : f32[3]  "" @ ""
  %5 = Min(%4, %0) : f32[3]  "" @ ""
  output %5
  output %3
}
)"));
  EXPECT_EQ(model.plan.prepare.size(), 2u);
  ExpectInOrder(model);
}

TEST(MakePlan, OutputsThatNoNodeComputesAreCopied) {
  PlannedModel model = PlanOf(GraphOf(R"(graph "copies" {
  %0 = input "x" : f32[8]
  %1 = weight "w" : f32[4]
  output %0
  output %1
}
)"));
  EXPECT_EQ(model.plan.nodes, 0);
  std::set<int> written;
  for (const PlanLaunch& launch : model.plan.launches) {
    EXPECT_TRUE(model.plan.groups[static_cast<size_t>(launch.group)].nodes.empty());
    written.insert(launch.tensors.begin(), launch.tensors.end());
  }
  for (int output : model.plan.outputs) EXPECT_TRUE(written.contains(output));
}

TEST(MakePlan, AnOpenDimIsUnimplementedAndTheNodeIsNamed) {
  Graph graph = GraphOf(R"(graph "g" {
  symbol s0 "seq" min 1 max 512 multiple 1 likely [128]
  %0 = input "x" : f32[s0,8]
  %1 = Relu(%0) : f32[s0,8]  "" @ "open"
  output %1
}
)");
  auto model = MakePlan(graph, DeviceNamed("generic-avx2"), {});
  EXPECT_EQ(model.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(Message(model.status())), HasSubstr("node \"open\" (Relu)"));
}

TEST(MakePlan, ValuesReadTwiceArePlannedOnce) {
  // Every op reads the one before along two paths: 2^40 of them.
  constexpr int kDepth = 40;
  GraphBuilder builder;
  TensorId at = builder.AddInput("x", {DType::kF32, Shape{64}});
  for (int i = 0; i < kDepth; ++i) {
    at = builder.AddNode("Mul", {at, builder.AddNode("Sigmoid", {at}).value()}).value();
  }
  builder.MarkOutput(at);
  PlannedModel model = PlanOf(builder.Build().value());
  ASSERT_EQ(model.kernels.size(), 1u);
  const std::string& text = model.kernels[0].text;
  size_t loads = 0;
  for (size_t i = text.find("load p0"); i != text.npos; i = text.find("load p0", i + 1)) ++loads;
  EXPECT_EQ(loads, 1u) << text;
}

TEST(MakePlan, AWideNodeIsSeveralKernels) {
  constexpr int kParts = 300;
  GraphBuilder builder;
  TensorId x = builder.AddInput("x", {DType::kF32, Shape{2 * kParts}});
  AttrMap attrs = {{"axis", int64_t{0}}, {"num_outputs", int64_t{kParts}}};
  std::vector<std::string> names(kParts);
  auto parts = builder.AddMultiNode(*FindOp("Split"), {x}, attrs, "split", names);
  for (TensorId part : parts.value()) builder.MarkOutput(part);
  PlannedModel model = PlanOf(builder.Build().value());
  EXPECT_EQ(model.plan.launches.size(), 4u);
  for (const std::vector<LoopId>& group : model.groups) EXPECT_LE(group.size(), 96u);
}

TEST(MakePlan, MoreInputsThanOneKernelTakesAreUnimplementedAndTheNodeIsNamed) {
  auto plan = [](const char* op, int inputs, const AttrMap& attrs) {
    GraphBuilder builder;
    std::vector<TensorId> in;
    for (int i = 0; i < inputs; ++i) {
      in.push_back(builder.AddInput(StrCat("x", i), {DType::kF32, Shape{1}}));
    }
    builder.MarkOutput(builder.AddNode(op, in, attrs).value());
    return MakePlan(builder.Build().value(), DeviceNamed("generic-avx2"), {}).status();
  };
  EXPECT_TRUE(plan("Concat", 1024, {{"axis", int64_t{0}}}).ok());
  absl::Status concat = plan("Concat", 1025, {{"axis", int64_t{0}}});
  EXPECT_EQ(concat.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(Message(concat)),
              AllOf(HasSubstr("(Concat): 1025 inputs"), HasSubstr("at most 1024")));
  EXPECT_TRUE(concat.GetPayload(kFailedNode).has_value());
  EXPECT_THAT(std::string(Message(plan("Sum", 2049, {}))), HasSubstr("at most 2048"));
}

TEST(MakePlan, NoKernelReadsMoreThanIsMeantForOne) {
  auto kernels = [](int each) {
    GraphBuilder builder;
    TensorId sum = kNoTensor;
    for (int half = 0; half < 2; ++half) {
      std::vector<TensorId> in;
      if (sum != kNoTensor) in.push_back(sum);
      for (int i = 0; i < each; ++i) {
        in.push_back(builder.AddInput(StrCat("x", half, "_", i), {DType::kF32, Shape{Dim(8)}}));
      }
      sum = builder.AddNode("Sum", in).value();
    }
    builder.MarkOutput(sum);
    return MakePlan(builder.Build().value(), DeviceNamed("generic-avx2"), {})
        .value()
        .plan.kernels.size();
  };
  EXPECT_EQ(kernels(100), 1u);
  EXPECT_EQ(kernels(1100), 2u);
}

// A clock that moves by one whenever somebody looks at it.
class CountingClock final : public Clock {
 public:
  Nanoseconds Now() const override { return Nanoseconds(++looks_); }
  Nanoseconds UnixTime() const override { return Nanoseconds(0); }
  int64_t looks() const { return looks_; }

 private:
  mutable int64_t looks_ = 0;
};

TEST(MakePlan, StopsWhereverItIs) {
  Graph graph = Canonicalise(RandomGraph(1)).value().graph;
  DeviceSpec device = DeviceNamed("generic-avx2");
  for (FusionMode mode : {FusionMode::kFused, FusionMode::kOpByOp}) {
    CountingClock unhurried;
    CancelToken patient(unhurried, std::chrono::hours(1));
    ASSERT_TRUE(MakePlan(graph, device, {.fusion = mode}, &patient).ok());
    EXPECT_GT(unhurried.looks(), static_cast<int64_t>(graph.nodes().size()));
    for (int64_t end = 1; end < unhurried.looks(); ++end) {
      CountingClock clock;
      CancelToken hurried(clock, Nanoseconds(end));
      auto model = MakePlan(graph, device, {.fusion = mode}, &hurried);
      EXPECT_EQ(model.status().code(), absl::StatusCode::kDeadlineExceeded);
      EXPECT_EQ(clock.looks(), end) << "planned on";
    }
  }
}

TEST(MakePlan, StopsWhenItIsCancelled) {
  CancelToken cancel;
  cancel.Cancel();
  auto model = MakePlan(GraphOf(kChain), DeviceNamed("generic-avx2"), {}, &cancel);
  EXPECT_EQ(model.status().code(), absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace fusion
