#pragma once

#include "core/base/status.h"
#include "core/bundle/cost_factors.h"

namespace fusion::v1 {
class CostFactors;
class PlanCalibration;
}  // namespace fusion::v1

namespace fusion {

void EncodeFactors(const CostFactors& factors, v1::CostFactors* out);
/// For untrusted input. InvalidArgument, naming the field, for factors outside
/// kLeastCostFactor..kMostCostFactor, and for more than 16 types of products.
absl::StatusOr<CostFactors> DecodeFactors(const v1::CostFactors& wire);

void EncodeCalibration(const PlanCalibration& calibration, v1::PlanCalibration* out);
/// As DecodeFactors; the epoch is at least 1.
absl::StatusOr<PlanCalibration> DecodeCalibration(const v1::PlanCalibration& wire);

}  // namespace fusion
