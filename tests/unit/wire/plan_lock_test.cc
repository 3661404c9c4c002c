#include "core/wire/options/plan_lock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "core/bundle/options.h"
#include "fusion/v1/plan_lock.pb.h"
#include "tests/support/message_checks.h"
#include "tests/support/sample_lock.h"

namespace fusion {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

v1::PlanLock LockWire() {
  v1::PlanLock wire;
  EncodeLock(SampleLock(), &wire);
  return wire;
}

TEST(WireLock, EveryFieldTravels) {
  // The version is the wire's own; `use` never leaves the process, nor do LockedCut::extents.
  EXPECT_EQ(FieldCount<PlanLock>(), WireFieldCount<v1::PlanLock>());
  EXPECT_EQ(FieldCount<LockedKernel>(), WireFieldCount<v1::LockedKernel>());
  EXPECT_EQ(FieldCount<LockedGroup>(), WireFieldCount<v1::LockedGroup>());
  EXPECT_EQ(FieldCount<LockedBody>(), WireFieldCount<v1::LockedBody>());
  EXPECT_EQ(FieldCount<LockedVariant>(), WireFieldCount<v1::LockedVariant>());
  EXPECT_EQ(FieldCount<LockedSequentialPhase>(), WireFieldCount<v1::LockedTurn>());
  EXPECT_EQ(FieldCount<LockedChoice>(), WireFieldCount<v1::LockedChoice>());
  // Split and phases are one message; a cut that has it has nothing else.
  EXPECT_EQ(FieldCount<LockedTiling>(), WireFieldCount<v1::LockedCut>() + 2);
  EXPECT_EQ(FieldCount<LockedProduct>(), WireFieldCount<v1::LockedProduct>());
  EXPECT_EQ(FieldCount<LockedTile>(), WireFieldCount<v1::LockedTile>());
  // A repeat has a body, all else a choice. Bodies and variants are of the same messages.
  std::vector<std::string> unset = UnsetFields(LockWire());
  std::erase_if(unset, [](const std::string& field) {
    return field.starts_with("bodies.") || field.starts_with("variants.decisions.");
  });
  EXPECT_THAT(unset, ElementsAre("groups.body", "choices.parts.split", "choices.turns",
                                 "choices.pipelines"));
  EXPECT_TRUE(LockWire().choices(2).parts(0).has_split());
  PlanLock back = DecodeLock(LockWire()).value();
  EXPECT_EQ(DigestOf(back), DigestOf(SampleLock()));
  v1::PlanLock again;
  EncodeLock(back, &again);
  EXPECT_EQ(TextOf(again), TextOf(LockWire()));
}

TEST(WireLock, TextReadsBackAndIsDeterministic) {
  std::string text = LockToText(SampleLock());
  EXPECT_EQ(text, LockToText(SampleLock()));
  EXPECT_THAT(text, HasSubstr("  ops: [0, 2, 3]\n"));
  EXPECT_THAT(text, HasSubstr("    grid {\n      dim: \"m\"\n      tile: 16\n    }\n"));
  PlanLock back = LockFromText(text).value();
  EXPECT_EQ(DigestOf(back), DigestOf(SampleLock()));
  EXPECT_EQ(LockToText(back), text);
}

TEST(WireLock, DigestsMayBeLeftOut) {
  PlanLock lock = SampleLock();
  lock.device = std::nullopt;
  lock.plan = std::nullopt;
  lock.kernels[0] = {.label = "MatMul", .schedule = {}, .source = {}, .key = {}};
  PlanLock back = LockFromText(LockToText(lock)).value();
  EXPECT_FALSE(back.plan.has_value());
  EXPECT_FALSE(back.kernels[0].schedule.has_value());
  EXPECT_EQ(DigestOf(back), DigestOf(lock));
}

TEST(WireLock, TextThatIsNoneSaysWhere) {
  absl::Status status = LockFromText("version: 1\ngroups { ops: x }\n").status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(Message(status)), HasSubstr("line 2"));
  EXPECT_THAT(std::string(Message(LockFromText("knots: 1\n").status())), HasSubstr("knots"));
  EXPECT_THAT(std::string(Message(LockFromText("").status())), HasSubstr("version: 0"));
}

