#include "client/calls/answer_check.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include <optional>

#include "core/base/text/text.h"
#include "core/bundle/signed_bytes.h"
#include "core/wire/answer.h"
#include "core/wire/basics/scalars.h"
#include "core/wire/signature.h"
#include "fusion/v1/fusion_service.pb.h"

namespace fusion {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

// The bytes of a message field of a serialised message. Nothing if it is not there, or more than
// once: a parser would merge them, and what was signed is one of them.
std::optional<std::string_view> OnlyField(std::string_view message, int field) {
  CodedInputStream in(reinterpret_cast<const uint8_t*>(message.data()),
                      static_cast<int>(message.size()));
  const uint32_t wanted = WireFormatLite::MakeTag(field, WireFormatLite::WIRETYPE_LENGTH_DELIMITED);
  std::optional<std::string_view> found;
  while (const uint32_t tag = in.ReadTag()) {
    uint32_t bytes = 0;
    if (tag != wanted) {
      if (!WireFormatLite::SkipField(&in, tag)) return std::nullopt;
      continue;
    }
    if (found.has_value() || !in.ReadVarint32(&bytes)) return std::nullopt;
    const auto at = static_cast<size_t>(in.CurrentPosition());
    if (bytes > message.size() - at || !in.Skip(static_cast<int>(bytes))) return std::nullopt;
    found = message.substr(at, bytes);
  }
  return found;
}

absl::Status CheckSignature(const std::vector<SigningKey>& keys, const std::string& what,
                            std::string_view bytes, const v1::Signature& wire) {
  absl::StatusOr<Signature> signature = DecodeSignature(wire);
  if (!signature.ok()) return DataLoss(what, ": ", Message(signature.status()));
  return VerifyWithAny(keys, what, bytes, *signature);
}

absl::Status Unsigned(const std::vector<SigningKey>& keys, const std::string& what) {
  return DataLoss(what, ": not signed; expected a signature with one of the keys ",
                  StrJoin(keys, ", ", [](const SigningKey& key) { return Quote(key.id()); }));
}

}  // namespace

absl::Status CheckPlanSignature(const std::vector<SigningKey>& keys, std::string_view bytes,
                                const v1::PlanFusionResponse& response) {
  absl::StatusOr<Digest> key = DigestFromWire(response.plan_key());
  if (!key.ok()) return DataLoss("plan_key: ", Message(key.status()));
  const std::string what = StrCat("plan ", key->ToHex());
  if (!response.has_signature()) return Unsigned(keys, what);
  std::optional<std::string_view> plan = OnlyField(bytes, v1::PlanFusionResponse::kPlanFieldNumber);
  if (!plan.has_value()) return DataLoss(what, ": the answer does not hold one plan");
  std::vector<KernelStatus> kernels;
  for (const v1::KernelStatus& wire : response.kernels()) {
    absl::StatusOr<KernelStatus> kernel = DecodeKernelStatus(wire);
    if (!kernel.ok()) return DataLoss(what, ": ", Message(kernel.status()));
    kernels.push_back(*std::move(kernel));
  }
  return CheckSignature(keys, what, SignedPlanBytes(*key, Sha256(*plan), kernels),
                        response.signature());
}

absl::Status CheckKernelSignature(const std::vector<SigningKey>& keys,
                                  const v1::GetKernelsResponse& last) {
  absl::StatusOr<Digest> key = DigestFromWire(last.key());
  absl::StatusOr<Digest> content = DigestFromWire(last.content_sha256());
  if (!key.ok() || !content.ok()) return DataLoss("a kernel without key or content_sha256");
  const std::string what = StrCat("kernel ", key->ToHex());
  if (!last.has_signature()) return Unsigned(keys, what);
  return CheckSignature(keys, what, SignedKernelBytes(*key, *content), last.signature());
}

std::string_view ResponseIn(std::string_view event) {
  return OnlyField(event, v1::PlanFusionEvent::kResponseFieldNumber).value_or("");
}

}  // namespace fusion
