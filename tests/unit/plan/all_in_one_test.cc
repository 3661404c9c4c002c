// Whole layers as one launch: when, of what, and that it computes the same.
#include "core/plan/search/all_in_one.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "core/benefit/estimate.h"
#include "core/graph/build/builder.h"
#include "core/graph/build/canonical.h"
#include "core/graph/build/text.h"
#include "core/plan/assemble/assembler.h"
#include "core/plan/cost/pin.h"
#include "core/plan/planner.h"
#include "core/plan/search/frontier.h"
#include "core/plan/search/group_by_node.h"
#include "core/schedule/ir/phase_pipeline.h"
#include "core/tensor/compare.h"
#include "tests/support/kernel_harness.h"
#include "tests/support/plan_interpreter.h"
#include "tests/support/random_graph.h"
#include "tests/support/transformer_graph.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;

constexpr Hints kLatency{.low_latency = true};

// Layers of one row, each relu(x w + b); `kept`: every other one is an output too.
Graph Mlp(int layers, int64_t width = 512, bool kept = false) {
  GraphBuilder b;
  TensorId at = b.AddInput("x", {DType::kF32, Shape{1, width}});
  for (int i = 0; i < layers; ++i) {
    TensorId w = b.AddWeight(StrCat("w", i), {DType::kF32, Shape{width, width}});
    TensorId c = b.AddWeight(StrCat("b", i), {DType::kF32, Shape{width}});
    TensorId sum = b.AddNode("Add", {b.AddNode("MatMul", {at, w}).value(), c}).value();
    at = b.AddNode("Relu", {sum}).value();
    if (i + 1 == layers || (kept && i % 2 == 0)) b.MarkOutput(at);
  }
  return Canonicalise(b.Build().value()).value().graph;
}

DeviceSpec Cpu() { return DeviceNamed("intel-skylake-server", 2); }

PlannedModel PlanOf(const Graph& graph, const DeviceSpec& device, const PlanOptions& options = {},
                    const std::map<NodeId, std::string>& unfused_nodes = {}) {
  auto model = MakePlan(graph, device, options, nullptr, unfused_nodes);
  FUSION_CHECK(model.ok(), Message(model.status()));
  return *std::move(model);
}

int CountAllInOne(const Plan& plan) {
  return static_cast<int>(
      std::count_if(plan.groups.begin(), plan.groups.end(),
                    [](const PlanGroup& group) { return RunsInSequence(group.kind); }));
}

const PlanPoint& ChosenOf(const Plan& plan) {
  auto chosen = std::find_if(plan.frontier.begin(), plan.frontier.end(),
                             [](const PlanPoint& p) { return p.chosen; });
  FUSION_CHECK(chosen != plan.frontier.end(), "one point is chosen");
  return *chosen;
}

// Compares with the evaluator, on the schedule interpreter and, if `device` says so, compiled.
void ExpectRight(const Graph& graph, const PlannedModel& model, const DeviceSpec* device) {
  PlanValues values = RandomPlanValues(model, 1);
  auto wanted = EvaluatePlanned(graph, model, values);
  ASSERT_TRUE(wanted.ok()) << wanted.status();
  absl::StatusOr<std::vector<HostTensor>> got = InvalidArgument("not run");
  if (device == nullptr) {
    got = InterpretPlan(model, values.inputs, values.weights);
  } else {
    auto executor = CompilePlan(model, *device);
    ASSERT_TRUE(executor.ok()) << executor.status();
    auto weight = [&](int i) { return &values.weights[static_cast<size_t>(i)]; };
    ASSERT_TRUE((*executor)->Prepare(weight).ok());
    got = (*executor)->Run(values.inputs);
  }
  ASSERT_TRUE(got.ok()) << got.status();
  ASSERT_EQ(got->size(), wanted->size());
  for (size_t o = 0; o < wanted->size(); ++o) {
    Difference d = Compare((*got)[o], (*wanted)[o], {.atol = 2e-5, .rtol = 2e-4});
    EXPECT_TRUE(d.ok()) << "output " << o << ": " << d.ToString();
  }
}

