#include "core/plan/ledger/ledger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/benefit/estimate.h"
#include "core/bundle/what_if_words.h"
#include "core/graph/build/builder.h"
#include "core/graph/build/canonical.h"
#include "core/graph/build/text.h"
#include "core/plan/cost/gain.h"
#include "core/plan/ledger/what_if.h"
#include "core/plan/planner.h"
#include "core/plan/sets/group_edges.h"
#include "core/plan/sets/grouping.h"
#include "tests/support/no_gain_seeds.h"
#include "tests/support/plan_cases.h"
#include "tests/support/random_graph.h"
#include "tests/support/rule_cases.h"
#include "tests/support/whole_program.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;

PlannedModel PlanOf(const Graph& graph, const DeviceSpec& device, const PlanOptions& options = {},
                    const std::map<NodeId, std::string>& unfused_nodes = {}) {
  auto model = MakePlan(graph, device, options, nullptr, unfused_nodes);
  FUSION_CHECK(model.ok(), Message(model.status()));
  return *std::move(model);
}

Graph RandomCanonical(uint64_t seed) { return Canonicalise(RandomGraph(seed)).value().graph; }

// The entries about two groups, by the groups.
std::map<std::pair<int, int>, const PlanDecision*> PairsOf(
    const Plan& plan, DecisionSubject subject = DecisionSubject::kPair) {
  std::map<std::pair<int, int>, const PlanDecision*> out;
  for (const PlanDecision& d : plan.decisions) {
    if (d.subject != subject) continue;
    for (const DecisionPlace& place : d.places) {
      EXPECT_TRUE(out.try_emplace({place.first_group, place.second_group}, &d).second);
    }
  }
  return out;
}

std::string WordsOf(const PlanDecision& d) {
  return StrJoin(d.what_ifs, "; ", [](const WhatIf& what_if) { return what_if.words; });
}

bool HasNumber(std::string_view text) {
  return text.find_first_of("0123456789") != std::string_view::npos;
}

// Two products whose intermediate does not fit a small cache.
constexpr const char* kTwoProducts = R"(graph "g" {
  %0 = input "x" : f32[128,64]
  %1 = weight "w1" : f32[64,256]
  %2 = weight "w2" : f32[256,64]
  %3 = MatMul(%0, %1) : f32[128,256]  "" @ "up"
  %4 = Relu(%3) : f32[128,256]  "" @ "act"
  %5 = MatMul(%4, %2) : f32[128,64]  "" @ "down"
  output %5
}
)";

TEST(Ledger, EveryGroupAndEveryAdjacentPairIsExplainedWithNumbers) {
  std::set<std::string> codes;
  std::vector<uint64_t> seeds = kNoGainSeeds;
  for (uint64_t seed = 1; seed <= 120; ++seed) seeds.push_back(seed);
  for (uint64_t seed : seeds) {
    Graph graph = RandomCanonical(seed);
    PlanOptions options{.fusion = seed % 10 == 0 ? FusionMode::kOpByOp : FusionMode::kFused,
                        .hints = {.compute_pressure = seed % 7 == 0 ? 0.9 : 0.0}};
    PlannedModel model = PlanOf(graph, Cpu(), options);
    const Plan& plan = model.plan;
    std::set<int> explained;
    for (const PlanDecision& d : plan.decisions) {
      EXPECT_GE(d.times, static_cast<int64_t>(d.places.size()));
      if (d.subject != DecisionSubject::kGroup) continue;
      EXPECT_EQ(d.verdict, Verdict::kChosen);
      for (const DecisionPlace& place : d.places) explained.insert(place.first_group);
      if (d.together.has_value()) {
        EXPECT_TRUE(HasNumber(d.reason)) << d.reason;
      }
    }
    EXPECT_EQ(explained.size(), plan.groups.size()) << "seed " << seed;
    std::map<std::pair<int, int>, const PlanDecision*> pairs = PairsOf(plan);
    GroupEdges order(model.program, model.groups);
    for (const auto& edge : order.edges()) {
      auto entry = pairs.find(edge);
      ASSERT_NE(entry, pairs.end()) << "seed " << seed;
      const PlanDecision& d = *entry->second;
      codes.insert(d.code);
      EXPECT_NE(d.verdict, Verdict::kChosen);
      EXPECT_NE(FindRefusal(d.code), nullptr) << d.code;
      EXPECT_NE(d.reason, "");
      EXPECT_TRUE(d.first.has_value() && d.second.has_value());
      EXPECT_TRUE(HasNumber(d.reason) || HasNumber(WordsOf(d)))
          << "seed " << seed << ": " << d.code << ": " << d.reason;
    }
  }
  EXPECT_THAT(codes, testing::IsSupersetOf({"no-gain", "op-by-op"}));
}

