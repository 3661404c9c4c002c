#include "core/wire/report_origin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "core/wire/report.h"
#include "fusion/v1/fusion_service.pb.h"

namespace fusion {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kHuge = std::numeric_limits<double>::max();

TEST(ReportOriginWire, AnOriginArrives) {
  const ReportOrigin origin{
      .id = std::string("\0\xff id", 5), .clock_ghz = 3.25, .background_load = 0.125};
  v1::ReportLatencyRequest wire;
  EncodeReportOrigin(origin, &wire);
  v1::ReportLatencyRequest read;
  ASSERT_TRUE(read.ParseFromString(wire.SerializeAsString()));
  EXPECT_EQ(DecodeReportOrigin(read).value(), origin);
  EXPECT_EQ(DecodeReportOrigin(v1::ReportLatencyRequest()).value(), ReportOrigin())
      << "an old client says nothing of it";
}

TEST(ReportOriginWire, EachFieldHasItsBounds) {
  struct Case {
    std::function<void(v1::ReportLatencyRequest*)> set;
    const char* says;  // empty: it is accepted
  };
  auto clock = [](double ghz) {
    return [ghz](v1::ReportLatencyRequest* r) { r->set_clock_ghz(ghz); };
  };
  auto load = [](double share) {
    return [share](v1::ReportLatencyRequest* r) { r->set_background_load(share); };
  };
  auto id = [](size_t bytes) {
    return [bytes](v1::ReportLatencyRequest* r) { r->set_report_id(std::string(bytes, 'x')); };
  };
  const std::vector<Case> cases = {{clock(20), ""},
                                   {clock(20.001), "clock_ghz: 20.001; expected 0..20 GHz"},
                                   {clock(-1e-300), "clock_ghz: -1e-300; expected 0..20"},
                                   {clock(kNan), "clock_ghz: nan; expected"},
                                   {clock(kInfinity), "clock_ghz: inf; expected"},
                                   {clock(-kInfinity), "clock_ghz: -inf; expected"},
                                   {clock(kHuge), "clock_ghz: "},
                                   {load(0), ""},
                                   {load(1), ""},
                                   {load(1.5), "background_load: 1.5; expected 0..1"},
                                   {load(-0.5), "background_load: -0.5; expected 0..1"},
                                   {load(kNan), "background_load: nan; expected 0..1"},
                                   {load(kInfinity), "background_load: inf; expected 0..1"},
                                   {load(kHuge), "background_load: "},
                                   {id(32), ""},
                                   {id(33), "report_id: 33 bytes; expected at most 32"},
                                   {id(1 << 20), "report_id: 1048576 bytes; expected"}};
  for (const Case& c : cases) {
    v1::ReportLatencyRequest wire;
    c.set(&wire);
    const absl::Status status = DecodeReportOrigin(wire).status();
    EXPECT_EQ(status.ok(), std::string_view(c.says).empty()) << status;
    if (status.ok()) continue;
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(Message(status)), HasSubstr(c.says));
  }
}

v1::TimesSummary Sound() {
  v1::TimesSummary out;
  EncodeTimesSummary(
      {.n = 1000, .mean_us = 12, .min_us = 8, .p10_us = 9, .p50_us = 10, .p90_us = 14}, &out);
  return out;
}

TEST(TimesSummaryWire, EachFieldIsChecked) {
  EXPECT_TRUE(DecodeTimesSummary(Sound(), "summary").ok());
  struct Case {
    std::function<void(v1::TimesSummary*)> spoil;
    const char* says;
  };
  using Field = void (v1::TimesSummary::*)(double);
  std::vector<Case> cases = {
      {[](v1::TimesSummary* s) { s->set_n(0); }, "summary.n: 0; expected 1.."},
      {[](v1::TimesSummary* s) { s->set_n(-5); }, "summary.n: -5; expected 1.."},
      {[](v1::TimesSummary* s) { s->set_n(INT64_MAX); }, "summary.n: 9223372036854775807"},
      {[](v1::TimesSummary* s) { s->set_min_us(9.5); },
       "summary.p10_us: 9; expected at least min_us, which is 9.5"},
      {[](v1::TimesSummary* s) { s->set_p10_us(11); },
       "summary.p50_us: 10; expected at least p10_us, which is 11"},
      {[](v1::TimesSummary* s) { s->set_p50_us(15); },
       "summary.p90_us: 14; expected at least p50_us, which is 15"},
      {[](v1::TimesSummary* s) { s->set_mean_us(7); },
       "summary.mean_us: 7; expected at least min_us, which is 8"},
  };
  for (const auto& [name, set] :
       {std::pair<const char*, Field>{"mean_us", &v1::TimesSummary::set_mean_us},
        {"min_us", &v1::TimesSummary::set_min_us},
        {"p10_us", &v1::TimesSummary::set_p10_us},
        {"p50_us", &v1::TimesSummary::set_p50_us},
        {"p90_us", &v1::TimesSummary::set_p90_us}}) {
    for (double bad : {0.0, -1.0, kNan, kInfinity, -kInfinity, kHuge}) {
      v1::TimesSummary wire = Sound();
      (wire.*set)(bad);
      const absl::Status status = DecodeTimesSummary(wire, "summary").status();
      EXPECT_TRUE(absl::IsInvalidArgument(status)) << name << " " << bad << ": " << status;
      EXPECT_THAT(std::string(Message(status)),
                  HasSubstr(StrCat("summary.", name, ": ", bad, "; expected microseconds")));
    }
  }
  for (const Case& c : cases) {
    v1::TimesSummary wire = Sound();
    c.spoil(&wire);
    const absl::Status status = DecodeTimesSummary(wire, "summary").status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(Message(status)), HasSubstr(c.says));
  }
}

