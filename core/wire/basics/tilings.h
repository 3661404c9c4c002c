#pragma once

#include <google/protobuf/repeated_field.h>

#include "core/bundle/plan_lock.h"
#include "core/wire/basics/decode_each.h"

namespace fusion::v1 {
class LockedChoice;
}  // namespace fusion::v1

namespace fusion {

// Tilings of kernels, as locks and searches contain them.

/// InvalidArgument, naming `field`, unless least <= value <= most.
absl::Status CheckBetween(std::string_view field, int64_t value, int64_t least, int64_t most);

/// DecodeEach for entries whose errors begin with a field name: "grid[2].tile: ...".
template <typename Wire, typename Value>
absl::Status DecodeParts(std::string_view field,
                         const google::protobuf::RepeatedPtrField<Wire>& wire,
                         absl::StatusOr<Value> (*decode)(const Wire&), std::vector<Value>* out) {
  return DecodeEach(field, wire, decode, out, ".");
}

/// Positions of loop ops: at least one, ascending. Else InvalidArgument.
absl::Status DecodeOps(const google::protobuf::RepeatedField<int>& wire, std::vector<int>* ops);

/// Writes `choice` into `out`, which must be empty.
void EncodeChoice(const LockedChoice& choice, v1::LockedChoice* out);
/// Inverse of EncodeChoice for untrusted input. InvalidArgument names the field.
absl::StatusOr<LockedChoice> DecodeChoice(const v1::LockedChoice& wire);

}  // namespace fusion