// Programs compare the words; a flip says what to change, so what is a fact is none.
TEST(Ledger, FlipsHaveTheWordsThatAreDocumented) {
  std::set<std::string> met;
  auto add = [&](const Plan& plan) {
    for (const PlanDecision& d : plan.decisions) {
      for (const WhatIf& what_if : d.what_ifs) met.insert(what_if.what);
    }
  };
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    add(PlanOf(RandomCanonical(seed), Cpu(),
               {.fusion = seed % 10 == 0 ? FusionMode::kOpByOp : FusionMode::kFused,
                .hints = {.memory_pressure = seed % 5 == 0 ? 0.9 : 0.0,
                          .compute_pressure = seed % 7 == 0 ? 0.9 : 0.0}})
            .plan);
  }
  add(PlanOf(GraphOf(kTwoProducts), Cpu(), {}, {{1, "g++ died"}}).plan);
  add(PlanOf(GraphOf(kTwoProducts), Cpu(), {.hints = {.compute_pressure = 0.9}}).plan);
  add(PlanOf(Layers(2), DeviceNamed("a100", 0)).plan);
  std::set<std::string> known(std::begin(kWhatIfWords), std::end(kWhatIfWords));
  for (const std::string& word : met) EXPECT_TRUE(known.contains(word)) << word;
  EXPECT_GE(met.size(), 6u);
}

// Two products of one tensor.
constexpr const char* kSiblings = R"(graph "g" {
  %0 = input "x" : f32[64,64]
  %1 = weight "q" : f32[64,64]
  %2 = weight "k" : f32[64,64]
  %3 = MatMul(%0, %1) : f32[64,64]  "" @ "q"
  %4 = MatMul(%0, %2) : f32[64,64]  "" @ "k"
  output %3
  output %4
}
)";

TEST(Ledger, GroupsThatReadTheSameValueHaveAnEntry) {
  Rules rules = RulesOf(R"(rules { name: 'apart' pattern {
    nodes { id: 'q' ops: 'MatMul' } nodes { id: 'k' ops: 'MatMul' }
    inputs { nodes: ['q', 'k'] input: 0 } } forbid {} })");
  DeviceSpec device = DeviceNamed("h100", 0);
  Graph graph = GraphOf(kSiblings);
  Plan free = PlanOf(graph, device).plan;
  ASSERT_EQ(free.totals.launches, 1) << "side by side";
  EXPECT_TRUE(PairsOf(free, DecisionSubject::kSiblings).empty());
  Plan plan = PlanOf(graph, device, {.rules = rules}).plan;
  ASSERT_EQ(plan.totals.launches, 2);
  EXPECT_TRUE(PairsOf(plan).empty()) << "neither reads from the other";
  auto siblings = PairsOf(plan, DecisionSubject::kSiblings);
  ASSERT_EQ(siblings.size(), 1u);
  const PlanDecision& d = *siblings.begin()->second;
  EXPECT_EQ(d.code, "rule");
  ASSERT_EQ(d.what_ifs.size(), 1u);
  EXPECT_EQ(d.what_ifs[0].what, kWhatIfRules);
  // Without the rule they run side by side, and the entry knows what that takes.
  ASSERT_TRUE(d.together.has_value());
  EXPECT_EQ(d.together->time_us, free.totals.estimated_us);
  EXPECT_NEAR(d.benefit_us, plan.totals.estimated_us - free.totals.estimated_us, 1e-9);
}

