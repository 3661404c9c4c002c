#include "core/wire/explanation.h"

#include <gmock/gmock.h>
#include <google/protobuf/stubs/logging.h>
#include <gtest/gtest.h>

#include "fusion/v1/fusion_service.pb.h"
#include "tests/support/message_checks.h"
#include "tests/support/sample_bundle.h"

namespace fusion {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// Nodes 0..5 in groups {0, 1}, {2} and {3, 4}; 5 is a view in none.
Plan ThreeGroups() {
  Plan plan;
  plan.isa = "avx2";
  plan.target = "generic-avx2";
  plan.nodes = 6;
  plan.kernels = {{.symbol = "fk_a"}, {.symbol = "fk_b"}, {.symbol = "fk_c"}};
  plan.groups = {
      {.nodes = {0, 1}, .kernel = 0}, {.nodes = {2}, .kernel = 1}, {.nodes = {3, 4}, .kernel = 2}};
  plan.inputs = {-1};
  Estimate terms{.time_us = 1};
  plan.decisions = {
      {.subject = DecisionSubject::kGroup,
       .reason = "gains 1 us",
       .together = terms,
       .places = {{.first_group = 0}, {.first_group = 2}},
       .times = 2},
      {.subject = DecisionSubject::kGroup,
       .reason = "one node",
       .places = {{.first_group = 1}},
       .times = 1},
      {.subject = DecisionSubject::kPair,
       .verdict = Verdict::kNoGain,
       .code = "no-gain",
       .reason = "2 us together, 1 us apart",
       .places = {{.first_group = 0, .second_group = 1}, {.first_group = 1, .second_group = 2}},
       .times = 2},
      {.subject = DecisionSubject::kPair,
       .verdict = Verdict::kRefused,
       .code = "cyclic",
       .reason = "1 group lies between the two",
       .places = {{.first_group = 0, .second_group = 2, .between = {1}}},
       .times = 1},
      {.subject = DecisionSubject::kCandidate,
       .reason = "gains 1 us",
       .places = {{.first = {0}, .second = {1}}, {.first = {3}, .second = {4}}},
       .times = 70},
  };
  return plan;
}

std::vector<std::string> Reasons(const PlanExplanation& explanation) {
  std::vector<std::string> out;
  for (const PlanDecision& d : explanation.plan.decisions) out.push_back(d.reason);
  return out;
}

TEST(Explain, AllOfItHasTheNodesOfEveryPlace) {
  PlanExplanation all = Explain(ThreeGroups(), {}).value();
  ASSERT_THAT(all.plan.decisions, SizeIs(5));
  EXPECT_THAT(all.plan.decisions[0].places[1].first, ElementsAre(3, 4));
  EXPECT_THAT(all.plan.decisions[2].places[0].first, ElementsAre(0, 1));
  EXPECT_THAT(all.plan.decisions[2].places[0].second, ElementsAre(2));
  EXPECT_EQ(all.plan.decisions[4].times, 70) << "nothing was left out";
  ASSERT_THAT(all.codes, SizeIs(2));
  EXPECT_EQ(all.codes[0].code, "cyclic");
  EXPECT_THAT(all.codes[1].meaning, HasSubstr("no faster"));
  EXPECT_THAT(all.plan.inputs, IsEmpty()) << "nothing that only a run needs";
}

TEST(Explain, ANodeHasItsGroupItsPairsAndItsCandidates) {
  PlanExplanation one = Explain(ThreeGroups(), {.nodes = {3}}).value();
  EXPECT_THAT(Reasons(one), ElementsAre("gains 1 us", "2 us together, 1 us apart",
                                        "1 group lies between the two", "gains 1 us"));
  EXPECT_THAT(one.plan.decisions[0].places, SizeIs(1));
  EXPECT_EQ(one.plan.decisions[0].places[0].first_group, 2);
  EXPECT_EQ(one.plan.decisions[3].times, 1) << "those places that are shown";
  EXPECT_THAT(Reasons(Explain(ThreeGroups(), {.nodes = {5}}).value()), IsEmpty());
}

TEST(Explain, TwoNodesHaveWhatIsBetweenThem) {
  EXPECT_THAT(Reasons(Explain(ThreeGroups(), {.nodes = {4, 1}}).value()),
              ElementsAre("1 group lies between the two"));
  EXPECT_THAT(Reasons(Explain(ThreeGroups(), {.nodes = {1, 2}}).value()),
              ElementsAre("2 us together, 1 us apart"));
  EXPECT_THAT(Reasons(Explain(ThreeGroups(), {.nodes = {3, 4}}).value()),
              ElementsAre("gains 1 us", "gains 1 us"))
      << "one group, and the candidate that made it";
}

TEST(Explain, AGroupHasItsPairsAndTheCandidatesInsideOfIt) {
  PlanExplanation group = Explain(ThreeGroups(), {.group = 0}).value();
  EXPECT_THAT(Reasons(group), ElementsAre("gains 1 us", "2 us together, 1 us apart",
                                          "1 group lies between the two", "gains 1 us"));
  EXPECT_THAT(group.plan.decisions[3].places, SizeIs(1));
  EXPECT_THAT(group.plan.decisions[1].places, SizeIs(1));
}

TEST(Explain, AFilterThatDoesNotFitNamesItsField) {
  struct {
    ExplainFilter filter;
    const char* message;
  } const kCases[] = {{{.nodes = {6}}, "nodes[0]: 6; the plan has nodes 0..5"},
                      {{.nodes = {0, -1}}, "nodes[1]: -1; the plan has nodes 0..5"},
                      {{.nodes = {1, 1}}, "nodes: 1 twice"},
                      {{.nodes = {1, 2, 3}}, "nodes: 3 positions; expected at most 2"},
                      {{.group = 3}, "group: 3; the plan has groups 0..2"},
                      {{.nodes = {1}, .group = 0}, "group: given together with nodes"}};
  for (const auto& bad : kCases) {
    absl::Status status = Explain(ThreeGroups(), bad.filter).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << bad.message;
    EXPECT_THAT(std::string(Message(status)), HasSubstr(bad.message));
  }
}

PlanExplanation Sample() {
  PlanExplanation out = Explain(SamplePlan(), {}).value();
  out.plan_key = Sha256("plan");
  out.node_names = {"a", "b", "c", "d", "\xff"};
  out.cache = CacheOutcome::kHitStore;
  return out;
}

TEST(ExplanationWire, EveryFieldArrives) {
  EXPECT_EQ(FieldCount<PlanExplanation>(), WireFieldCount<v1::ExplainPlanResponse>());
  EXPECT_EQ(FieldCount<RefusalMeaning>(), WireFieldCount<v1::RefusalCode>());
  PlanExplanation out = ExplanationFromBytes(ExplanationToBytes(Sample())).value();
  EXPECT_EQ(out.plan_key, Sha256("plan"));
  EXPECT_THAT(out.node_names, ElementsAre("a", "b", "c", "d", "?"));
  EXPECT_EQ(out.cache, CacheOutcome::kHitStore);
  ASSERT_THAT(out.codes, SizeIs(1));
  EXPECT_EQ(out.codes[0].code, "no-gain");
  ASSERT_THAT(out.plan.decisions, SizeIs(1));
  EXPECT_THAT(out.plan.decisions[0].places[0].first, ElementsAre(2)) << "the nodes of group 1";
  EXPECT_FALSE(ExplanationFromBytes(ExplanationToBytes(Explain(ThreeGroups(), {}).value()))
                   .value()
                   .cache.has_value());
}

TEST(ExplanationWire, FiltersArrive) {
  v1::ExplainPlanRequest wire;
  EncodeExplainFilter({.nodes = {7, 3}}, &wire);
  ExplainFilter out = DecodeExplainFilter(wire).value();
  EXPECT_THAT(out.nodes, ElementsAre(7, 3));
  EXPECT_EQ(out.group, -1);
  v1::ExplainPlanRequest group;
  EncodeExplainFilter({.group = 0}, &group);
  EXPECT_EQ(DecodeExplainFilter(group).value().group, 0);
  group.set_group(-2);
  EXPECT_THAT(std::string(Message(DecodeExplainFilter(group).status())),
              HasSubstr("group: -2 is negative"));
  wire.add_nodes(1);
  EXPECT_THAT(std::string(Message(DecodeExplainFilter(wire).status())),
              HasSubstr("nodes: 3 positions"));
}

TEST(ExplanationWire, HostileAnswersAreNamedAndNeverCrash) {
  google::protobuf::LogSilencer no_line_per_broken_string;
  v1::ExplainPlanResponse wire;
  EncodeExplanation(Sample(), &wire);
  v1::ExplainPlanResponse bad = wire;
  bad.set_plan_key("short");
  EXPECT_THAT(std::string(Message(DecodeExplanation(bad).status())), HasSubstr("plan_key: "));
  bad = wire;
  bad.add_node_names("one more");
  EXPECT_THAT(std::string(Message(DecodeExplanation(bad).status())),
              HasSubstr("node_names: 6 entries, the plan has 5"));
  bad = wire;
  bad.mutable_plan()->mutable_decisions(0)->mutable_places(0)->set_first_group(99);
  EXPECT_THAT(std::string(Message(DecodeExplanation(bad).status())),
              HasSubstr("plan.decisions[0].places[0].first_group: 99; expected 0.."));
  std::string bytes = wire.SerializeAsString();
  int readable = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ (1 << i % 8));
    if (ExplanationFromBytes(damaged).ok()) ++readable;
  }
  EXPECT_GT(readable, 0);
  EXPECT_LT(readable, static_cast<int>(bytes.size()));
}

}  // namespace
}  // namespace fusion
