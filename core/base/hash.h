#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fusion {

/// A SHA-256 digest. It names everything that crosses a trust boundary (plans, kernels, sources).
struct Digest {
  std::array<uint8_t, 32> bytes{};

  /// 64 lower-case hex digits.
  std::string ToHex() const;
  /// Inverse of ToHex; false if `hex` is not 64 lower-case hex digits.
  static bool FromHex(std::string_view hex, Digest* out);

  auto operator<=>(const Digest&) const = default;
};

/// The 32 bytes of `digest`, which must outlive the view.
inline std::string_view BytesOf(const Digest& digest) {
  return {reinterpret_cast<const char*>(digest.bytes.data()), digest.bytes.size()};
}

/// SHA-256 of `bytes`.
Digest Sha256(std::string_view bytes);

/// SHA-256 of the concatenation of `pieces`, without copying them.
Digest Sha256(const std::vector<std::string_view>& pieces);

/// SHA-256 over labelled fields. Each field is framed by its label and length, so that ("ab","c")
/// and ("a","bc") differ.
///
///   FieldHasher h;  h.Add("graph", canonical).Add("threads", 2);  Digest key = h.Finish();
///
/// Not thread-safe. Keeps the framed bytes, because stores compare full keys, not digests alone.
class FieldHasher {
 public:
  FieldHasher& Add(std::string_view label, std::string_view value);
  /// Adds the decimal text of `value`.
  FieldHasher& Add(std::string_view label, int64_t value);

  /// The framed bytes so far: the full key.
  const std::string& bytes() const { return bytes_; }
  Digest Finish() const { return Sha256(bytes_); }

  /// The labels and values of framed bytes, in order of Add; nullopt for bytes of another form.
  static std::optional<std::vector<std::pair<std::string, std::string>>> Fields(
      std::string_view bytes);

 private:
  std::string bytes_;
};

}  // namespace fusion
