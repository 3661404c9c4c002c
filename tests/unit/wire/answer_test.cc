#include "core/wire/answer.h"

#include <gtest/gtest.h>

#include <limits>

#include "fusion/v1/fusion_service.pb.h"

namespace fusion {
namespace {

TEST(AnswerTest, OutcomesAndDumpKindsComeBack) {
  for (CacheOutcome outcome : {CacheOutcome::kMiss, CacheOutcome::kHitMemory,
                               CacheOutcome::kHitStore, CacheOutcome::kSharedFlight}) {
    EXPECT_EQ(FromWire(ToWire(outcome)), outcome);
  }
  for (DumpKind kind : {DumpKind::kGraph, DumpKind::kProgram, DumpKind::kSmg, DumpKind::kSchedule,
                        DumpKind::kSource}) {
    EXPECT_EQ(FromWire(ToWire(kind)).value(), kind);
  }
  EXPECT_EQ(FromWire(v1::DUMP_KIND_UNSPECIFIED).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(FromWire(static_cast<v1::DumpKind>(77)).status().code(),
            absl::StatusCode::kUnimplemented);
  EXPECT_EQ(FromWire(static_cast<v1::CacheOutcome>(77)), CacheOutcome::kMiss);
}

TEST(AnswerTest, AKernelStatusComesBack) {
  KernelStatus status{.key = Sha256("key"),
                      .state = KernelState::kReady,
                      .content = Sha256("binary"),
                      .bytes = 17,
                      .check = {.verified = false, .reason = "needs avx512"},
                      .cached = true,
                      .compile_ms = 2.5};
  v1::KernelStatus wire;
  EncodeKernelStatus(status, &wire);
  KernelStatus back = DecodeKernelStatus(wire).value();
  EXPECT_EQ(back.key, status.key);
  EXPECT_EQ(back.state, status.state);
  EXPECT_EQ(back.content, status.content);
  EXPECT_EQ(back.bytes, 17);
  EXPECT_EQ(back.check.reason, "needs avx512");
  EXPECT_TRUE(back.cached);
  EXPECT_EQ(back.compile_ms, 2.5);

  wire.set_bytes(-1);
  EXPECT_EQ(DecodeKernelStatus(wire).status().code(), absl::StatusCode::kInvalidArgument);
  wire.set_bytes(1);
  wire.set_content_sha256("short");
  EXPECT_EQ(DecodeKernelStatus(wire).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(AnswerTest, APendingKernelHasNothingButItsKey) {
  v1::KernelStatus wire;
  EncodeKernelStatus({.key = Sha256("key"), .bytes = 17, .cached = true}, &wire);
  EXPECT_EQ(wire.bytes(), 0);
  EXPECT_FALSE(wire.cached());
  EXPECT_EQ(DecodeKernelStatus(wire).value().key, Sha256("key"));
}

TEST(AnswerTest, NamesThatAreNotUtf8AreChangedNotRefused) {
  v1::Binding wire;
  EncodeBinding({.inputs = {"x", "\xff\"*/"}, .weights = {"w"}}, &wire);
  Binding back = DecodeBinding(wire);
  EXPECT_EQ(back.inputs, (std::vector<std::string>{"x", "?\"*/"}));
  EXPECT_EQ(back.weights, (std::vector<std::string>{"w"}));
  EXPECT_TRUE(back.outputs.empty());
}

TEST(AnswerTest, StageTimesComeBackAndNonsenseBecomesZero) {
  v1::StageTime wire;
  EncodeStageTime({"plan", std::chrono::microseconds(1500)}, &wire);
  EXPECT_EQ(DecodeStageTime(wire).stage, "plan");
  EXPECT_EQ(DecodeStageTime(wire).took, std::chrono::microseconds(1500));
  for (double bad : {-1.0, 1e300, std::numeric_limits<double>::quiet_NaN()}) {
    wire.set_milliseconds(bad);
    EXPECT_EQ(DecodeStageTime(wire).took, Nanoseconds(0));
  }
}

}  // namespace
}  // namespace fusion
