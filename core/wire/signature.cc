#include "core/wire/signature.h"

#include "core/base/text/text.h"
#include "fusion/v1/fusion_service.pb.h"

namespace fusion {

void EncodeSignature(const Signature& signature, v1::Signature* out) {
  out->set_key_id(signature.key_id);
  out->set_algorithm(signature.algorithm == SignatureAlgorithm::kEd25519
                         ? v1::SIGNATURE_ALGORITHM_ED25519
                         : v1::SIGNATURE_ALGORITHM_HMAC_SHA256);
  out->set_value(signature.value);
}

absl::StatusOr<Signature> DecodeSignature(const v1::Signature& wire) {
  Signature out{.key_id = wire.key_id(), .algorithm = {}, .value = wire.value()};
  switch (wire.algorithm()) {
    case v1::SIGNATURE_ALGORITHM_ED25519:
      out.algorithm = SignatureAlgorithm::kEd25519;
      return out;
    case v1::SIGNATURE_ALGORITHM_HMAC_SHA256:
      out.algorithm = SignatureAlgorithm::kHmacSha256;
      return out;
    default:
      return InvalidArgument("signature.algorithm: ", static_cast<int>(wire.algorithm()),
                             "; expected HMAC_SHA256 or ED25519");
  }
}

std::string SignatureToBytes(const Signature& signature) {
  v1::Signature wire;
  EncodeSignature(signature, &wire);
  return wire.SerializeAsString();
}

absl::StatusOr<Signature> SignatureFromBytes(std::string_view bytes) {
  v1::Signature wire;
  if (bytes.size() > INT32_MAX ||
      !wire.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return InvalidArgument("signature: ", bytes.size(),
                           " bytes that are not a fusion.v1.Signature");
  }
  return DecodeSignature(wire);
}

}  // namespace fusion
