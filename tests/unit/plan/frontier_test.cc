#include "core/plan/search/frontier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>

#include "core/graph/build/canonical.h"
#include "core/plan/planner.h"
#include "core/plan/search/plan_weigher.h"
#include "core/plan/sets/group_graph.h"
#include "core/schedule/memory/scratch.h"
#include "core/schedule/tiles/legality.h"
#include "core/wire/plan.h"
#include "tests/support/kernel_harness.h"
#include "tests/support/plan_corpus.h"
#include "tests/support/random_graph.h"
#include "tests/support/transformer_graph.h"

namespace fusion {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr Hints kMemory{.memory_pressure = 0.9};
constexpr Hints kCompute{.compute_pressure = 0.9};
constexpr Hints kBoth{.memory_pressure = 0.9, .compute_pressure = 0.9};

DeviceSpec Cpu() { return DeviceNamed("intel-skylake-server", 2); }

PlannedModel PlanOf(const Graph& graph, const PlanOptions& options = {}) {
  auto model = MakePlan(graph, Cpu(), options);
  FUSION_CHECK(model.ok(), Message(model.status()));
  return *std::move(model);
}

Graph Layers(int layers) { return Canonicalise(TransformerGraph(layers)).value().graph; }

// Graphs of every kind that the tests plan.
Graph Sample(uint64_t seed) {
  Graph graph = seed % 3 == 0   ? RandomGraph(seed)
                : seed % 3 == 1 ? RandomChainGraph(seed)
                                : PlanCorpusGraph(seed);
  return Canonicalise(graph).value().graph;
}

const PlanPoint& ChosenOf(const Plan& plan) {
  auto chosen = std::find_if(plan.frontier.begin(), plan.frontier.end(),
                             [](const PlanPoint& p) { return p.chosen; });
  FUSION_CHECK(chosen != plan.frontier.end(), "one point is chosen");
  return *chosen;
}

int64_t LeastPeak(const Plan& plan) {
  int64_t least = std::numeric_limits<int64_t>::max();
  for (const PlanPoint& p : plan.frontier) least = std::min(least, p.peak_bytes);
  return least;
}

// A hundredth above: as good as it.
double Near(int64_t peak_bytes) { return static_cast<double>(peak_bytes) * 1.01; }

PlanPoint Point(const char* name, double us, int64_t bytes, double s) {
  return {.name = name, .latency_us = us, .peak_bytes = bytes, .compile_s = s};
}

std::vector<std::string> Names(const std::vector<PlanPoint>& points) {
  std::vector<std::string> names;
  for (const PlanPoint& p : points) names.push_back(p.name);
  return names;
}

TEST(NonDominated, KeepsWhatIsBestInSomething) {
  EXPECT_THAT(
      Names(NonDominated({Point("slow", 9, 1, 9), Point("fast", 1, 9, 9), Point("soon", 5, 5, 1)})),
      ElementsAre("fast", "soon", "slow"));
  EXPECT_THAT(Names(NonDominated({Point("worse", 2, 2, 2), Point("better", 2, 2, 1)})),
              ElementsAre("better"));
  EXPECT_THAT(Names(NonDominated({Point("first", 1, 1, 1), Point("equal", 1, 1, 1)})),
              ElementsAre("first"));
}

TEST(Frontier, NoPointIsAsGoodAsAnotherInEverything) {
  size_t several = 0;
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    for (const Hints& hints : {Hints{}, kMemory, kCompute, kBoth}) {
      Plan plan = PlanOf(Sample(seed), {.hints = hints, .frontier = true}).plan;
      several += plan.frontier.size() > 1 ? 1 : 0;
      EXPECT_EQ(std::count_if(plan.frontier.begin(), plan.frontier.end(),
                              [](const PlanPoint& p) { return p.chosen; }),
                1);
      for (const PlanPoint& a : plan.frontier) {
        EXPECT_EQ(a.chosen, !a.reason.empty());
        for (const PlanPoint& b : plan.frontier) {
          if (&a == &b) continue;
          EXPECT_TRUE(a.latency_us < b.latency_us || a.peak_bytes < b.peak_bytes ||
                      a.compile_s < b.compile_s)
              << a.name << " and " << b.name << ", seed " << seed;
        }
      }
    }
  }
  EXPECT_GT(several, 40u) << "there is hardly anything to choose from";
}

// What a run of a plan holds, from the schedules of its kernels.
int64_t RunBytes(const PlannedModel& model) {
  int64_t scratch = 0;
  int64_t workspace = 0;
  for (const PlannedKernel& kernel : model.kernels) {
    scratch = std::max(scratch, NeedOnChip(kernel.schedule, Cpu()).staged);
    workspace = std::max(workspace, PlanWorkspace(kernel.schedule).bytes);
  }
  return model.plan.arena_bytes + model.plan.threads * scratch + workspace;
}

