#pragma once

#include <string_view>

#include "core/base/status.h"
#include "core/bundle/measured/report_origin.h"

namespace fusion::v1 {
class ReportLatencyRequest;
class TimesSummary;
}  // namespace fusion::v1

namespace fusion {

void EncodeReportOrigin(const ReportOrigin& origin, v1::ReportLatencyRequest* out);
/// How an untrusted report came to be. InvalidArgument, naming field, value and what was expected.
absl::StatusOr<ReportOrigin> DecodeReportOrigin(const v1::ReportLatencyRequest& wire);

/// InvalidArgument if it is no ReportOrigin::clock_ghz.
absl::Status CheckClock(double clock_ghz);

void EncodeTimesSummary(const TimesSummary& summary, v1::TimesSummary* out);
/// An untrusted summary, for SamplesOf. InvalidArgument, naming `field`, value and what was
/// expected.
absl::StatusOr<TimesSummary> DecodeTimesSummary(const v1::TimesSummary& wire,
                                                std::string_view field);

}  // namespace fusion
