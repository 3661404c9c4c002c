#include "core/cache/rocks/frame.h"

#include <cstring>

namespace fusion {
namespace {

// The mark has three bytes; one byte of version follows.
constexpr std::string_view kFrameMark = "FUS";
constexpr char kVersion = 1;
constexpr size_t kFrameHeadBytes = 4 + 32;

}  // namespace

std::string Frame(std::string_view payload) {
  std::string framed;
  framed.reserve(kFrameHeadBytes + payload.size());
  framed += kFrameMark;
  framed += kVersion;
  framed += BytesOf(Sha256(payload));
  framed += payload;
  return framed;
}

absl::StatusOr<std::string_view> Unframe(std::string_view framed) {
  if (framed.size() < kFrameHeadBytes || framed.substr(0, 3) != kFrameMark) {
    return DataLoss("entry of ", framed.size(), " bytes does not start with our mark");
  }
  if (framed[3] != kVersion) {
    return Unimplemented("entry of format ", static_cast<int>(framed[3]), "; this build reads ",
                         static_cast<int>(kVersion));
  }
  std::string_view payload = framed.substr(kFrameHeadBytes);
  if (BytesOf(Sha256(payload)) != framed.substr(4, 32)) {
    return DataLoss("entry of ", payload.size(), " bytes does not match its digest");
  }
  return payload;
}

Digest FrameDigest(std::string_view framed) {
  Digest digest;
  std::memcpy(digest.bytes.data(), framed.data() + 4, digest.bytes.size());
  return digest;
}

}  // namespace fusion
