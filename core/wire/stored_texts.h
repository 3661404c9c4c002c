#pragma once

#include "core/bundle/answer.h"

namespace fusion::v1 {
class GetStoredResponse;
class KernelTexts;
}  // namespace fusion::v1

namespace fusion {

void EncodeKernelTexts(const KernelTexts& texts, v1::KernelTexts* out);
/// Inverse of EncodeKernelTexts, for bytes that nobody vouches for: InvalidArgument, naming the
/// field.
absl::StatusOr<KernelTexts> DecodeKernelTexts(const v1::KernelTexts& wire);

/// The answer about a plan; its plan is decoded as DecodePlan does it.
absl::StatusOr<StoredPlanTexts> DecodeStoredTexts(const v1::GetStoredResponse& wire);

}  // namespace fusion