TEST(AllInOne, ASmallModelIsOneLaunch) {
  Graph graph = Mlp(4);
  for (const char* name : {"intel-skylake-server", "h100"}) {
    DeviceSpec device = DeviceNamed(name, 2);
    Plan apart = PlanOf(graph, device).plan;
    Plan joined = PlanOf(graph, device, {.hints = kLatency}).plan;
    ASSERT_GT(apart.totals.launches, 1) << "there is nothing to join";
    EXPECT_EQ(CountAllInOne(apart), 0);
    EXPECT_EQ(joined.totals.launches, 1);
    EXPECT_EQ(joined.totals.kernels, apart.totals.kernels) << "phases count";
    EXPECT_EQ(CountAllInOne(joined), 1);
    EXPECT_EQ(ChosenOf(joined).name, kAllInOnePoint);
    EXPECT_THAT(ChosenOf(joined).reason, HasSubstr("latency is wanted"));
    double saved = SavedBySequence(static_cast<size_t>(apart.totals.launches), device);
    EXPECT_GT(saved, 0);
    EXPECT_NEAR(joined.totals.estimated_us, apart.totals.estimated_us - saved, 1e-9);
    EXPECT_NEAR(ChosenOf(joined).latency_us, joined.totals.estimated_us, 1e-9);
    EXPECT_EQ(joined.totals.weight_bytes, apart.totals.weight_bytes);
  }
}

TEST(AllInOne, ComputesWhatTheEvaluatorDoes) {
  for (bool kept : {false, true}) {
    Graph graph = Mlp(4, 96, kept);
    std::vector<std::string> devices = RunnableDevices();
    PlannedModel interpreted = PlanOf(graph, DeviceNamed("generic-avx512", 2), {.hints = kLatency});
    ExpectRight(graph, interpreted, nullptr);
    for (const std::string& name : devices) {
      SCOPED_TRACE(name);
      DeviceSpec device = DeviceNamed(name, 2);
      PlannedModel model = PlanOf(graph, device, {.hints = kLatency});
      EXPECT_EQ(model.plan.totals.launches, 1);
      ExpectRight(graph, model, &device);
    }
  }
}

// A kernel a node, as phases of as few launches as there may be.
PlannedModel NodesInSequence(const Graph& graph, const DeviceSpec& device) {
  const PlanOptions options;
  PlannedModel model;
  model.program = BuildProgram(graph).value();
  GroupEvaluator evaluator(model.program, device, options, nullptr);
  Grouping joined =
      JoinSequential(GroupByNode(graph, &evaluator).value(), /*unfused_nodes=*/{}, &evaluator)
          .value();
  absl::Status status = Assemble(graph, ProgramOf::kGraph, joined, &evaluator, &model);
  FUSION_CHECK(status.ok(), Message(status));
  return model;
}

TEST(AllInOne, RandomGraphsComputeTheSame) {
  const DeviceSpec device = Cpu();
  int launches = 0;
  int phases = 0;
  int pipelines = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(StrCat("seed ", seed));
    Graph graph =
        Canonicalise(seed % 2 == 0 ? RandomGraph(seed) : RandomChainGraph(seed)).value().graph;
    PlannedModel model = NodesInSequence(graph, device);
    for (const PlanGroup& group : model.plan.groups) {
      if (!RunsInSequence(group.kind)) continue;
      ++launches;
      const Schedule& schedule = model.kernels[static_cast<size_t>(group.kernel)].schedule;
      phases += CountPhases(schedule);
      pipelines += group.kind == GroupKind::kPipeline ? 1 : 0;
      EXPECT_TRUE(Verify(schedule).ok()) << Verify(schedule);
      EXPECT_EQ(ToString(ParseSchedule(ToString(schedule)).value()), ToString(schedule));
    }
    ExpectRight(graph, model, nullptr);
  }
  EXPECT_GT(launches, 50) << "hardly anything was joined";
  EXPECT_GT(phases, 4 * launches);
  EXPECT_GT(pipelines, 5);
}

