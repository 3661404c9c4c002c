#include "core/wire/accuracy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/wire/kernel_timings.h"
#include "fusion/v1/fusion_service.pb.h"
#include "fusion/v1/measurements.pb.h"
#include "tests/support/message_checks.h"

namespace fusion {
namespace {

using testing::HasSubstr;

DeviceAccuracy SampleAccuracy() {
  return {
      .device = {"toy", "avx2", 2},
      .timings = 7,
      .kernels = 6,
      .models = 5,
      .complete = false,
      .spec = {.timings = 4, .median = 0.25, .p90 = 0.5},
      .held_back = {.timings = 3, .median = 0.125, .p90 = 0.375},
      .spec_plans = {.timings = 4, .median = 0.0625, .p90 = 0.5},
      .held_back_plans = {.timings = 2, .median = 0.75, .p90 = 1.5},
      .constants = {{"memory", 1.5}},
      .classes = {{.bound = "memory", .form = "copy", .factor = 0.75, .kernels = 2, .voters = 1}},
      .machines = {{.machine = "m", .tenant = "t", .factor = 1.25, .clock_ghz = 3.25}}};
}

TEST(AccuracyWire, EveryFieldArrives) {
  v1::DeviceAccuracy wire;
  EncodeAccuracy(SampleAccuracy(), &wire);
  EXPECT_THAT(UnsetFields(wire), testing::IsEmpty());
  absl::StatusOr<DeviceAccuracy> out = DecodeAccuracy(wire);
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ(*out, SampleAccuracy());
}

TEST(AccuracyWire, BadNumbersAreRefusedByName) {
  struct Case {
    std::function<void(v1::DeviceAccuracy*)> spoil;
    const char* message;
  };
  const Case cases[] = {
      {[](auto* w) { w->set_timings(-1); }, "timings: -1"},
      {[](auto* w) { w->mutable_spec()->set_median(std::nan("")); }, "spec: median: nan"},
      {[](auto* w) { w->mutable_held_back()->set_timings(-3); }, "held_back: timings: -3"},
      {[](auto* w) { w->mutable_constants(0)->set_factor(-1); }, "constants[0]: factor: -1"},
      {[](auto* w) { w->mutable_classes(0)->set_voters(-1); }, "classes[0]: voters: -1"},
      {[](auto* w) { w->mutable_machines(0)->set_factor(HUGE_VAL); }, "machines[0]: factor: inf"},
      {[](auto* w) { w->mutable_machines(0)->set_clock_ghz(-1); }, "machines[0]: clock_ghz: -1"},
      {[](auto* w) { w->mutable_spec_plans()->set_timings(-3); }, "spec_plans: timings: -3"},
  };
  for (const Case& c : cases) {
    v1::DeviceAccuracy wire;
    EncodeAccuracy(SampleAccuracy(), &wire);
    c.spoil(&wire);
    absl::Status status = DecodeAccuracy(wire).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << c.message;
    EXPECT_THAT(Message(status), HasSubstr(c.message));
  }
}

KernelTimings SampleTimings() {
  return {.device = {"toy", "avx2", 2},
          .kernel = Sha256("kernel"),
          .machine = "m",
          .tenant = "t",
          .trusted = true,
          .choice = Sha256("choice"),
          .model_name = "model",
          .bound = "memory",
          .form = "copy",
          .terms = {.product_type = "f32",
                    .product_us = 1,
                    .element_us = 2,
                    .idle_us = 3,
                    .spill_us = 4,
                    .serial_us = 4.5,
                    .local_us = 4.75,
                    .shared_us = 5,
                    .memory_us = 6,
                    .launch_us = 7,
                    .barrier_us = 8,
                    .task_us = 9,
                    .exposed = 0.5},
          .times = {.calls = 3, .samples_us = {1.5, 2.5}},
          .last_report_unix_ms = 11,
          .clock_ghz = 3.5};
}

TEST(TimingsWire, EveryFieldArrives) {
  absl::StatusOr<KernelTimings> out =
      DecodeTimings(KeyOf(SampleTimings()), EncodeTimings(SampleTimings()));
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ(*out, SampleTimings());
}

TEST(TimingsWire, WhatIsStoredUnderAnotherKeyIsRefused) {
  absl::Status status = DecodeTimings(Sha256("other"), EncodeTimings(SampleTimings())).status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
}

TEST(TimingsWire, BadNumbersAreRefusedByName) {
  struct Case {
    std::function<void(v1::StoredTimings*)> spoil;
    const char* message;
  };
  const Case cases[] = {
      {[](auto* w) { w->set_kernel_key("short"); }, "kernel_key"},
      {[](auto* w) { w->set_clock_ghz(-1); }, "timings: clock_ghz: -1"},
      {[](auto* w) { w->set_clock_ghz(std::nan("")); }, "timings: clock_ghz: nan"},
      {[](auto* w) { w->mutable_terms()->set_memory_us(-1); }, "terms: memory_us: -1"},
      {[](auto* w) { w->mutable_terms()->set_idle_us(std::nan("")); }, "terms: idle_us: nan"},
      {[](auto* w) { w->mutable_terms()->set_exposed(2); }, "terms: exposed: 2"},
      {[](auto* w) { w->mutable_terms()->set_element_us(1e300); }, "terms: element_us: 1e+300"},
      {[](auto* w) { w->mutable_times()->add_samples_us(-1); }, "times: samples_us: -1"},
      {[](auto* w) { w->mutable_times()->set_calls(1); }, "times: calls: 1"},
      {[](auto* w) { w->mutable_times()->mutable_samples_us()->Resize(65, 1); }, "at most 64"},
  };
  for (const Case& c : cases) {
    v1::StoredTimings wire;
    ASSERT_TRUE(wire.ParseFromString(EncodeTimings(SampleTimings())));
    c.spoil(&wire);
    absl::Status status = DecodeTimings(KeyOf(SampleTimings()), wire.SerializeAsString()).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << c.message << ": " << status;
    EXPECT_THAT(Message(status), HasSubstr(c.message));
  }
}

}  // namespace
}  // namespace fusion
