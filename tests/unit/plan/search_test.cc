#include "core/plan/search/search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <set>

#include "core/benefit/terms.h"
#include "core/graph/build/builder.h"
#include "core/graph/build/canonical.h"
#include "core/plan/cost/cost_bound.h"
#include "core/plan/cost/gain.h"
#include "core/plan/planner.h"
#include "core/plan/search/group_by_node.h"
#include "core/plan/search/grow.h"
#include "core/plan/sets/exact.h"
#include "core/plan/sets/group_edges.h"
#include "core/plan/sets/group_graph.h"
#include "core/plan/sets/loop_sets.h"
#include "core/tensor/compare.h"
#include "tests/support/kernel_harness.h"
#include "tests/support/plan_cases.h"
#include "tests/support/plan_corpus.h"
#include "tests/support/plan_interpreter.h"
#include "tests/support/random_graph.h"
#include "tests/support/transformer_graph.h"
#include "tests/support/whole_program.h"

namespace fusion {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Op i reads from op j for each pair (j, i).
Program ProgramOf(int ops, const std::vector<std::pair<int, int>>& edges) {
  Program program;
  program.values.push_back({.type = {DType::kF32, Shape{4}}, .kind = TensorKind::kInput});
  program.inputs = {0};
  for (LoopId i = 0; i < ops; ++i) {
    LoopOp op{.label = "op", .origin = i, .inputs = {}, .output = i + 1};
    for (const auto& [from, to] : edges) {
      if (to == i) op.inputs.push_back(from + 1);
    }
    if (op.inputs.empty()) op.inputs.push_back(0);
    program.values.push_back(
        {.type = {DType::kF32, Shape{4}}, .kind = TensorKind::kIntermediate, .producer = i});
    program.ops.push_back(std::move(op));
  }
  return program;
}

// 0 -> 1 -> 2, 0 -> 2, and 3 by itself.
class SmallGroups : public ::testing::Test {
 protected:
  Program program_ = ProgramOf(4, {{0, 1}, {1, 2}, {0, 2}});
  OpLinks links_{program_};
  GroupGraph graph_{links_, {{0}, {1}, {2}, {3}}};
};

TEST_F(SmallGroups, KnowTheirNeighbours) {
  EXPECT_THAT(graph_.ReadersOf(0), ElementsAre(1, 2));
  EXPECT_THAT(graph_.WritersOf(2), ElementsAre(0, 1));
  EXPECT_THAT(graph_.ReadersOf(3), IsEmpty());
  EXPECT_THAT(graph_.Near(1, 1), ElementsAre(0, 2));
}

TEST_F(SmallGroups, AreNotJoinedAroundAnother) {
  EXPECT_FALSE(graph_.CanReplace({0, 2}, {{0, 2}}));
  EXPECT_TRUE(graph_.CanReplace({0, 1, 2}, {{0, 1, 2}}));
  EXPECT_TRUE(graph_.CanReplace({0, 1}, {{0, 1}}));
  // Nor cut into two that wait for each other.
  EXPECT_FALSE(graph_.CanReplace({0, 1, 2}, {{0, 2}, {1}}));
}

TEST_F(SmallGroups, StayInAnOrderThatRespectsDataFlow) {
  std::vector<int> made = graph_.Replace({0, 3}, {{0, 3}});
  ASSERT_EQ(made.size(), 1u);
  EXPECT_FALSE(graph_.alive(0));
  EXPECT_EQ(graph_.GroupOf(3), made[0]);
  EXPECT_THAT(graph_.Groups(), ElementsAre(ElementsAre(0, 3), ElementsAre(1), ElementsAre(2)));
  made = graph_.Replace({made[0]}, {{0}, {3}});
  EXPECT_TRUE(graph_.Before(made[0], 1));
}

TEST_F(SmallGroups, ManyReplacementsOfOneGroupLeaveTheOrderRight) {
  // Each halves the places left between two others.
  for (int i = 0; i < 100; ++i) {
    int both = graph_.Replace({graph_.GroupOf(1), graph_.GroupOf(3)}, {{1, 3}})[0];
    graph_.Replace({both}, {{1}, {3}});
    ASSERT_TRUE(graph_.Before(graph_.GroupOf(0), graph_.GroupOf(1)));
    ASSERT_TRUE(graph_.Before(graph_.GroupOf(1), graph_.GroupOf(2)));
    ASSERT_EQ(graph_.Groups().size(), 4u);
  }
}

ExactProblem Chain(std::function<double(uint32_t)> cost) {
  // 0 -> 1 -> 2 -> 3.
  ExactProblem problem{.paths = GroupGraph::Paths(4, std::vector<uint8_t>(4, GroupGraph::kNoPath)),
                       .cost = [cost](uint32_t set) -> absl::StatusOr<double> { return cost(set); },
                       .bound = [](uint32_t) { return 0.0; },
                       .below = 1000};
  for (size_t i = 0; i + 1 < 4; ++i) problem.paths[i][i + 1] = GroupGraph::kDirect;
  return problem;
}

TEST(SolveExactly, FindsTheCheapestCuts) {
  // A launch each, and the two middle parts never share a kernel.
  auto solution = SolveExactly(Chain([](uint32_t set) {
    return (set & 0b0110) == 0b0110 ? std::numeric_limits<double>::infinity() : 1.0;
  }));
  ASSERT_TRUE(solution.ok());
  EXPECT_EQ(solution->cost, 2);
  EXPECT_THAT(solution->groups, ElementsAre(0b0011u, 0b1100u));
}

TEST(SolveExactly, KeepsPartsApartThatAnotherLiesBetween) {
  ExactProblem problem = Chain([](uint32_t) { return 1.0; });
  EXPECT_EQ(SolveExactly(problem)->groups.size(), 1u);
  problem.paths[0][1] = GroupGraph::kDirect | GroupGraph::kAround;
  EXPECT_EQ(SolveExactly(problem)->groups.size(), 2u);
}

TEST(SolveExactly, SaysNothingWhereNoneIsCheapEnough) {
  ExactProblem problem = Chain([](uint32_t) { return 1.0; });
  problem.below = 1;
  EXPECT_THAT(SolveExactly(problem)->groups, IsEmpty());
}

CostFactors RandomFactors(uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> ln(std::log(kLeastCostFactor), std::log(kMostCostFactor));
  const auto draw = [&] { return std::exp(ln(random)); };
  CostFactors out{.launch = draw(),
                  .barrier = draw(),
                  .task = draw(),
                  .element = draw(),
                  .local = draw(),
                  .shared = draw(),
                  .memory = draw(),
                  .product = {{"f32", draw()}}};
  for (const char* bound : {"products", "elements", "private caches", "shared cache", "memory"}) {
    for (const char* form : {"product", "reduction", "element-wise", "copy"}) {
      out.classes[{bound, form}] = std::exp(ln(random) / std::log(kMostCostFactor) * std::log(2));
    }
  }
  return out;
}

TEST(CostBound, IsNeverAboveAnEstimate) {
  int compared = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Graph graph = Canonicalise(PlanCorpusGraph(seed)).value().graph;
    DeviceSpec device = DeviceNamed("intel-skylake-server", 2);
    if (seed % 2 == 0) device = Calibrated(device, RandomFactors(seed));
    Program program = BuildProgram(graph).value();
    PlanOptions options;
    GroupEvaluator evaluator(program, device, options, nullptr);
    CostBound bound(program, device);
    Grouping nodes = GroupByNode(graph, &evaluator).value();
    for (const Grouping& grouping : {nodes, GrowGroups(nodes, {}, &evaluator).value()}) {
      for (const std::vector<LoopId>& loops : grouping.groups) {
        const GroupVerdict* verdict = evaluator.Evaluate(loops).value();
        EXPECT_LE(bound.Of(loops), verdict->estimate.time_us * 1.0001) << "seed " << seed;
        ++compared;
      }
    }
  }
  EXPECT_GT(compared, 200);
}