TEST(Frontier, TheChosenPointIsThePlan) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    for (const PlanOptions& options :
         {PlanOptions{}, PlanOptions{.hints = kMemory}, PlanOptions{.hints = kCompute},
          PlanOptions{.fusion = FusionMode::kOpByOp}, PlanOptions{.frontier = true}}) {
      PlannedModel model = PlanOf(Sample(seed), options);
      const PlanPoint& chosen = ChosenOf(model.plan);
      EXPECT_NEAR(chosen.latency_us, model.plan.totals.estimated_us, 1e-6) << "seed " << seed;
      EXPECT_EQ(chosen.peak_bytes, RunBytes(model)) << "seed " << seed;
      EXPECT_EQ(chosen.launches, static_cast<int64_t>(model.plan.launches.size()));
      EXPECT_EQ(chosen.kernels, static_cast<int64_t>(model.plan.kernels.size()));
    }
  }
}

TEST(Frontier, PeakBytesAreWhatTheExecutorHolds) {
  // Sizes are rounded up to pages, and scratch of neighbours does not begin in one cache set.
  constexpr int64_t kPage = 4096;
  int64_t largest = 0;
  for (uint64_t seed : {3, 4, 6, 7}) {
    for (const Hints& hints : {Hints{}, kMemory}) {
      DeviceSpec device = DeviceNamed(RunnableDevices().back(), 2);
      PlannedModel model = MakePlan(Sample(seed), device, {.hints = hints}).value();
      auto executor = CompilePlan(model, device);
      ASSERT_TRUE(executor.ok()) << executor.status();
      int64_t held = (*executor)->memory().arena_bytes;
      int64_t peak = ChosenOf(model.plan).peak_bytes;
      EXPECT_GE(held, peak) << "seed " << seed;
      EXPECT_LE(held, peak + (2 * 2 + 3) * kPage) << "seed " << seed;
      largest = std::max(largest, peak);
    }
  }
  EXPECT_GT(largest, 0);
}

TEST(Frontier, WithoutPressureTheFastestIsTaken) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    Plan plan = PlanOf(Sample(seed), {.frontier = true}).plan;
    EXPECT_TRUE(plan.frontier.front().chosen) << "seed " << seed;
    EXPECT_THAT(plan.frontier.front().reason, HasSubstr("least time"));
  }
}

TEST(Frontier, TheRequestForMoreOfItChangesNothingElse) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    for (const Hints& hints : {Hints{}, kMemory}) {
      Plan plan = PlanOf(Sample(seed), {.hints = hints}).plan;
      Plan asked = PlanOf(Sample(seed), {.hints = hints, .frontier = true}).plan;
      plan.frontier.clear();
      asked.frontier.clear();
      EXPECT_EQ(PlanToBytes(asked), PlanToBytes(plan)) << "seed " << seed;
    }
  }
}

TEST(Frontier, MemoryPressureTakesTheLeastPeak) {
  int smaller = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Graph graph = Sample(seed);
    Plan usual = PlanOf(graph).plan;
    Plan pressed = PlanOf(graph, {.hints = kMemory, .frontier = true}).plan;
    const PlanPoint& chosen = ChosenOf(pressed);
    EXPECT_THAT(chosen.reason, HasSubstr("least peak bytes: memory pressure"));
    EXPECT_LE(static_cast<double>(chosen.peak_bytes), Near(LeastPeak(pressed))) << "seed " << seed;
    EXPECT_LE(static_cast<double>(chosen.peak_bytes), Near(LeastPeak(usual))) << "seed " << seed;
    smaller += chosen.peak_bytes < ChosenOf(usual).peak_bytes ? 1 : 0;
    // What saves no memory pays for itself in time.
    if (chosen.peak_bytes == ChosenOf(usual).peak_bytes) {
      EXPECT_LE(chosen.latency_us, ChosenOf(usual).latency_us + 1e-6) << "seed " << seed;
    }
  }
  EXPECT_GT(smaller, 6) << "there is no memory to save";
}

TEST(Frontier, MemoryPressureSavesMemoryOfATransformer) {
  for (int layers : {1, 3}) {
    Plan usual = PlanOf(Layers(layers), {.frontier = true}).plan;
    Plan pressed = PlanOf(Layers(layers), {.hints = kMemory}).plan;
    EXPECT_LT(ChosenOf(pressed).peak_bytes, ChosenOf(usual).peak_bytes);
    EXPECT_GE(usual.frontier.size(), 2u);
    EXPECT_GE(pressed.frontier.size(), 2u);
  }
}

TEST(Frontier, LayersSaveTogether) {
  // One layer that is left as it was would hold the peak where it is.
  Plan one = PlanOf(Layers(2), {.hints = kMemory}).plan;
  Plan many = PlanOf(Layers(8), {.hints = kMemory}).plan;
  EXPECT_LE(static_cast<double>(ChosenOf(many).peak_bytes), Near(ChosenOf(one).peak_bytes));
}