TEST(AllInOne, LongModelsAreCutWhereTheirLayersBeginAgain) {
  auto plan_of = [](int layers, const Hints& hints = kLatency) {
    return PlanOf(Canonicalise(TransformerGraph(layers, 64, 256, 4)).value().graph, Cpu(),
                  {.hints = hints})
        .plan;
  };
  Plan few = plan_of(12);
  Plan many = plan_of(24);
  EXPECT_GT(CountAllInOne(few), 0);
  for (const PlanKernel& kernel : many.kernels) EXPECT_LE(kernel.phases, kMostSequencePhases);
  EXPECT_EQ(many.kernels.size(), few.kernels.size()) << "equal layers share their kernels";
  EXPECT_EQ((many.totals.launches - few.totals.launches) % 12, 0) << "so many for each layer more";
  EXPECT_LE(many.totals.launches - few.totals.launches, 12);
  Plan apart = plan_of(24, {});
  EXPECT_LT(3 * many.totals.launches, 2 * apart.totals.launches);
  EXPECT_EQ(many.totals.kernels, apart.totals.kernels);
}

// Attention of sixteen sequences, then a product with a weight.
Graph Sequences() {
  GraphBuilder b;
  auto input = [&](const std::string& name, Shape shape) {
    return b.AddInput(name, {DType::kF32, std::move(shape)});
  };
  TensorId q = input("q", Shape{16, 24, 32});
  TensorId k = input("k", Shape{16, 32, 24});
  TensorId v = input("v", Shape{16, 24, 32});
  TensorId w = b.AddWeight("w", {DType::kF32, Shape{32, 48}});
  TensorId p = b.AddNode("Softmax", {b.AddNode("MatMul", {q, k}).value()}).value();
  TensorId c = b.AddNode("Relu", {b.AddNode("MatMul", {p, v}).value()}).value();
  b.MarkOutput(b.AddNode("MatMul", {c, w}).value());
  return Canonicalise(b.Build().value()).value().graph;
}

TEST(Pipelines, RunAfterOneAnotherWithoutABarrierWhereThatIsFaster) {
  Graph graph = Sequences();
  for (const std::string& name : RunnableDevices()) {
    SCOPED_TRACE(name);
    DeviceSpec device = DeviceNamed(name, 2);
    PlannedModel model = NodesInSequence(graph, device);
    ASSERT_EQ(model.plan.launches.size(), 1u);
    const PlanGroup& group = model.plan.groups[static_cast<size_t>(model.plan.launches[0].group)];
    EXPECT_EQ(group.kind, GroupKind::kPipeline);
    const PlannedKernel& kernel = model.kernels[static_cast<size_t>(group.kernel)];
    EXPECT_LT(kernel.schedule.phases.size(), 5u);
    EXPECT_EQ(CountPhases(kernel.schedule), 5);
    EXPECT_EQ(model.plan.totals.kernels, 5) << "what runs without a barrier counts, too";
    ExpectRight(graph, model, nullptr);
    ExpectRight(graph, model, &device);
  }
}

TEST(Pipelines, ArePinned) {
  Graph graph = Sequences();
  const DeviceSpec device = Cpu();
  PlannedModel model = NodesInSequence(graph, device);
  PlanOptions options;
  PlanLock lock = DecisionsOf(model);
  auto sequential = std::find_if(lock.choices.begin(), lock.choices.end(),
                                 [](const LockedChoice& c) { return !c.turns.empty(); });
  ASSERT_NE(sequential, lock.choices.end());
  ASSERT_FALSE(sequential->pipelines.empty());
  auto text_of = [](const PlannedModel& m) { return m.kernels.back().text; };
  options.lock = std::make_shared<PlanLock>(lock);
  EXPECT_EQ(text_of(PlanOf(graph, device, options)), text_of(model));
  // Without them, and with others: as the lock says, not as is faster.
  const LockedPipeline pipeline = sequential->pipelines[0];
  sequential->pipelines.clear();
  options.lock = std::make_shared<PlanLock>(lock);
  PlannedModel apart = PlanOf(graph, device, options);
  EXPECT_GT(apart.kernels.back().schedule.phases.size(),
            model.kernels.back().schedule.phases.size());
  ExpectRight(graph, apart, nullptr);
  sequential->pipelines = {pipeline};
  sequential->pipelines[0].slices[0].tile *= 2;
  options.lock = std::make_shared<PlanLock>(lock);
  PlannedModel other = PlanOf(graph, device, options);
  EXPECT_NE(text_of(other), text_of(model));
  ExpectRight(graph, other, nullptr);

  auto refused = [&](const std::function<void(LockedPipeline*)>& change) {
    sequential->pipelines = {pipeline};
    change(&sequential->pipelines[0]);
    options.lock = std::make_shared<PlanLock>(lock);
    return std::string(Message(MakePlan(graph, device, options, nullptr, {}).status()));
  };
  EXPECT_THAT(refused([](auto* p) { p->first = 9; }),
              HasSubstr("choice: pipelines[0].phases 9 to "));
  EXPECT_THAT(refused([](auto* p) { p->slices[0].dim = std::string("x"); }),
              HasSubstr("pipelines[0].slices[0].dim: \"x\"; slices may be of s0_"));
  EXPECT_THAT(refused([](auto* p) { p->slices[0].tile += 1; }),
              HasSubstr("pipelines[0].slices[0].tile: "));
  EXPECT_THAT(refused([](auto* p) { p->slices.push_back(p->slices[0]); }),
              HasSubstr("slices[1].dim: a second time"));
}

