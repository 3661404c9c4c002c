#pragma once

#include <optional>

#include "core/bundle/report.h"

namespace fusion::v1 {
class GetCapabilitiesResponse;
class GetReportRequest;
class ListPlansRequest;
class PlanProgress;
class PlanReport;
class PlanSummary;
class ReportLatencyRequest;
}  // namespace fusion::v1

namespace fusion {

// Messages of the calls about existing plans. Each Encode* writes into an empty message; texts that
// are not UTF-8 are changed by TextToWire. Each Decode* takes untrusted input and, unless stated
// otherwise, fails with InvalidArgument, naming field, index, value and what was expected.

/// Maximum number of plans in one answer of GetReport or ListPlans.
inline constexpr int kMaxListedPlans = 1000;
/// Number of plans if the request has none.
inline constexpr int kDefaultListedPlans = 100;

void EncodeLatencyReport(const LatencyReport& report, v1::ReportLatencyRequest* out);
/// Checks everything that needs no plan: numbers, counts, and that no launch occurs twice. A
/// missing digest becomes zeros. `device` is cut to kMaxDeviceNameBytes. Summaries become samples
/// (SamplesOf).
absl::StatusOr<LatencyReport> DecodeLatencyReport(const v1::ReportLatencyRequest& wire);

/// Selects reports.
struct ReportQuery {
  std::optional<Digest> plan;  // the plan key; nullopt: all plans
  int limit = kDefaultListedPlans;
};
void EncodeReportQuery(const ReportQuery& query, v1::GetReportRequest* out);
absl::StatusOr<ReportQuery> DecodeReportQuery(const v1::GetReportRequest& wire);

/// `wanted`, or kDefaultListedPlans for 0. InvalidArgument, naming `field`, outside
/// 0..kMaxListedPlans.
absl::StatusOr<int> DecodePageSize(std::string_view field, int wanted);

void EncodePlanReport(const PlanReport& report, v1::PlanReport* out);
absl::StatusOr<PlanReport> DecodePlanReport(const v1::PlanReport& wire);

void EncodePlanSummary(const PlanSummary& summary, v1::PlanSummary* out);
absl::StatusOr<PlanSummary> DecodePlanSummary(const v1::PlanSummary& wire);

void EncodePlanProgress(const PlanProgress& progress, v1::PlanProgress* out);
/// Cannot fail, because it is only informative. Invalid values become 0.
PlanProgress DecodePlanProgress(const v1::PlanProgress& wire);

void EncodeCapabilities(const Capabilities& capabilities, v1::GetCapabilitiesResponse* out);
/// Cannot fail, like DecodePlanProgress.
Capabilities DecodeCapabilities(const v1::GetCapabilitiesResponse& wire);

}  // namespace fusion