TEST(Frontier, TheLedgerSaysWhereMemoryDecided) {
  Plan plan = PlanOf(Layers(1), {.hints = kMemory}).plan;
  auto of = [&](DecisionSubject subject, auto predicate) {
    return std::count_if(plan.decisions.begin(), plan.decisions.end(), [&](const PlanDecision& d) {
      return d.subject == subject && predicate(d);
    });
  };
  // Faster as one kernel, and two all the same.
  EXPECT_GT(of(DecisionSubject::kPair,
               [](const PlanDecision& d) {
                 return d.code == "pressure" && d.verdict == Verdict::kForbidden &&
                        d.benefit_us > 0 && d.what_ifs.at(0).what == "memory-pressure" &&
                        d.reason.find("no plan of a lower peak") != std::string::npos;
               }),
            0);
  EXPECT_EQ(
      of(DecisionSubject::kPair, [](const PlanDecision& d) { return d.code == "superseded"; }), 0)
      << "what gains and was not taken, memory forbids";
  EXPECT_GT(of(DecisionSubject::kGroup,
               [](const PlanDecision& d) {
                 return d.reason.find("B less in memory between kernels") != std::string::npos;
               }),
            0);
}

TEST(Frontier, BothPressuresTakeTheLeastPeakOfWhatComputePressureAllows) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    Graph graph = Sample(seed);
    Plan compute = PlanOf(graph, {.hints = kCompute}).plan;
    Plan both = PlanOf(graph, {.hints = kBoth}).plan;
    EXPECT_LE(static_cast<double>(ChosenOf(both).peak_bytes), Near(ChosenOf(compute).peak_bytes));
    EXPECT_THAT(ChosenOf(both).reason, HasSubstr("memory and compute pressure are high"));
    for (const PlanGroup& group : both.groups) {
      EXPECT_EQ(group.estimate.recompute_bytes, 0) << group.label;
      if (group.kind == GroupKind::kPrepare || group.op_by_op.launches < 2) continue;
      EXPECT_GT(group.op_by_op.estimated_us, 1.5 * group.estimate.time_us) << group.label;
    }
  }
}

TEST(Frontier, WithoutAChoiceItIsOnePoint) {
  Plan nodes = PlanOf(Layers(1), {.fusion = FusionMode::kOpByOp, .hints = kMemory}).plan;
  EXPECT_THAT(Names(nodes.frontier), ElementsAre("op-by-op"));
  EXPECT_THAT(nodes.frontier[0].reason, HasSubstr("one kernel a node"));
}

// The least peak of all ways to put the ops of a small graph into groups.
int64_t LeastPeakOfAll(const Program& program, const PlanOptions& options) {
  DeviceSpec device = Cpu();
  GroupEvaluator evaluator(program, device, options, nullptr);
  PlanWeigher weigher(&evaluator);
  OpLinks links(program);
  std::vector<std::vector<LoopId>> singles;
  std::vector<int> all;
  for (LoopId l = 0; l < static_cast<LoopId>(program.ops.size()); ++l) {
    if (program.op(l).kind == LoopOp::kReinterpret) continue;
    all.push_back(static_cast<int>(singles.size()));
    singles.push_back({l});
  }
  int64_t least = std::numeric_limits<int64_t>::max();
  std::vector<std::vector<LoopId>> groups;
  std::function<void(size_t)> place = [&](size_t i) {
    if (i == singles.size()) {
      if (!GroupGraph(links, singles).CanReplace(all, groups)) return;
      least = std::min(least, weigher.Weigh(TopologicalOrder(program, groups)).value().peak_bytes);
      return;
    }
    for (size_t g = 0; g <= groups.size(); ++g) {
      if (g == groups.size()) groups.emplace_back();
      groups[g].push_back(singles[i][0]);
      // Only whole groups need a schedule.
      bool whole = i + 1 == singles.size();
      bool possible = !whole || std::all_of(groups.begin(), groups.end(), [&](const auto& loops) {
        return evaluator.Evaluate(loops).value()->refusal.empty();
      });
      if (possible) place(i + 1);
      groups[g].pop_back();
      if (groups[g].empty()) groups.pop_back();
    }
  };
  place(0);
  return least;
}

TEST(Frontier, TheLeastPeakIsNearThatOfAllPartitions) {
  int planned = 0;
  int missed = 0;
  for (uint64_t seed = 1; planned < 30; ++seed) {
    Graph graph = Canonicalise(PlanCorpusGraph(seed)).value().graph;
    Program program = BuildProgram(graph).value();
    if (program.ops.size() > 7) continue;
    ++planned;
    int64_t least = LeastPeakOfAll(program, {});
    int64_t found = ChosenOf(PlanOf(graph, {.hints = kMemory}).plan).peak_bytes;
    EXPECT_GE(found, least) << "seed " << seed;
    EXPECT_LE(static_cast<double>(found), 1.05 * static_cast<double>(least)) << "seed " << seed;
    missed += static_cast<double>(found) > Near(least) ? 1 : 0;
  }
  EXPECT_LE(missed, 3);
}

}  // namespace
}  // namespace fusion
