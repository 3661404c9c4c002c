#pragma once

#include <google/protobuf/repeated_ptr_field.h>

#include <string_view>
#include <vector>

#include "core/base/status.h"

namespace fusion {

/// Limit for the entries of a repeated field of a plan or lock. Far above the needs of a graph with
/// 100,000 nodes; bounds the memory that one message can demand.
inline constexpr int kMaxItems = 1 << 20;

/// InvalidArgument, naming `field`, unless it has `least`..`most` entries.
inline absl::Status CheckCount(std::string_view field, int count, int least, int most) {
  if (count >= least && count <= most) return absl::OkStatus();
  return InvalidArgument(field, ": ", count, " entries; expected ", least, "..", most);
}

/// Appends the decoded entries of a repeated field (at most kMaxItems) to `out`. Errors are
/// "grid[2]: ..."; `join` is put between the entry's name and the error of `decode`: "." gives
/// "grid[2].tile: ...".
template <typename Wire, typename Value>
absl::Status DecodeEach(std::string_view field,
                        const google::protobuf::RepeatedPtrField<Wire>& wire,
                        absl::StatusOr<Value> (*decode)(const Wire&), std::vector<Value>* out,
                        std::string_view join = ": ") {
  RETURN_IF_ERROR(CheckCount(field, wire.size(), 0, kMaxItems));
  out->reserve(static_cast<size_t>(wire.size()));
  for (int i = 0; i < wire.size(); ++i) {
    absl::StatusOr<Value> value = decode(wire[i]);
    if (!value.ok()) {
      return absl::Status(value.status().code(),
                          StrCat(field, "[", i, "]", join, Message(value.status())));
    }
    out->push_back(*std::move(value));
  }
  return absl::OkStatus();
}

}  // namespace fusion