v1::ReportLatencyRequest OfSummaries() {
  v1::ReportLatencyRequest wire;
  wire.set_plan_key(std::string(32, 'k'));
  wire.set_threads(1);
  *wire.add_launches()->mutable_summary() = Sound();
  *wire.mutable_run_summary() = Sound();
  return wire;
}

TEST(TimesSummaryWire, StandsInPlaceOfSamples) {
  absl::StatusOr<LatencyReport> report = DecodeLatencyReport(OfSummaries());
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(report->launches.at(0).samples_us, SizeIs(16));
  EXPECT_EQ(report->launches.at(0).calls, 1000);
  EXPECT_THAT(report->run_samples_us, SizeIs(16));
  EXPECT_EQ(report->runs, 1000);

  v1::ReportLatencyRequest more = OfSummaries();
  more.mutable_launches(0)->set_calls(5000);
  EXPECT_EQ(DecodeLatencyReport(more)->launches[0].calls, 5000);
  more.mutable_launches(0)->set_calls(999);
  EXPECT_THAT(std::string(Message(DecodeLatencyReport(more).status())),
              HasSubstr("launches[0].calls: 999; expected 0, or 1000 (the samples)"));
  v1::ReportLatencyRequest both = OfSummaries();
  both.mutable_launches(0)->add_samples_us(3);
  EXPECT_THAT(std::string(Message(DecodeLatencyReport(both).status())),
              HasSubstr("launches[0].summary: given beside launches[0].samples_us"));
  both = OfSummaries();
  both.add_run_samples_us(3);
  EXPECT_THAT(std::string(Message(DecodeLatencyReport(both).status())),
              HasSubstr("run_summary: given beside run_samples_us"));
  both = OfSummaries();
  both.mutable_run_summary()->set_p50_us(kNan);
  EXPECT_THAT(std::string(Message(DecodeLatencyReport(both).status())),
              HasSubstr("run_summary.p50_us: nan"));
}

double MeanOf(const std::vector<double>& us) {
  double sum = 0;
  for (double sample : us) sum += sample;
  return sum / static_cast<double>(us.size());
}

TEST(SamplesOfSummary, HaveItsQuantilesAndItsMean) {
  const TimesSummary summary{
      .n = 1'000'000, .mean_us = 12, .min_us = 8, .p10_us = 9, .p50_us = 10, .p90_us = 14};
  std::vector<double> samples = SamplesOf(summary, kMaxLatencyUs);
  ASSERT_THAT(samples, SizeIs(16));
  EXPECT_NEAR(MeanOf(samples), 12, 1e-9);
  EXPECT_NEAR((samples[15] + samples[14]) / 2, 10, 0.3) << "the median comes last";
  std::sort(samples.begin(), samples.end());
  EXPECT_NEAR(samples.front(), 8 + 1 / 3.2, 1e-9);
  EXPECT_NEAR((samples[7] + samples[8]) / 2, 10, 0.2);
  EXPECT_EQ(samples[14], samples[15]) << "two are above the 0.9 quantile";
  EXPECT_GT(samples[15], 14);
}

TEST(SamplesOfSummary, TheLongestAreNoShorterThanTheNinetiethPercentile) {
  TimesSummary summary{
      .n = 100, .mean_us = 8, .min_us = 8, .p10_us = 9, .p50_us = 10, .p90_us = 14};
  std::vector<double> samples = SamplesOf(summary, kMaxLatencyUs);
  EXPECT_EQ(*std::max_element(samples.begin(), samples.end()), 14);
  summary.mean_us = 1e9;
  samples = SamplesOf(summary, kMaxLatencyUs);
  EXPECT_EQ(*std::max_element(samples.begin(), samples.end()), kMaxLatencyUs);
}

TEST(SamplesOfSummary, FewLaunchesGiveFewSamples) {
  const TimesSummary one{.n = 1, .mean_us = 5, .min_us = 5, .p10_us = 5, .p50_us = 5, .p90_us = 5};
  EXPECT_THAT(SamplesOf(one, kMaxLatencyUs), ElementsAre(5));
  TimesSummary three = one;
  three.n = 3;
  EXPECT_THAT(SamplesOf(three, kMaxLatencyUs), ElementsAre(5, 5, 5));
}

}  // namespace
}  // namespace fusion