TEST(AllInOne, NothingIsJoinedOnceAKernelHasFailed) {
  Plan plan = PlanOf(Mlp(4), Cpu(), {.hints = kLatency}, {{0, "it failed"}}).plan;
  EXPECT_EQ(CountAllInOne(plan), 0);
  EXPECT_GT(plan.totals.launches, 3);
}

TEST(AllInOne, MemoryPressureComesFirst) {
  Plan plan = PlanOf(Mlp(4), Cpu(), {.hints = {.memory_pressure = 0.9, .low_latency = true}}).plan;
  EXPECT_EQ(CountAllInOne(plan), 0);
  EXPECT_THAT(ChosenOf(plan).reason, HasSubstr("memory pressure is high"));
}

TEST(AllInOne, TheFrontierTellsOfIt) {
  Plan plan = PlanOf(Mlp(4), Cpu(), {.frontier = true}).plan;
  EXPECT_EQ(CountAllInOne(plan), 0) << "nobody wants it";
  EXPECT_TRUE(std::any_of(plan.frontier.begin(), plan.frontier.end(),
                          [](const PlanPoint& p) { return p.name == kAllInOnePoint; }));
}

TEST(AllInOne, ARuleKeepsApart) {
  Rule rule{.name = "apart", .action = RuleAction::kForbid};
  rule.nodes = {{.id = "a", .ops = {"Relu"}}, {.id = "b", .ops = {"MatMul"}}};
  rule.edges = {{.from = 0, .to = 1}};
  Plan plan = PlanOf(Mlp(4), Cpu(), {.hints = kLatency, .rules = {rule}}).plan;
  EXPECT_EQ(CountAllInOne(plan), 0);
}

TEST(AllInOne, IsExplained) {
  std::set<std::string> codes;
  for (const char* name : {"intel-skylake-server", "ascend_910b"}) {
    DeviceSpec device = DeviceNamed(name, 2);
    Plan plan = PlanOf(Canonicalise(TransformerGraph(10, 64, 256, 4)).value().graph, device,
                       {.hints = kLatency})
                    .plan;
    ASSERT_GT(CountAllInOne(plan), 0);
    bool told = false;
    for (const PlanDecision& d : plan.decisions) {
      if (d.subject == DecisionSubject::kGroup &&
          (d.reason.starts_with("all-in-one: ") || d.reason.starts_with("pipeline: "))) {
        told = true;
        EXPECT_THAT(d.reason, HasSubstr("phases of one launch, which gains "));
        EXPECT_FALSE(d.what_ifs.empty());
      }
      if (d.subject == DecisionSubject::kPair) {
        codes.insert(d.code);
        EXPECT_TRUE(d.first.has_value() && d.second.has_value());
        EXPECT_FALSE(d.what_ifs.empty()) << d.code << ": " << d.reason;
      }
      if (d.code == "pipeline") {
        EXPECT_TRUE(std::any_of(d.reason.begin(), d.reason.end(), [](char c) {
          return c >= '0' && c <= '9';
        })) << d.reason;
        codes.insert(d.code);
      }
    }
    EXPECT_TRUE(told);
  }
  EXPECT_THAT(codes, testing::IsSupersetOf({"pipeline", "phases"}));
}

}  // namespace
}  // namespace fusion
