#pragma once

#include "core/base/signature.h"

namespace fusion::v1 {
class Signature;
}  // namespace fusion::v1

namespace fusion {

void EncodeSignature(const Signature& signature, v1::Signature* out);
/// InvalidArgument for an algorithm that is not known.
absl::StatusOr<Signature> DecodeSignature(const v1::Signature& wire);

}  // namespace fusion