TEST(Ledger, EverySiblingThatIsNearAndOnNoPathHasAnEntryWithANumber) {
  int met = 0;
  for (uint64_t seed = 1; seed <= 120; ++seed) {
    // With one kernel a node there are many.
    PlanOptions options{.fusion = seed % 2 == 0 ? FusionMode::kOpByOp : FusionMode::kFused};
    PlannedModel model = PlanOf(RandomCanonical(seed), Cpu(), options);
    auto siblings = PairsOf(model.plan, DecisionSubject::kSiblings);
    GroupEdges order(model.program, model.groups);
    for (const auto& [groups, d] : siblings) {
      EXPECT_LT(groups.first, groups.second);
      EXPECT_FALSE(order.HasPath(groups.first, groups.second));
      EXPECT_TRUE(HasNumber(d->reason) || HasNumber(WordsOf(*d))) << d->code << ": " << d->reason;
    }
    std::map<ValueId, std::set<int>> readers;
    for (size_t g = 0; g < model.groups.size(); ++g) {
      for (LoopId l : model.groups[g]) {
        for (ValueId v : model.program.op(l).inputs) {
          if (model.program.value(v).kind == TensorKind::kInput) {
            readers[v].insert(static_cast<int>(g));
          }
        }
      }
    }
    for (const auto& [value, groups] : readers) {
      for (auto a = groups.begin(); a != groups.end(); ++a) {
        auto b = std::next(a);
        if (b == groups.end() || order.HasPath(*a, *b)) continue;
        ++met;
        EXPECT_TRUE(siblings.contains({*a, *b})) << "seed " << seed;
      }
    }
  }
  EXPECT_GT(met, 5);
}

// Adjacent nodes of the graph in different groups, views between them or not.
TEST(Ledger, AdjacentNodesInDifferentGroupsHaveAPair) {
  int met = 0;
  for (uint64_t seed = 1; seed <= 240; ++seed) {
    Graph graph = RandomCanonical(seed);
    Plan plan = PlanOf(graph, Cpu()).plan;
    std::vector<std::set<int>> groups_of(graph.nodes().size());
    for (size_t g = 0; g < plan.groups.size(); ++g) {
      for (int n : plan.groups[g].nodes) {
        groups_of[static_cast<size_t>(n)].insert(static_cast<int>(g));
      }
    }
    std::map<std::pair<int, int>, const PlanDecision*> pairs = PairsOf(plan);
    for (size_t n = 0; n < graph.nodes().size(); ++n) {
      for (TensorId t : graph.nodes()[n].inputs) {
        NodeId from = t == kNoTensor ? kNoNode : graph.tensor(t).producer;
        if (from == kNoNode) continue;
        for (int a : groups_of[static_cast<size_t>(from)]) {
          for (int b : groups_of[n]) {
            if (a == b) continue;
            ++met;
            EXPECT_TRUE(pairs.contains({a, b})) << "seed " << seed << " node " << n;
          }
        }
      }
    }
  }
  EXPECT_GT(met, 40);
}

// Graphs some of whose groups gain nothing from joining, and their devices.
std::vector<std::pair<Graph, DeviceSpec>> NoGainCorpus() {
  std::vector<std::pair<Graph, DeviceSpec>> out;
  for (uint64_t seed = 1; seed <= 200; ++seed) out.emplace_back(RandomCanonical(seed), Cpu());
  for (int64_t bytes : {16384, 32768, 65536, 131072}) {
    DeviceSpec small = Cpu();
    for (MemoryLevel& level : small.levels) {
      if (!level.shared && level.bytes > bytes) level.bytes = bytes;
    }
    out.emplace_back(GraphOf(kTwoProducts), small);
  }
  out.emplace_back(Layers(2), Cpu());
  for (uint64_t seed : kNoGainSeeds) out.emplace_back(RandomCanonical(seed), Cpu());
  return out;
}

