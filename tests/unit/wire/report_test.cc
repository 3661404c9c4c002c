#include "core/wire/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/wire/basics/scalars.h"
#include "core/wire/measurements.h"
#include "fusion/v1/fusion_service.pb.h"
#include "fusion/v1/measurements.pb.h"

namespace fusion {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

LatencyReport SampleReport() {
  return {.plan_key = Sha256("plan"),
          .kernels = Sha256("kernels"),
          .launches = {{.launch = 3, .samples_us = {1.5, 2.5}, .calls = 7}},
          .run_samples_us = {4.5},
          .runs = 9,
          .threads = 2,
          .device = "a machine"};
}

TEST(ReportWire, ALatencyReportArrives) {
  v1::ReportLatencyRequest wire;
  EncodeLatencyReport(SampleReport(), &wire);
  absl::StatusOr<LatencyReport> out = DecodeLatencyReport(wire);
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ(out->plan_key, Sha256("plan"));
  EXPECT_EQ(out->kernels, Sha256("kernels"));
  ASSERT_THAT(out->launches, SizeIs(1));
  EXPECT_EQ(out->launches[0].launch, 3);
  EXPECT_THAT(out->launches[0].samples_us, ElementsAre(1.5, 2.5));
  EXPECT_EQ(out->launches[0].calls, 7);
  EXPECT_THAT(out->run_samples_us, ElementsAre(4.5));
  EXPECT_EQ(out->runs, 9);
  EXPECT_EQ(out->threads, 2);
  EXPECT_EQ(out->device, "a machine");
}

TEST(ReportWire, ALongDeviceNameIsCutBetweenCharacters) {
  LatencyReport report = SampleReport();
  report.device = StrCat(std::string(127, 'x'), "\xc3\xa4");
  v1::ReportLatencyRequest wire;
  EncodeLatencyReport(report, &wire);
  EXPECT_EQ(wire.device(), std::string(127, 'x'));
  wire.set_device(report.device);
  EXPECT_EQ(DecodeLatencyReport(wire)->device, std::string(127, 'x'));
}

TEST(ReportWire, QueriesHaveDefaultsAndBounds) {
  v1::GetReportRequest wire;
  EXPECT_EQ(DecodeReportQuery(wire)->limit, kDefaultListedPlans);
  EXPECT_FALSE(DecodeReportQuery(wire)->plan.has_value());
  EncodeReportQuery({.plan = Sha256("plan"), .limit = 7}, &wire);
  EXPECT_EQ(DecodeReportQuery(wire)->limit, 7);
  EXPECT_EQ(DecodeReportQuery(wire)->plan, Sha256("plan"));
  for (int limit : {-1, kMaxListedPlans + 1}) {
    wire.set_limit(limit);
    absl::Status status = DecodeReportQuery(wire).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(Message(status)), HasSubstr(StrCat("limit: ", limit)));
  }
}

PlanReport SamplePlanReport() {
  LatencySummary times{
      .calls = 9, .samples = 3, .median_us = 2, .p10_us = 1, .p90_us = 3, .min_us = 0.5};
  PlanTotals totals{
      .kernels = 1, .launches = 2, .activation_bytes = 3, .weight_bytes = 4, .estimated_us = 5};
  return {.plan_key = Sha256("plan"),
          .model_name = "bert",
          .target = "toy",
          .threads = 2,
          .devices = {"a", "b"},
          .last_report_unix_ms = 11,
          .runs = times,
          .totals = totals,
          .op_by_op = totals,
          .kernels = {{.kernel_key = Sha256("kernel"),
                       .label = "Add",
                       .launches = 2,
                       .nodes = 1,
                       .measured = times,
                       .estimated_us = 1.5,
                       .op_by_op_us = 2.5,
                       .op_by_op_measured_us = 2.25,
                       .sections = kQkvSection | kAttentionSection,
                       .activation_bytes = 6,
                       .op_by_op_activation_bytes = 7}},
          .fusion = FusionMode::kOpByOp,
          .peak_bytes = 100,
          .op_by_op_peak_bytes = 300,
          .op_by_op_plan = Sha256("apart"),
          .op_by_op_runs = times,
          .sections = {{.sections = kFeedForwardSection,
                        .launches = 2,
                        .measured_us = 3.5,
                        .estimated_us = 4.5,
                        .activation_bytes = 8,
                        .op_by_op_kernels = 9,
                        .op_by_op_measured_us = 5.5,
                        .op_by_op_us = 6.5,
                        .op_by_op_activation_bytes = 10}}};
}

