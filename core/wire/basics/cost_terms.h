#pragma once

#include "core/base/status.h"
#include "core/bundle/cost_terms.h"

namespace fusion::v1 {
class CostTerms;
}  // namespace fusion::v1

namespace fusion {

/// Times above 1e100 us are sent as 1e100, and what is no number as 0.
void EncodeTerms(const CostTerms& terms, v1::CostTerms* out);
/// InvalidArgument, naming the field, for times outside 0..1e100 us and for a share outside 0..1.
absl::StatusOr<CostTerms> DecodeTerms(const v1::CostTerms& wire);

}  // namespace fusion
