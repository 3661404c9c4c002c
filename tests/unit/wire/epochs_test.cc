#include "core/wire/epochs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "fusion/v1/fusion_service.pb.h"
#include "tests/support/message_checks.h"

namespace fusion {
namespace {

using testing::HasSubstr;

EpochList SampleEpochs() {
  const HeldBackScore score{{7, 0.25, 0.5}, 3, 0.125, 0.75};
  EpochList list;
  list.epochs.push_back(
      {.number = 4,
       .tenant = "t",
       .device = {"toy", "avx2", 2},
       .factors = {.launch = 2,
                   .local = 0.5,
                   .product = {{"f32", 3}},
                   .classes = {{{"memory", "copy"}, 1.25}}},
       .kernels = 9,
       .timings = 11,
       .before = score,
       .after = score,
       .events = {{1, EpochState::kShadow, "why"}, {2, EpochState::kRolledBack, "so"}},
       .plans = {{Sha256("p"), "m", 20, 10, "changed"}}});
  list.decisions.push_back({5, 4, "t", Sha256("p"), "m", "made again"});
  return list;
}

TEST(EpochsWire, EveryFieldArrives) {
  v1::ListEpochsResponse wire;
  EncodeEpochs(SampleEpochs(), &wire);
  EXPECT_THAT(UnsetFields(wire), testing::IsEmpty());
  absl::StatusOr<EpochList> out = DecodeEpochs(wire);
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ(*out, SampleEpochs());
  const PlanChange change{.plan_key = Sha256("p"),
                          .tenant = "t",
                          .device = {"toy", "avx2", 2},
                          .voter = "t\nm\n1",
                          .old_kernels = Sha256("k"),
                          .old_calibration = {2, {.memory = 3}},
                          .epoch = 4,
                          .unfused = {5, 6},
                          .unix_ms = 12,
                          .undo = true,
                          .old_us = 10,
                          .old_low_us = 9,
                          .old_high_us = HUGE_VAL};
  const PlanChange undone{.plan_key = Sha256("q"), .old_kernels = Sha256("k")};
  const LearnedState state{SampleEpochs(), {{Sha256("p"), 3}, {Sha256("q"), 0}}, {change, undone}};
  EXPECT_EQ(LearnedFromBytes(LearnedToBytes(state)).value(), state);
}

TEST(EpochsWire, EveryStateHasANameAndAWireValue) {
  for (int state = v1::EpochState_MIN + 1; state <= v1::EpochState_MAX; ++state) {
    v1::ListEpochsResponse wire;
    EncodeEpochs(SampleEpochs(), &wire);
    wire.mutable_epochs(0)->mutable_events(1)->set_state(static_cast<v1::EpochState>(state));
    const EpochList list = DecodeEpochs(wire).value();
    EXPECT_NE(EpochStateName(list.epochs[0].state()), "unknown") << state;
    v1::ListEpochsResponse again;
    EncodeEpochs(list, &again);
    EXPECT_EQ(again.epochs(0).events(1).state(), state);
  }
}

TEST(EpochsWire, BadFieldsAreRefusedByName) {
  struct Case {
    std::function<void(v1::Epoch*)> spoil;
    const char* message;
  };
  const Case cases[] = {
      {[](auto* w) { w->set_number(0); }, "epochs[0]: number: 0; expected at least 1"},
      {[](auto* w) { w->set_kernels(-1); }, "epochs[0]: kernels: -1"},
      {[](auto* w) { w->mutable_factors()->set_task(0); }, "epochs[0]: factors: task: 0"},
      {[](auto* w) { w->mutable_after()->set_rank(2); }, "epochs[0]: after: rank: 2"},
      {[](auto* w) { w->mutable_before()->set_regret(std::nan("")); },
       "epochs[0]: before: regret: nan"},
      {[](auto* w) { w->clear_events(); }, "epochs[0]: events: none"},
      {[](auto* w) { w->mutable_events(0)->clear_state(); }, "events[0]: state: 0; expected 1..6"},
      {[](auto* w) { w->mutable_plans(0)->set_plan_key("short"); }, "plans[0]: plan_key"},
  };
  for (const Case& c : cases) {
    v1::ListEpochsResponse wire;
    EncodeEpochs(SampleEpochs(), &wire);
    c.spoil(wire.mutable_epochs(0));
    const absl::Status status = DecodeEpochs(wire).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << c.message;
    EXPECT_THAT(Message(status), HasSubstr(c.message));
  }
}

TEST(EpochsWire, FactorsOfAnEarlierVersionHaveNoneOfPrivateCaches) {
  v1::ListEpochsResponse wire;
  EncodeEpochs(SampleEpochs(), &wire);
  wire.mutable_epochs(0)->mutable_factors()->clear_local();
  wire.mutable_epochs(0)->mutable_factors()->set_shared(0.25);
  absl::StatusOr<EpochList> out = DecodeEpochs(wire);
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ(out->epochs[0].factors.local, 0.25) << "they counted as bytes of the shared level";
}

TEST(EpochsWire, OtherBytesAreDamage) {
  const std::string bytes = LearnedToBytes({SampleEpochs(), {{Sha256("p"), 3}}});
  for (size_t at = 0; at < bytes.size(); at += 7) {
    std::string other = bytes;
    other[at] = static_cast<char>(other[at] ^ 0x20);
    EXPECT_TRUE(absl::IsDataLoss(LearnedFromBytes(other).status())) << at;
    EXPECT_TRUE(absl::IsDataLoss(LearnedFromBytes(bytes.substr(0, at)).status())) << at;
  }
}

}  // namespace
}  // namespace fusion
