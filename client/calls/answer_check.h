#pragma once

#include <string_view>
#include <vector>

#include "core/base/files/signature.h"

namespace fusion::v1 {
class GetKernelsResponse;
class PlanFusionResponse;
}  // namespace fusion::v1

namespace fusion {

/// OK if one of `keys` signed this answer: `bytes` as they came, `response` parsed from them.
/// DataLoss if nobody did, or the signature is not right. Pure.
absl::Status CheckPlanSignature(const std::vector<SigningKey>& keys, std::string_view bytes,
                                const v1::PlanFusionResponse& response);

/// The same of a kernel whose bytes have the digest that its last message says.
absl::Status CheckKernelSignature(const std::vector<SigningKey>& keys,
                                  const v1::GetKernelsResponse& last);

/// The response inside of a serialised v1::PlanFusionEvent, as it came; empty if there is none.
std::string_view ResponseIn(std::string_view event);

}  // namespace fusion