// What a no-gain entry says about launches is so: with that cost the two are planned as one.
TEST(Ledger, ADearerLaunchTurnsNoGainAsItSays) {
  int turned = 0;
  for (const auto& [graph, device] : NoGainCorpus()) {
    PlannedModel model = PlanOf(graph, device);
    for (const auto& [groups, d] : PairsOf(model.plan)) {
      if (d->code != "no-gain") continue;
      auto flip = std::find_if(d->what_ifs.begin(), d->what_ifs.end(),
                               [](const WhatIf& f) { return f.what == "launch-us"; });
      ASSERT_NE(flip, d->what_ifs.end()) << "two launches become one";
      ++turned;
      std::vector<LoopId> both;
      for (int g : {groups.first, groups.second}) {
        const std::vector<LoopId>& loops = model.groups[static_cast<size_t>(g)];
        both.insert(both.end(), loops.begin(), loops.end());
      }
      std::sort(both.begin(), both.end());
      for (double part : {0.99, 1.01}) {
        DeviceSpec other = device;
        other.launch_s = flip->value * part * 1e-6;
        PlanOptions options;
        GroupEvaluator evaluator(model.program, other, options, nullptr);
        double gain_us = -(*evaluator.Evaluate(both))->estimate.time_us;
        for (int g : {groups.first, groups.second}) {
          gain_us += (*evaluator.Evaluate(model.groups[static_cast<size_t>(g)]))->estimate.time_us;
        }
        EXPECT_EQ(gain_us > kMinGainUs, part > 1) << flip->words;
      }
    }
  }
  EXPECT_GE(turned, 5);
}

// The same of memory, for kernels that stay cut as they are.
TEST(Ledger, MemoryOfThatSpeedTurnsNoGainAsItSays) {
  int turned = 0;
  for (const auto& [graph, device] : NoGainCorpus()) {
    PlannedModel model = PlanOf(graph, device);
    PlanOptions options;
    GroupEvaluator evaluator(model.program, device, options, nullptr);
    for (const auto& [groups, d] : PairsOf(model.plan)) {
      if (d->code != "no-gain") continue;
      for (const WhatIf& what_if : d->what_ifs) {
        if (what_if.what != "memory-gb-per-s") continue;
        ++turned;
        const std::vector<LoopId>& first = model.groups[static_cast<size_t>(groups.first)];
        const std::vector<LoopId>& second = model.groups[static_cast<size_t>(groups.second)];
        std::vector<LoopId> both = first;
        both.insert(both.end(), second.begin(), second.end());
        std::sort(both.begin(), both.end());
        double factor = what_if.value * 1e9 / device.levels.back().total_bytes_per_s;
        bool slower = factor < 1;
        for (double part : {0.99, 1.01}) {
          DeviceSpec other = device;
          for (MemoryLevel& level : other.levels) {
            level.bytes_per_s *= factor * part;
            level.total_bytes_per_s *= factor * part;
          }
          auto time_us = [&](const std::vector<LoopId>& loops) {
            const GroupChoice* choice = evaluator.Choose(loops).value();
            return EstimateKernel(choice->lowered.schedule, other).time_us;
          };
          double gain_us = time_us(first) + time_us(second) - time_us(both);
          EXPECT_EQ(gain_us > kMinGainUs, slower == (part < 1)) << what_if.words;
        }
      }
    }
  }
  EXPECT_GE(turned, 5);
}

constexpr const char* kLongRows = R"(graph "rows" {
  %0 = input "x" : f32[64,50000]
  %1 = Softmax(%0) {axis=-1} : f32[64,50000]  "" @ "softmax"
  %2 = Exp(%1) : f32[64,50000]  "" @ "exp"
  output %2
}
)";

