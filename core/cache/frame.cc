#include "core/cache/frame.h"

#include <cstring>

namespace fusion {
namespace {

// Three bytes of mark, one of version.
constexpr std::string_view kMark = "FUS";
constexpr char kVersion = 1;
constexpr size_t kHeadBytes = 4 + 32;

}  // namespace

std::string Frame(std::string_view payload) {
  std::string framed;
  framed.reserve(kHeadBytes + payload.size());
  framed += kMark;
  framed += kVersion;
  framed += BytesOf(Sha256(payload));
  framed += payload;
  return framed;
}

absl::StatusOr<std::string_view> Unframe(std::string_view framed) {
  if (framed.size() < kHeadBytes || framed.substr(0, 3) != kMark) {
    return DataLoss("entry of ", framed.size(), " bytes does not start with our mark");
  }
  if (framed[3] != kVersion) {
    return Unimplemented("entry of format ", static_cast<int>(framed[3]), "; this build reads ",
                         static_cast<int>(kVersion));
  }
  std::string_view payload = framed.substr(kHeadBytes);
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