// Cuts hold cuts: a parser that follows them as deep as they go runs out of stack.
TEST(WireLock, TextThatIsTooDeepSaysWhereAndHowDeepItMayBe) {
  std::string text = "version: 1\nchoices { parts {\n";
  for (int i = 0; i < 200'000; ++i) text += "split { partial { ";
  absl::Status status = LockFromText(text).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status.code();
  EXPECT_THAT(std::string(Message(status)), AllOf(HasSubstr("line 3, column "), HasSubstr("80")));
  std::string legal =
      "version: 1 choices { parts { split { dim: \"k\" parts: 2 partial { products { op: -1 } } } "
      "} }";
  EXPECT_THAT(std::string(Message(LockFromText(legal).status())),
              HasSubstr("graph_sha256: missing"))
      << "read to its end";
}

TEST(WireLock, HostileFieldsAreNamed) {
  const std::pair<std::function<void(v1::PlanLock*)>, const char*> kCases[] = {
      {[](v1::PlanLock* l) { l->set_version(2); }, "version: 2; this build reads 1"},
      {[](v1::PlanLock* l) { l->set_planner_version(-1); }, "planner_version: -1"},
      {[](v1::PlanLock* l) { l->set_codegen_version(-1); }, "codegen_version: -1"},
      {[](v1::PlanLock* l) { l->set_target(std::string(5000, 'x')); }, "target: 5000 bytes"},
      {[](v1::PlanLock* l) { l->set_device_sha256("12"); }, "device_sha256: \"12\"; expected 64"},
      {[](v1::PlanLock* l) { l->set_graph_sha256(std::string(64, 'Z')); }, "graph_sha256: \"ZZ"},
      {[](v1::PlanLock* l) { l->clear_graph_sha256(); }, "graph_sha256: missing"},
      {[](v1::PlanLock* l) { l->set_fusion(static_cast<v1::FusionMode>(9)); }, "fusion: unknown"},
      {[](v1::PlanLock* l) { l->set_numerics(static_cast<v1::Numerics>(9)); }, "numerics: unknown"},
      {[](v1::PlanLock* l) { l->mutable_groups(1)->clear_ops(); },
       "groups[1].ops: 0 entries; expected 1"},
      {[](v1::PlanLock* l) { l->mutable_groups(1)->set_ops(0, -1); }, "groups[1].ops[0]: -1"},
      {[](v1::PlanLock* l) { l->mutable_groups(0)->set_ops(1, 0); },
       "groups[0].ops[1]: 0; expected positions of loop ops, ascending"},
      {[](v1::PlanLock* l) { l->mutable_groups(0)->set_choice(4); },
       "groups[0].choice: 4; expected 0..3"},
      {[](v1::PlanLock* l) { l->mutable_groups(0)->set_choice(-1); }, "groups[0].choice: -1"},
      {[](v1::PlanLock* l) { l->mutable_choices(0)->clear_parts(); }, "choices[0].parts: 0"},
      {[](v1::PlanLock* l) { l->mutable_choices(3)->mutable_turns()->RemoveLast(); },
       "choices[3].turns: 1 entries; expected 2"},
      {[](v1::PlanLock* l) { l->mutable_choices(3)->add_parts(); }, "choices[3].turns: with parts"},
      {[](v1::PlanLock* l) { l->mutable_choices(3)->mutable_turns(0)->set_ops(1, 0); },
       "choices[3].turns[0].ops[1]: 0; expected positions"},
      {[](v1::PlanLock* l) { l->mutable_choices(3)->mutable_turns(1)->set_choice(4); },
       "choices[3].turns[1].choice: 4; expected 0..3"},
      {[](v1::PlanLock* l) { l->mutable_choices(3)->mutable_turns(1)->set_choice(3); },
       "choices[3].turns[1].choice: 3 has turns itself"},
      {[](v1::PlanLock* l) { l->mutable_choices(3)->mutable_pipelines(0)->set_first(-1); },
       "choices[3].pipelines[0].first: -1; expected 0.."},
      {[](v1::PlanLock* l) { l->mutable_choices(3)->mutable_pipelines(0)->set_phases(1); },
       "choices[3].pipelines[0].phases: 1; expected 2.."},
      {[](v1::PlanLock* l) { l->mutable_choices(3)->mutable_pipelines(0)->clear_slices(); },
       "choices[3].pipelines[0].slices: 0 entries; expected 1"},
      {[](v1::PlanLock* l) {
         l->mutable_choices(3)->mutable_pipelines(0)->mutable_slices(0)->set_tile(0);
       },
       "choices[3].pipelines[0].slices[0].tile: 0; expected 1.."},
      {[](v1::PlanLock* l) {
         *l->mutable_choices(0)->add_pipelines() = l->choices(3).pipelines(0);
       },
       "choices[0].pipelines: without turns"},
      {[](v1::PlanLock* l) {
         l->mutable_choices(1)->mutable_parts(1)->mutable_grid(0)->set_tile(0);
       },
       "choices[1].parts[1].grid[0].tile: 0"},
      {[](v1::PlanLock* l) {
         l->mutable_choices(0)->mutable_parts(0)->mutable_grid(0)->set_dim(std::string(999, 'd'));
       },
       "choices[0].parts[0].grid[0].dim: 999 bytes"},
      {[](v1::PlanLock* l) {
         l->mutable_choices(0)->mutable_parts(0)->mutable_streamed()->set_tile(-5);
       },
       "choices[0].parts[0].streamed.tile: -5"},
      {[](v1::PlanLock* l) {
         l->mutable_choices(0)->mutable_parts(0)->mutable_products(0)->set_op(-1);
       },
       "choices[0].parts[0].products[0].op: -1"},
      {[](v1::PlanLock* l) {
         l->mutable_choices(0)->mutable_parts(0)->mutable_products(0)->set_rows(0);
       },
       "choices[0].parts[0].products[0].rows: 0"},
      {[](v1::PlanLock* l) {
         l->mutable_choices(0)->mutable_parts(0)->mutable_products(0)->set_columns(1 << 20);
       },
       "choices[0].parts[0].products[0].columns: 1048576"},
      {[](v1::PlanLock* l) { l->mutable_kernels(0)->set_schedule_sha256("x"); },
       "kernels[0].schedule_sha256: \"x\""},
      {[](v1::PlanLock* l) { l->mutable_kernels(0)->set_source_sha256("x"); },
       "kernels[0].source_sha256: \"x\""},
      {[](v1::PlanLock* l) { l->mutable_kernels(0)->set_kernel_key("x"); },
       "kernels[0].kernel_key: \"x\""},
      {[](v1::PlanLock* l) { l->set_plan_sha256("x"); }, "plan_sha256: \"x\""},
  };
  for (const auto& [damage, message] : kCases) {
    v1::PlanLock wire = LockWire();
    damage(&wire);
    absl::Status status = DecodeLock(wire).status();
    EXPECT_FALSE(status.ok()) << message;
    EXPECT_THAT(std::string(Message(status)), HasSubstr(message));
  }
}

TEST(PlanLock, EveryFieldReachesItsDigest) {
  const std::vector<std::function<void(PlanLock*)>> changes = {
      [](PlanLock* l) { l->planner_version = 9; },
      [](PlanLock* l) { l->codegen_version = 9; },
      [](PlanLock* l) { l->target = "x"; },
      [](PlanLock* l) { l->device = std::nullopt; },
      [](PlanLock* l) { l->graph = Sha256("x"); },
      [](PlanLock* l) { l->fusion = FusionMode::kFused; },
      [](PlanLock* l) { l->numerics = Numerics::kFast; },
      [](PlanLock* l) { l->groups[0].ops[2] = 4; },
      [](PlanLock* l) { l->groups[0].choice = 0; },
      [](PlanLock* l) { l->groups.pop_back(); },
      [](PlanLock* l) { l->choices.pop_back(); },
      [](PlanLock* l) { l->choices[1].parts.pop_back(); },
      [](PlanLock* l) { l->choices[0].parts[0].grid[0].dim = "x"; },
      [](PlanLock* l) { l->choices[0].parts[0].grid[0].tile = 1; },
      [](PlanLock* l) { l->choices[0].parts[0].streamed = std::nullopt; },
      [](PlanLock* l) { l->choices[0].parts[0].streamed->tile = 1; },
      [](PlanLock* l) { l->choices[0].parts[0].products[0].op = 9; },
      [](PlanLock* l) { l->choices[0].parts[0].products[0].swap = false; },
      [](PlanLock* l) { l->choices[0].parts[0].products[0].rows = 9; },
      [](PlanLock* l) { l->choices[0].parts[0].products[0].columns = 9; },
      [](PlanLock* l) { l->choices[0].parts[0].products[0].stage_rows = false; },
      [](PlanLock* l) { l->choices[3].turns.pop_back(); },
      [](PlanLock* l) { l->choices[3].turns[0].choice = 1; },
      [](PlanLock* l) { l->choices[3].turns[0].ops[1] = 1; },
      [](PlanLock* l) { l->choices[3].pipelines.clear(); },
      [](PlanLock* l) { l->choices[3].pipelines[0].first = 0; },
      [](PlanLock* l) { l->choices[3].pipelines[0].phases = 3; },
      [](PlanLock* l) { l->choices[3].pipelines[0].slices[0].dim = "x"; },
      [](PlanLock* l) { l->choices[3].pipelines[0].slices[0].tile = 4; },
      [](PlanLock* l) { l->kernels[0].label = "x"; },
      [](PlanLock* l) { l->kernels[0].schedule = std::nullopt; },
      [](PlanLock* l) { l->kernels[0].source = std::nullopt; },
      [](PlanLock* l) { l->kernels[0].key = std::nullopt; },
      [](PlanLock* l) { l->kernels.clear(); },
      [](PlanLock* l) { l->plan = std::nullopt; },
  };
  std::set<Digest> digests = {DigestOf(SampleLock())};
  for (size_t i = 0; i < changes.size(); ++i) {
    PlanLock lock = SampleLock();
    changes[i](&lock);
    EXPECT_TRUE(digests.insert(DigestOf(lock)).second) << "flip " << i;
  }
}

}  // namespace
}  // namespace fusion