TEST(Ledger, MemoryOnChipOfThatSizeGivesAPlace) {
  DeviceSpec device = DeviceNamed("a100", 0);
  Plan plan = PlanOf(GraphOf(kLongRows), device).plan;
  const WhatIf* flip = nullptr;
  for (const PlanDecision& d : plan.decisions) {
    if (d.subject != DecisionSubject::kPair || d.code != "on-chip") continue;
    for (const WhatIf& f : d.what_ifs) {
      if (f.what == "on-chip-bytes" && flip == nullptr) flip = &f;
    }
  }
  ASSERT_NE(flip, nullptr) << "something has no place";
  EXPECT_THAT(flip->words, HasSubstr(StrCat("of ", device.staged_level)));
  auto refusals = [&](double bytes) {
    DeviceSpec other = device;
    for (MemoryLevel& level : other.levels) {
      if (level.name == device.staged_level) {
        level.bytes = static_cast<int64_t>(bytes);
        level.headroom = 1;
      }
    }
    auto count = [&](const Plan& p) {
      return std::count_if(p.decisions.begin(), p.decisions.end(),
                           [](const PlanDecision& d) { return d.code == "on-chip"; });
    };
    return count(PlanOf(GraphOf(kLongRows), other).plan);
  };
  EXPECT_LT(refusals(flip->value), refusals(flip->value - 1));
}

// Rows of a block of products so wide that no block of the device leaves room for them.
constexpr const char* kWideProduct = R"(graph "wide" {
  %0 = input "x" : f32[512,256]
  %1 = weight "w" : f32[256,8192]
  %2 = MatMul(%0, %1) : f32[512,8192]  "" @ "mm"
  %3 = Softmax(%2) {axis=-1} : f32[512,8192]  "" @ "softmax"
  output %3
}
)";

TEST(Ledger, TilesOfThatLengthHaveAPlaceAndLongerOnesHaveNot) {
  DeviceSpec device = DeviceNamed("a100", 0);
  absl::StatusOr<WholeProgram> whole = AsOneGroup(BuildProgram(GraphOf(kWideProduct)).value());
  ASSERT_TRUE(whole.ok()) << whole.status();
  std::optional<FitProbe> probe = ProbeFit(whole->group, device, {});
  ASSERT_TRUE(probe.has_value());
  ASSERT_GT(probe->tile, 0) << "one row has a place";
  EXPECT_LT(probe->tile, probe->tried_tile);
  std::vector<WhatIf> what_ifs = FitWhatIfs(*probe);
  ASSERT_GE(what_ifs.size(), 2u);
  EXPECT_EQ(what_ifs[0].what, "tile-elements");
  EXPECT_EQ(what_ifs[0].value, static_cast<double>(probe->tile));
  EXPECT_EQ(what_ifs[1].what, "on-chip-bytes");
  ASSERT_FALSE(probe->lacking.empty());
  EXPECT_GT(probe->lacking[0].needed_bytes, probe->lacking[0].usable_bytes);
  // Behind caches everything has a place.
  EXPECT_FALSE(ProbeFit(whole->group, Cpu(), {}).has_value());
}

// A value that is returned must be written, which no block of rows can do alone: the ledger says so
// where that is what costs the gain.
TEST(Ledger, AResultThatIsNotReturnedTurnsItAsItSays) {
  std::string text = R"(graph "g" {
  %0 = input "mask" : f32[128]
  %1 = input "x" : f32[8,256,64]
  %2 = input "y" : f32[8,64,128]
  %3 = Neg(%0) : f32[128]  "" @ "mask"
  %4 = MatMul(%1, %2) : f32[8,256,128]  "" @ "scores"
  %5 = Add(%4, %3) : f32[8,256,128]  "" @ "add"
  output %5
)";
  Plan returned = PlanOf(GraphOf(text + "  output %3\n}\n"), Cpu()).plan;
  ASSERT_EQ(returned.totals.kernels, 2);
  const PlanDecision& d = *PairsOf(returned).at({0, 1});
  EXPECT_EQ(d.code, "no-gain");
  ASSERT_FALSE(d.what_ifs.empty());
  EXPECT_EQ(d.what_ifs[0].what, "outside-readers");
  EXPECT_THAT(d.what_ifs[0].words, HasSubstr("if the result of Neg were not returned"));
  EXPECT_EQ(PlanOf(GraphOf(text + "}\n"), Cpu()).plan.totals.kernels, 1);
}

