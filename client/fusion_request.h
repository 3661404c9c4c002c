#pragma once

#include "client/fusion_reply.h"
#include "core/base/hash.h"

namespace fusion::v1 {
class PlanFusionRequest;
}  // namespace fusion::v1

namespace fusion {

/// Encodes a request for the wire. InvalidArgument, naming the field, if it is invalid: not exactly
/// one graph, names that are not UTF-8, more than `max_bytes`.
absl::Status EncodeRequest(const FusionRequest& request, int64_t max_bytes,
                           v1::PlanFusionRequest* out);

/// A digest of everything on the client's side that decides the answer: model without weights,
/// target, options, hints, rules, and the versions of this library and of the kernel ABI.
/// `request_id`, `traceparent` and `model_name` do not count. Equal on every machine for equal
/// requests. InvalidArgument as EncodeRequest.
absl::StatusOr<Digest> RequestDigest(const FusionRequest& request);

}  // namespace fusion
