#include "core/wire/report_origin.h"

#include <array>

#include "core/bundle/report.h"
#include "core/wire/basics/scalars.h"
#include "fusion/v1/fusion_service.pb.h"

namespace fusion {

void EncodeReportOrigin(const ReportOrigin& origin, v1::ReportLatencyRequest* out) {
  out->set_report_id(origin.id);
  out->set_clock_ghz(origin.clock_ghz);
  out->set_background_load(origin.background_load);
}

absl::StatusOr<ReportOrigin> DecodeReportOrigin(const v1::ReportLatencyRequest& wire) {
  if (wire.report_id().size() > kMaxReportIdBytes) {
    return InvalidArgument("report_id: ", wire.report_id().size(), " bytes; expected at most ",
                           kMaxReportIdBytes);
  }
  RETURN_IF_ERROR(CheckClock(wire.clock_ghz()));
  // Written so that NaN fails too.
  if (!(wire.background_load() >= 0 && wire.background_load() <= 1)) {
    return InvalidArgument("background_load: ", wire.background_load(), "; expected 0..1");
  }
  return ReportOrigin{.id = wire.report_id(),
                      .clock_ghz = wire.clock_ghz(),
                      .background_load = wire.background_load()};
}

absl::Status CheckClock(double clock_ghz) {
  if (clock_ghz >= 0 && clock_ghz <= kMaxClockGhz) return absl::OkStatus();
  return InvalidArgument("clock_ghz: ", clock_ghz, "; expected 0..", kMaxClockGhz,
                         " GHz, 0 if unknown");
}

void EncodeTimesSummary(const TimesSummary& summary, v1::TimesSummary* out) {
  out->set_n(summary.n);
  out->set_mean_us(summary.mean_us);
  out->set_min_us(summary.min_us);
  out->set_p10_us(summary.p10_us);
  out->set_p50_us(summary.p50_us);
  out->set_p90_us(summary.p90_us);
}

absl::StatusOr<TimesSummary> DecodeTimesSummary(const v1::TimesSummary& wire,
                                                std::string_view field) {
  if (wire.n() < 1 || wire.n() > kMaxReportCalls) {
    return InvalidArgument(field, ".n: ", wire.n(), "; expected 1..", kMaxReportCalls);
  }
  struct Time {
    std::string_view name;
    double us;
    std::string_view least_name;
    double least_us;  // it must not be less
  };
  const std::array<Time, 5> times = {{{"min_us", wire.min_us(), "", 0},
                                      {"p10_us", wire.p10_us(), "min_us", wire.min_us()},
                                      {"p50_us", wire.p50_us(), "p10_us", wire.p10_us()},
                                      {"p90_us", wire.p90_us(), "p50_us", wire.p50_us()},
                                      {"mean_us", wire.mean_us(), "min_us", wire.min_us()}}};
  for (const Time& time : times) {
    // Written so that NaN fails too.
    if (!(time.us > 0 && time.us <= kMaxLatencyUs)) {
      return InvalidArgument(field, ".", time.name, ": ", time.us,
                             "; expected microseconds, more than 0, at most ", kMaxLatencyUs);
    }
    if (time.us < time.least_us) {
      return InvalidArgument(field, ".", time.name, ": ", time.us, "; expected at least ",
                             time.least_name, ", which is ", time.least_us);
    }
  }
  return TimesSummary{.n = wire.n(),
                      .mean_us = wire.mean_us(),
                      .min_us = wire.min_us(),
                      .p10_us = wire.p10_us(),
                      .p50_us = wire.p50_us(),
                      .p90_us = wire.p90_us()};
}

}  // namespace fusion
