#pragma once

#include <string>
#include <string_view>

#include "core/base/files/signature.h"

namespace fusion::v1 {
class Signature;
}  // namespace fusion::v1

namespace fusion {

void EncodeSignature(const Signature& signature, v1::Signature* out);
/// InvalidArgument for an unknown algorithm.
absl::StatusOr<Signature> DecodeSignature(const v1::Signature& wire);

/// A signature as one string, and back. InvalidArgument also for bytes that are no v1::Signature.
std::string SignatureToBytes(const Signature& signature);
absl::StatusOr<Signature> SignatureFromBytes(std::string_view bytes);

}  // namespace fusion