TEST(SearchGroups, IsNeverWorseThanTheGreedyExpansion) {
  int better = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Graph graph = Canonicalise(PlanCorpusGraph(seed)).value().graph;
    DeviceSpec device = DeviceNamed("intel-skylake-server", 2);
    Program program = BuildProgram(graph).value();
    PlanOptions options;
    GroupEvaluator evaluator(program, device, options, nullptr);
    Grouping nodes = GroupByNode(graph, &evaluator).value();
    auto cost = [&](const Grouping& grouping) {
      double sum = 0;
      for (const auto& loops : grouping.groups) {
        sum += evaluator.Evaluate(loops).value()->estimate.time_us;
      }
      return sum;
    };
    Grouping grown = GrowGroups(nodes, {}, &evaluator).value();
    double greedy = cost(grown);
    double searched = cost(SearchGroups(nodes, grown, {}, options, {}, {}, &evaluator).value());
    EXPECT_LE(searched, greedy * (1 + 1e-9)) << "seed " << seed;
    better += searched < greedy - 0.1;
  }
  EXPECT_GE(better, 8);  // a fifth: else there is nothing to search for
}

// Queries, keys and values of unequal widths, from one input.
Graph Projections() {
  GraphBuilder builder;
  TensorId x = builder.AddInput("x", {DType::kF32, Shape{40, 64}});
  for (int64_t width : {64, 20, 33}) {
    TensorId w = builder.AddWeight(StrCat("w", width), {DType::kF32, Shape(Dims{64, width})});
    TensorId b = builder.AddWeight(StrCat("b", width), {DType::kF32, Shape(Dims{width})});
    builder.MarkOutput(
        builder.AddNode("Add", {builder.AddNode("MatMul", {x, w}).value(), b}).value());
  }
  return Canonicalise(builder.Build().value()).value().graph;
}