TEST(Ledger, HighComputePressureIsTheReasonItGives) {
  Plan plan = PlanOf(GraphOf(kTwoProducts), Cpu(), {.hints = {.compute_pressure = 0.9}}).plan;
  auto forbidden = [](const PlanDecision& d) {
    return d.subject == DecisionSubject::kPair && d.code == "pressure" &&
           d.verdict == Verdict::kForbidden && d.benefit_us > kMinGainUs && !d.what_ifs.empty() &&
           d.what_ifs[0].what == "compute-pressure";
  };
  EXPECT_TRUE(std::any_of(plan.decisions.begin(), plan.decisions.end(), forbidden));
}

TEST(Ledger, CyclicPairsNameWhatLiesBetween) {
  Plan plan = PlanOf(GraphOf(R"(graph "g" {
  %0 = input "x" : f32[6,35]
  %1 = Exp(%0) : f32[6,35]  "" @ "first"
  %2 = Reshape(%1) {shape=[10, 21]} : f32[10,21]  "" @ "there"
  %3 = Neg(%2) : f32[10,21]  "" @ "between"
  %4 = Reshape(%3) {shape=[6, 35]} : f32[6,35]  "" @ "back"
  %5 = Add(%1, %4) : f32[6,35]  "" @ "last"
  output %5
}
)"),
                     Cpu())
                  .plan;
  std::map<std::pair<int, int>, const PlanDecision*> pairs = PairsOf(plan);
  ASSERT_EQ(pairs.size(), 3u);
  const PlanDecision& d = *pairs.at({0, 2});
  EXPECT_EQ(d.code, "cyclic");
  EXPECT_EQ(d.reason, "1 group lies between the two");
  EXPECT_EQ(d.places[0].between, std::vector<int>{1});
  EXPECT_EQ(pairs.at({0, 1})->code, "reshape");
}

TEST(Ledger, NodesThatStayAloneSayWhichFailureItWas) {
  Plan plan = PlanOf(GraphOf(kTwoProducts), Cpu(), {}, {{1, "g++ died"}}).plan;
  bool told = false;
  for (const PlanDecision& d : plan.decisions) {
    if (d.subject != DecisionSubject::kPair || d.code != "alone") continue;
    told = true;
    EXPECT_EQ(d.verdict, Verdict::kForbidden);
    EXPECT_THAT(d.reason, HasSubstr("g++ died"));
  }
  EXPECT_TRUE(told);
}

TEST(Ledger, EqualEntriesOfLayersAreStoredOnce) {
  Plan few = PlanOf(Layers(4), Cpu()).plan;
  Plan many = PlanOf(Layers(24), Cpu()).plan;
  ASSERT_GT(many.groups.size(), 5 * few.groups.size());
  EXPECT_EQ(many.decisions.size(), few.decisions.size());
  // Those taken are of every layer; what was refused was looked at in one of them.
  EXPECT_GT(many.candidates, 4 * few.candidates);
  int64_t most = 0;
  for (const PlanDecision& d : many.decisions) most = std::max(most, d.times);
  EXPECT_GE(most, 23);
}

TEST(Ledger, CandidatesBeyondTheBoundAreOnlyCounted) {
  Plan plan = PlanOf(Layers(200), Cpu()).plan;
  for (const PlanDecision& d : plan.decisions) {
    if (d.subject != DecisionSubject::kCandidate) continue;
    EXPECT_LE(d.places.size(), kMaxCandidatePlaces);
  }
  auto counted = [&](const PlanDecision& d) {
    return d.subject == DecisionSubject::kCandidate &&
           d.times > static_cast<int64_t>(d.places.size());
  };
  EXPECT_TRUE(std::any_of(plan.decisions.begin(), plan.decisions.end(), counted));
}

}  // namespace
}  // namespace fusion
