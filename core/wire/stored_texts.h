#pragma once

#include "core/bundle/answer.h"

namespace fusion::v1 {
class GetStoredResponse;
class KernelTexts;
}  // namespace fusion::v1

namespace fusion {

void EncodeKernelTexts(const KernelTexts& texts, v1::KernelTexts* out);
/// Inverse of EncodeKernelTexts for untrusted input. InvalidArgument names the field.
absl::StatusOr<KernelTexts> DecodeKernelTexts(const v1::KernelTexts& wire);

/// The texts of a stored plan. Its plan is decoded by DecodePlan and fails as that does.
absl::StatusOr<StoredPlanTexts> DecodeStoredTexts(const v1::GetStoredResponse& wire);

}  // namespace fusion
