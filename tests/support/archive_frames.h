#pragma once

#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/files/signature.h"
#include "core/base/hash_stream.h"
#include "core/base/text/text.h"
#include "core/bundle/signed_bytes.h"
#include "core/wire/signature.h"

namespace fusion {

// Archives of a store taken apart and put together, as whoever has one can do it; see
// core/cache/store_archive.h.

/// One frame.
inline std::string ArchiveFrame(char type, std::string_view payload) {
  const uint64_t length = payload.size();
  return StrCat(std::string(1, type), std::string_view(reinterpret_cast<const char*>(&length), 8),
                BytesOf(Sha256(payload)), payload);
}
inline std::string SignatureFrame(const SigningKey& key, char type, std::string_view payload) {
  return ArchiveFrame('S', SignatureToBytes(key.Sign(SignedEntryBytes(type, Sha256(payload)))));
}

struct ArchivedFrame {
  char type = 0;
  std::string payload;
};
inline std::vector<ArchivedFrame> FramesOf(std::string_view archive) {
  constexpr size_t kHeadBytes = 1 + 8 + 32;
  std::vector<ArchivedFrame> out;
  while (archive.size() >= kHeadBytes) {
    uint64_t length = 0;
    std::memcpy(&length, archive.data() + 1, 8);
    out.push_back({archive[0], std::string(archive.substr(kHeadBytes, length))});
    archive.remove_prefix(std::min(archive.size(), kHeadBytes + length));
  }
  return out;
}
/// The frames as a whole file, with an end that fits.
inline std::string ArchiveOf(const std::vector<ArchivedFrame>& frames) {
  std::string out;
  HashStream digests;
  for (const ArchivedFrame& frame : frames) {
    std::string payload = frame.payload;
    if (frame.type == 'T') payload = payload.substr(0, 16).append(BytesOf(digests.Finish()));
    if (frame.type != 'T') digests.Add(BytesOf(Sha256(payload)));
    out += ArchiveFrame(frame.type, payload);
  }
  return out;
}

}  // namespace fusion
