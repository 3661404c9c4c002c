#pragma once

#include "core/bundle/explanation.h"

namespace fusion::v1 {
class ExplainPlanRequest;
class ExplainPlanResponse;
}  // namespace fusion::v1

namespace fusion {

/// Sets the filter's fields of a request. The caller sets the others.
void EncodeExplainFilter(const ExplainFilter& filter, v1::ExplainPlanRequest* out);
/// InvalidArgument for a negative group or more than two nodes. Whether the positions exist is
/// checked against the plan later.
absl::StatusOr<ExplainFilter> DecodeExplainFilter(const v1::ExplainPlanRequest& wire);

/// Writes into an empty message. Names that are not UTF-8 are changed by TextToWire.
void EncodeExplanation(const PlanExplanation& explanation, v1::ExplainPlanResponse* out);
/// Inverse of EncodeExplanation for untrusted input. Fails as DecodePlan does. InvalidArgument also
/// unless there is one name for each node of the plan, or none at all.
absl::StatusOr<PlanExplanation> DecodeExplanation(const v1::ExplainPlanResponse& wire);

/// The serialised v1::ExplainPlanResponse, and back. Decoding fails as DecodeExplanation does.
std::string ExplanationToBytes(const PlanExplanation& explanation);
absl::StatusOr<PlanExplanation> ExplanationFromBytes(std::string_view bytes);

}  // namespace fusion
