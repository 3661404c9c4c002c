#pragma once

#include <string_view>
#include <vector>

#include "core/base/files/signature.h"

namespace fusion::v1 {
class GetKernelsResponse;
class PlanFusionResponse;
}  // namespace fusion::v1

namespace fusion {

/// OK if one of `keys` signed the answer. `bytes`: as received; `response`: parsed from them.
/// DataLoss if it is unsigned or the signature is invalid. Pure.
absl::Status CheckPlanSignature(const std::vector<SigningKey>& keys, std::string_view bytes,
                                const v1::PlanFusionResponse& response);

/// The same for a kernel; its bytes already match the digest in the last message.
absl::Status CheckKernelSignature(const std::vector<SigningKey>& keys,
                                  const v1::GetKernelsResponse& last);

/// The bytes of the response in a serialised v1::PlanFusionEvent; empty if there is none.
std::string_view ResponseIn(std::string_view event);

}  // namespace fusion
