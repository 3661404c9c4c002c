#pragma once

#include <cstdint>
#include <string_view>

namespace google::protobuf {
class Descriptor;
}

namespace fusion {

/// Depth of nested messages that a parser accepts.
inline constexpr int kMaxMessageDepth = 100;

/// Results of CountObjects for bytes that are not a message, and for more than kMaxMessageDepth.
inline constexpr int64_t kNoMessage = -1;
inline constexpr int64_t kNestedTooDeep = -2;

/// Number of objects that a parser would allocate for `bytes`, a serialised message of `type`:
/// messages, groups, strings, byte fields and unknown fields (which a parser keeps); eight numbers
/// count as one object. Walks the wire format without allocating; 5 MB take milliseconds. Stops
/// soon after `limit`. kNoMessage or kNestedTooDeep (both negative) if a parser would reject
/// `bytes`.
int64_t CountObjects(const google::protobuf::Descriptor& type, std::string_view bytes,
                     int64_t limit);

}  // namespace fusion
