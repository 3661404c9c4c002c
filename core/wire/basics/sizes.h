#pragma once

#include "core/bundle/plan.h"

namespace fusion::v1 {
class DimRange;
class PlanSample;
class SizeExpr;
}  // namespace fusion::v1

namespace fusion {

void EncodeSize(const SizeExpr& size, v1::SizeExpr* out);
/// InvalidArgument for more terms or symbols than the .proto allows, and for negative symbols.
absl::StatusOr<SizeExpr> DecodeSize(const v1::SizeExpr& wire);

void EncodeRange(const DimRange& range, v1::DimRange* out);
/// Fails as CheckRange does.
absl::StatusOr<DimRange> DecodeRange(const v1::DimRange& wire);

void EncodeSample(const PlanSample& sample, v1::PlanSample* out);
/// InvalidArgument for times that are negative, NaN or longer than a day.
absl::StatusOr<PlanSample> DecodeSample(const v1::PlanSample& wire);

}  // namespace fusion
