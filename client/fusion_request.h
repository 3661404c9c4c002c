#pragma once

#include "client/fusion_reply.h"
#include "core/base/hash.h"

namespace fusion::v1 {
class PlanFusionRequest;
}  // namespace fusion::v1

namespace fusion {

/// The request as it is sent. InvalidArgument, naming the field, for what cannot be: not exactly
/// one graph, names that are not UTF-8, more than `max_bytes`.
absl::Status EncodeRequest(const FusionRequest& request, int64_t max_bytes,
                           v1::PlanFusionRequest* out);

/// Names what decides the answer to a request on the client's side: model without weights, target,
/// options, hints, rules, and the version of this library and of the kernel ABI; not
/// `request_id`, `traceparent` and `model_name`, which are for people. Equal requests have equal
/// digests on every machine.
absl::StatusOr<Digest> RequestDigest(const FusionRequest& request);

}  // namespace fusion