TEST(SearchGroups, ProductsOfOneInputAreOneLaunch) {
  auto model = MakePlan(Projections(), DeviceNamed("intel-skylake-server", 2), {});
  ASSERT_TRUE(model.ok()) << model.status();
  ASSERT_EQ(model->plan.launches.size(), 1u);
  EXPECT_EQ(model->plan.totals.kernels, 1);
  const PlanGroup& group = model->plan.groups[static_cast<size_t>(model->plan.launches[0].group)];
  EXPECT_EQ(group.label, "MatMul+Add | MatMul+Add | MatMul+Add");
  const Schedule& schedule = model->kernels[static_cast<size_t>(group.kernel)].schedule;
  EXPECT_EQ(schedule.phases[0].segments.size(), 3u);
  // The input is read once: one param, and its bytes counted once.
  EXPECT_EQ(group.estimate.activation_bytes, 40 * (64 + 64 + 20 + 33) * 4);
}

TEST(SearchGroups, WhatRunsSideBySideComputesWhatTheEvaluatorDoes) {
  Graph graph = Projections();
  std::vector<std::string> devices = RunnableDevices();
  devices.insert(devices.begin(), "");  // the interpreter
  for (const std::string& name : devices) {
    DeviceSpec device = DeviceNamed(name.empty() ? "generic-avx512" : name, 2);
    auto model = MakePlan(graph, device, {});
    ASSERT_TRUE(model.ok()) << model.status();
    ASSERT_EQ(model->plan.launches.size(), 1u);
    PlanValues values = RandomPlanValues(*model, 1);
    auto wanted = EvaluatePlanned(graph, *model, values);
    ASSERT_TRUE(wanted.ok()) << wanted.status();
    absl::StatusOr<std::vector<HostTensor>> got = InvalidArgument("not run");
    if (name.empty()) {
      got = InterpretPlan(*model, values.inputs, values.weights);
    } else {
      auto executor = CompilePlan(*model, device);
      ASSERT_TRUE(executor.ok()) << executor.status();
      auto weight = [&](int i) { return &values.weights[static_cast<size_t>(i)]; };
      ASSERT_TRUE((*executor)->Prepare(weight).ok());
      got = (*executor)->Run(values.inputs);
    }
    ASSERT_TRUE(got.ok()) << got.status();
    for (size_t o = 0; o < wanted->size(); ++o) {
      Difference d = Compare((*got)[o], (*wanted)[o], {.atol = 2e-5, .rtol = 2e-4});
      EXPECT_TRUE(d.ok()) << name << ", output " << o << ": " << d.ToString();
    }
  }
}

TEST(SearchGroups, EqualLayersArePlannedAlike) {
  auto launches = [](int layers) {
    Graph graph = Canonicalise(TransformerGraph(layers)).value().graph;
    auto model = MakePlan(graph, DeviceNamed("intel-skylake-server", 2), {});
    FUSION_CHECK(model.ok(), Message(model.status()));
    return std::pair(model->plan.launches.size(), model->plan.kernels.size());
  };
  auto [two, kernels_of_two] = launches(2);
  auto [six, kernels_of_six] = launches(6);
  EXPECT_LE(two, 2u * 7);
  EXPECT_EQ(six, 3 * two);
  EXPECT_EQ(kernels_of_six, kernels_of_two);
}

