#pragma once

#include <string>
#include <string_view>

#include "core/bundle/plan.h"

namespace fusion::v1 {
class Plan;
class PlanTotals;
}  // namespace fusion::v1

namespace fusion {

/// Version of the layout of v1::Plan that is written and read.
inline constexpr uint32_t kPlanVersion = 2;

/// Writes every field of `plan` into `out`, which must be empty.
void EncodePlan(const Plan& plan, v1::Plan* out);

/// Inverse of EncodePlan for untrusted input. Checks counts, enums, digests, names and numbers,
/// then Verify(plan). InvalidArgument names the field ("plan.tensors[3]: data_type: unknown value
/// 77; expected 1..25"); Unimplemented for another layout version.
absl::StatusOr<Plan> DecodePlan(const v1::Plan& wire);

void EncodeTotals(const PlanTotals& totals, v1::PlanTotals* out);
/// InvalidArgument, naming the field, for values that are negative or not finite.
absl::StatusOr<PlanTotals> DecodeTotals(const v1::PlanTotals& wire);

/// The serialised v1::Plan without its ledger. Equal plans give equal bytes.
std::string PlanToBytes(const Plan& plan);
/// The ledger alone. PlanToBytes followed by LedgerToBytes is the complete v1::Plan.
std::string LedgerToBytes(const Plan& plan);
/// Inverse of PlanToBytes, with or without the bytes of LedgerToBytes appended. Fails as DecodePlan
/// does.
absl::StatusOr<Plan> PlanFromBytes(std::string_view bytes);

}  // namespace fusion
