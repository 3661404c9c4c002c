#pragma once

#include "core/bundle/explanation.h"

namespace fusion::v1 {
class ExplainPlanRequest;
class ExplainPlanResponse;
}  // namespace fusion::v1

namespace fusion {

/// The filter's fields of a request; the others are the caller's.
void EncodeExplainFilter(const ExplainFilter& filter, v1::ExplainPlanRequest* out);
/// InvalidArgument for a negative group or more than two nodes; the plan knows the rest.
absl::StatusOr<ExplainFilter> DecodeExplainFilter(const v1::ExplainPlanRequest& wire);

/// Writes into an empty message; names that are not UTF-8 come out changed (TextToWire).
void EncodeExplanation(const PlanExplanation& explanation, v1::ExplainPlanResponse* out);
/// For bytes that nobody vouches for: fails as DecodePlan does, and with InvalidArgument where the
/// names do not fit the plan.
absl::StatusOr<PlanExplanation> DecodeExplanation(const v1::ExplainPlanResponse& wire);

/// The serialised v1::ExplainPlanResponse, and back; fails like DecodeExplanation.
std::string ExplanationToBytes(const PlanExplanation& explanation);
absl::StatusOr<PlanExplanation> ExplanationFromBytes(std::string_view bytes);

}  // namespace fusion