// What was looked at and not taken is told as well, each join once, and why.
TEST(Search, TellsWhatItRefused) {
  int refused = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Graph graph = Canonicalise(RandomGraph(seed)).value().graph;
    Program program = BuildProgram(graph).value();
    PlanOptions options;
    DeviceSpec device = Cpu();
    GroupEvaluator evaluator(program, device, options, nullptr);
    Grouping nodes = GroupByNode(graph, &evaluator).value();
    Grouping found = SearchGroups(nodes, nodes, {}, options, {}, {}, &evaluator).value();
    std::set<std::pair<std::vector<LoopId>, std::vector<LoopId>>> told;
    for (const Considered& c : found.considered) {
      if (c.refusal.empty()) continue;
      EXPECT_TRUE(told.insert({c.first, c.second}).second) << "seed " << seed << ": twice";
      const GroupVerdict& both = *evaluator.Evaluate(Union(c.first, c.second)).value();
      const double gain_us = evaluator.Evaluate(c.first).value()->estimate.time_us +
                             evaluator.Evaluate(c.second).value()->estimate.time_us -
                             both.estimate.time_us;
      if (c.refusal.code == RefusalCode::kNoGain) {
        EXPECT_LE(gain_us, kMinGainUs);
      } else if (c.refusal.code == RefusalCode::kSuperseded) {
        EXPECT_GT(gain_us, kMinGainUs);
      } else if (c.refusal.code != RefusalCode::kCyclic) {
        EXPECT_EQ(c.refusal.code, both.refusal.code) << c.refusal.ToString();
      }
      ++refused;
    }
    // At its end it looks at every two groups that are left, equal ones once.
    std::set<std::vector<int>> met;
    for (const auto& [first, second] : told) met.insert(evaluator.Key(Union(first, second)));
    GroupEdges order(program, found.groups);
    for (const auto& [a, b] : order.edges()) {
      const std::vector<LoopId>& first = found.groups[static_cast<size_t>(a)];
      const std::vector<LoopId>& second = found.groups[static_cast<size_t>(b)];
      if (evaluator.AreConstant(first) != evaluator.AreConstant(second)) continue;
      EXPECT_TRUE(met.contains(evaluator.Key(Union(first, second)))) << "seed " << seed;
    }
  }
  EXPECT_GT(refused, 40);
}

// With high compute pressure nodes move as wholes. Layers that look alike are looked at once, but
// not those of which one is several nodes and another one is one.
TEST(Search, NodesStayWholeWhereEqualOpsAreSeveralNodes) {
  constexpr int kLayers = 24;
  constexpr int kOps = 4;  // of a layer
  Program program = BuildProgram(Layers(kLayers)).value();
  ASSERT_EQ(program.ops.size(), static_cast<size_t>(kLayers * kOps));
  Grouping nodes;
  Grouping start;
  for (LoopId l = 0; l < kLayers * kOps; l += kOps) {
    std::vector<LoopId> layer = {l, l + 1, l + 2, l + 3};
    start.groups.push_back(layer);
    if (l < kLayers / 2 * kOps) {
      for (LoopId op : layer) nodes.groups.push_back({op});
    } else {
      nodes.groups.push_back(layer);
    }
  }
  PlanOptions options{.hints = {.compute_pressure = 0.9}};
  DeviceSpec device = Cpu();
  GroupEvaluator evaluator(program, device, options, nullptr);
  Grouping found = SearchGroups(nodes, start, {}, options, {}, {}, &evaluator).value();
  int divided = 0;
  for (const std::vector<LoopId>& group : found.groups) {
    for (LoopId l : group) {
      if (l < kLayers / 2 * kOps) continue;
      EXPECT_EQ(std::count_if(group.begin(), group.end(),
                              [&](LoopId other) { return other / kOps == l / kOps; }),
                kOps)
          << "op " << l << " is alone of its node";
    }
    divided += group.size() < kOps ? 1 : 0;
  }
  EXPECT_GT(divided, 0) << "it is better to cut the layers that may be cut";
}

}  // namespace
}  // namespace fusion