TEST(ReportWire, APlanReportArrives) {
  v1::PlanReport wire, again;
  EncodePlanReport(SamplePlanReport(), &wire);
  absl::StatusOr<PlanReport> out = DecodePlanReport(wire);
  ASSERT_TRUE(out.ok()) << out.status();
  EncodePlanReport(*out, &again);
  EXPECT_EQ(again.SerializeAsString(), wire.SerializeAsString());
  EXPECT_EQ(out->model_name, "bert");
  EXPECT_EQ(out->kernels[0].measured.p90_us, 3);
  EXPECT_EQ(out->kernels[0].op_by_op_activation_bytes, 7);
  EXPECT_THAT(out->devices, ElementsAre("a", "b"));
  EXPECT_EQ(out->kernels[0].sections, kQkvSection | kAttentionSection);
  EXPECT_EQ(out->kernels[0].op_by_op_measured_us, 2.25);
  EXPECT_EQ(out->fusion, FusionMode::kOpByOp);
  EXPECT_EQ(out->op_by_op_peak_bytes, 300);
  EXPECT_EQ(out->op_by_op_plan, Sha256("apart"));
  EXPECT_EQ(out->sections[0].op_by_op_kernels, 9);
  EXPECT_EQ(out->sections[0].op_by_op_activation_bytes, 10);
  wire.mutable_sections(0)->set_sections(0x18);
  EXPECT_EQ(DecodePlanReport(wire)->sections[0].sections, kFeedForwardSection)
      << "without those of a later server";
  wire.mutable_sections(0)->set_measured_us(-1);
  EXPECT_THAT(std::string(Message(DecodePlanReport(wire).status())),
              HasSubstr("sections[0]: measured_us: -1"));
  wire.mutable_kernels(0)->mutable_measured()->set_median_us(-1);
  EXPECT_THAT(std::string(Message(DecodePlanReport(wire).status())),
              HasSubstr("kernels[0]: median_us: -1"));
}

TEST(ReportWire, APlanReportOfAnEarlierServerArrives) {
  v1::PlanReport wire;
  EncodePlanReport(SamplePlanReport(), &wire);
  wire.clear_fusion();
  wire.clear_peak_bytes();
  wire.clear_op_by_op_peak_bytes();
  wire.clear_op_by_op_plan();
  wire.clear_op_by_op_runs();
  wire.clear_sections();
  const absl::StatusOr<PlanReport> out = DecodePlanReport(wire);
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ(out->fusion, FusionMode::kFused);
  EXPECT_EQ(out->op_by_op_plan, Digest());
  EXPECT_TRUE(out->sections.empty());
}

TEST(ReportWire, APlanSummaryArrives) {
  PlanSummary summary{.plan_key = Sha256("plan"),
                      .model_name = "bert",
                      .created_unix_ms = 5,
                      .target = "toy",
                      .threads = 3,
                      .fusion = FusionMode::kOpByOp,
                      .numerics = Numerics::kBitwise,
                      .nodes = 4,
                      .totals = {.kernels = 1},
                      .op_by_op = {.kernels = 2},
                      .fallbacks = 6,
                      .bytes = 7,
                      .distinct_kernels = 8,
                      .compiled_kernels = 9,
                      .pinned = true,
                      .tenant = "shop"};
  v1::PlanSummary wire, again;
  EncodePlanSummary(summary, &wire);
  absl::StatusOr<PlanSummary> out = DecodePlanSummary(wire);
  ASSERT_TRUE(out.ok()) << out.status();
  EncodePlanSummary(*out, &again);
  EXPECT_EQ(again.SerializeAsString(), wire.SerializeAsString());
  EXPECT_EQ(out->compiled_kernels, 9);
  EXPECT_TRUE(out->pinned);
  EXPECT_EQ(out->tenant, "shop");
  EXPECT_EQ(out->model_name, "bert");
  EXPECT_EQ(out->numerics, Numerics::kBitwise);
  wire.set_bytes(-7);
  EXPECT_TRUE(absl::IsInvalidArgument(DecodePlanSummary(wire).status()));
}

