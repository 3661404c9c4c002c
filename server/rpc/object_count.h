#pragma once

#include <cstdint>
#include <string_view>

namespace google::protobuf {
class Descriptor;
}

namespace fusion {

/// Messages within messages that a parser takes.
inline constexpr int kMaxMessageDepth = 100;

/// What CountObjects says of bytes that are no message, and of one with more than kMaxMessageDepth.
inline constexpr int64_t kNoMessage = -1;
inline constexpr int64_t kNestedTooDeep = -2;

/// How many objects a parser would make of `bytes`, a serialised message of `type`: messages,
/// groups, strings, byte fields, whatever it does not know (which it keeps), and eight numbers of
/// variable length for one. Found by walking the wire format: nothing is allocated, 5 MB take
/// milliseconds. Stops soon after `limit`. kNoMessage or kNestedTooDeep, below 0, for what a parser
/// does not take.
int64_t CountObjects(const google::protobuf::Descriptor& type, std::string_view bytes,
                     int64_t limit);

}  // namespace fusion
