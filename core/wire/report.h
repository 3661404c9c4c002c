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

// The calls about plans that were made. Each Encode* writes into an empty message; texts that are
// not UTF-8 come out changed (TextToWire). Each Decode* reads what nobody vouches for and fails
// with InvalidArgument, naming field, index, value and what was expected.

/// Most plans that one GetReport or ListPlans answers, and how many where nothing is said.
inline constexpr int kMaxListedPlans = 1000;
inline constexpr int kDefaultListedPlans = 100;

void EncodeLatencyReport(const LatencyReport& report, v1::ReportLatencyRequest* out);
/// Everything that can be said without the plan: numbers, counts, no launch twice. A digest that is
/// not given comes out as zeros. Cuts `device` to kMaxDeviceNameBytes.
absl::StatusOr<LatencyReport> DecodeLatencyReport(const v1::ReportLatencyRequest& wire);

/// Which reports are wanted.
struct ReportQuery {
  std::optional<Digest> plan;  // not given: all
  int limit = kDefaultListedPlans;
};
void EncodeReportQuery(const ReportQuery& query, v1::GetReportRequest* out);
absl::StatusOr<ReportQuery> DecodeReportQuery(const v1::GetReportRequest& wire);

/// The number of plans that a request wants: `wanted`, or the default for 0.
absl::StatusOr<int> DecodePageSize(std::string_view field, int wanted);

void EncodePlanReport(const PlanReport& report, v1::PlanReport* out);
absl::StatusOr<PlanReport> DecodePlanReport(const v1::PlanReport& wire);

void EncodePlanSummary(const PlanSummary& summary, v1::PlanSummary* out);
absl::StatusOr<PlanSummary> DecodePlanSummary(const v1::PlanSummary& wire);

void EncodePlanProgress(const PlanProgress& progress, v1::PlanProgress* out);
/// Cannot fail: it is only information. What makes no sense becomes 0.
PlanProgress DecodePlanProgress(const v1::PlanProgress& wire);

void EncodeCapabilities(const Capabilities& capabilities, v1::GetCapabilitiesResponse* out);
/// Cannot fail, as DecodePlanProgress.
Capabilities DecodeCapabilities(const v1::GetCapabilitiesResponse& wire);

}  // namespace fusion