TEST(ReportWire, ProgressAndCapabilitiesArrive) {
  v1::PlanProgress progress;
  EncodePlanProgress(
      {.stage = "compile", .elapsed = std::chrono::milliseconds(12), .done = 3, .total = 5},
      &progress);
  PlanProgress out = DecodePlanProgress(progress);
  EXPECT_EQ(out.stage, "compile");
  EXPECT_EQ(out.elapsed, std::chrono::milliseconds(12));
  EXPECT_EQ(out.done, 3);
  EXPECT_EQ(out.total, 5);
  progress.set_done(6);
  progress.set_elapsed_ms(-1);
  EXPECT_EQ(DecodePlanProgress(progress).done, 0) << "more than all is nonsense";
  EXPECT_EQ(DecodePlanProgress(progress).elapsed.count(), 0);

  Capabilities capabilities{.version = "1",
                            .plan_version = 2,
                            .kernel_abi_version = 3,
                            .compiler = "g++",
                            .workers = 4,
                            .durable_store = true,
                            .devices = {{"d", "for people", "cpu", "avx2"}},
                            .ops = {{"Add", 1, 23}},
                            .limits = {{"bytes", 5, "bytes", "--bytes"}},
                            .sandbox = "rlimits",
                            .registered = {{.name = "leaky",
                                            .pattern = "Conv > LeakyRelu",
                                            .source = Sha256("int x;"),
                                            .force = true,
                                            .state = RegisteredState::kQuarantined,
                                            .reason = "it is wrong"}},
                            .authentication = "token mtls",
                            .tenant = "shop",
                            .roles = {"plan", "admin"},
                            .signing_keys = {"new", "old"}};
  v1::GetCapabilitiesResponse wire, again;
  EncodeCapabilities(capabilities, &wire);
  EncodeCapabilities(DecodeCapabilities(wire), &again);
  EXPECT_EQ(again.SerializeAsString(), wire.SerializeAsString());
  EXPECT_EQ(DecodeCapabilities(wire).limits[0].option, "--bytes");
  EXPECT_EQ(DecodeCapabilities(wire).devices[0].backend, "cpu");
  EXPECT_EQ(DecodeCapabilities(wire).authentication, "token mtls");
  EXPECT_EQ(DecodeCapabilities(wire).tenant, "shop");
  EXPECT_EQ(DecodeCapabilities(wire).roles[1], "admin");
  EXPECT_EQ(DecodeCapabilities(wire).signing_keys[0], "new");
  ASSERT_EQ(DecodeCapabilities(wire).registered.size(), 1);
  EXPECT_EQ(DecodeCapabilities(wire).registered[0].state, RegisteredState::kQuarantined);
  EXPECT_EQ(DecodeCapabilities(wire).registered[0].source, Sha256("int x;"));
}

PlanMeasurements SampleMeasurements() {
  return {
      .kernels = Sha256("kernels"),
      .launches = {{0, {.calls = 5, .samples_us = {1, 2}}}, {4, {.calls = 1, .samples_us = {3}}}},
      .runs = {.calls = 9, .samples_us = {4}},
      .devices = {"b", "a"},
      .last_report_unix_ms = 77};
}

TEST(MeasurementsWire, WhatIsStoredComesBack) {
  Digest plan = Sha256("plan");
  std::string bytes = EncodeMeasurements(plan, SampleMeasurements());
  absl::StatusOr<PlanMeasurements> out = DecodeMeasurements(plan, bytes);
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ(*out, SampleMeasurements());
  EXPECT_TRUE(absl::IsDataLoss(DecodeMeasurements(Sha256("other"), bytes).status()));
}

TEST(MeasurementsWire, RefusesWhatNobodyWrote) {
  Digest plan = Sha256("plan");
  auto spoiled = [&](const std::function<void(v1::StoredMeasurements*)>& spoil) {
    v1::StoredMeasurements wire;
    EXPECT_TRUE(wire.ParseFromString(EncodeMeasurements(plan, SampleMeasurements())));
    spoil(&wire);
    return std::string(Message(DecodeMeasurements(plan, wire.SerializeAsString()).status()));
  };
  EXPECT_EQ(spoiled([](auto*) {}), "");
  EXPECT_THAT(spoiled([](auto* w) { w->mutable_launches(1)->set_samples_us(0, -1); }),
              HasSubstr("launch 4: samples_us: -1"));
  EXPECT_THAT(spoiled([](auto* w) { w->mutable_launches(1)->set_launch(0); }), HasSubstr("twice"));
  EXPECT_THAT(spoiled([](auto* w) { w->mutable_runs()->set_calls(0); }), HasSubstr("runs: calls"));
  EXPECT_THAT(spoiled([](auto* w) { w->mutable_runs()->mutable_samples_us()->Resize(257, 1); }),
              HasSubstr("257 entries"));
  EXPECT_THAT(spoiled([](auto* w) {
                for (int i = 0; i < 20; ++i) w->add_devices("x");
              }),
              HasSubstr("devices"));
  EXPECT_THAT(spoiled([](auto* w) { w->set_kernels_sha256("x"); }), HasSubstr("kernels_sha256"));
  EXPECT_TRUE(absl::IsInvalidArgument(DecodeMeasurements(plan, "\xff\xff").status()));
}

}  // namespace
}  // namespace fusion
