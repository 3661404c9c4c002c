#pragma once

#include <string>
#include <string_view>

#include "core/bundle/plan.h"

namespace fusion::v1 {
class CheckReport;
class KernelArtifact;
}  // namespace fusion::v1

namespace fusion {

void EncodeCheckReport(const CheckReport& report, v1::CheckReport* out);
/// InvalidArgument for negative counts. The measured errors may be NaN or infinite: that is a valid
/// result.
absl::StatusOr<CheckReport> DecodeCheckReport(const v1::CheckReport& wire);

void EncodeKernel(const KernelArtifact& kernel, v1::KernelArtifact* out);
/// Inverse of EncodeKernel for untrusted input. InvalidArgument, naming the field, if something is
/// malformed; DataLoss if `full_key` or `binary` does not match its digest.
absl::StatusOr<KernelArtifact> DecodeKernel(const v1::KernelArtifact& wire);

/// The artifact as one string for a store, and its inverse, which fails as DecodeKernel does.
std::string EncodeArtifact(const KernelArtifact& kernel);
absl::StatusOr<KernelArtifact> DecodeArtifact(std::string_view bytes);

}  // namespace fusion
