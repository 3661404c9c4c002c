#include "core/base/hash.h"

#include <openssl/sha.h>

#include "core/base/hash_stream.h"
#include "core/base/key_field.h"
#include "core/base/text/hex_digit.h"
#include "core/base/text/text.h"

namespace fusion {

std::string Digest::ToHex() const {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  out.reserve(64);
  for (uint8_t byte : bytes) {
    out += kHex[byte >> 4];
    out += kHex[byte & 15];
  }
  return out;
}

bool Digest::FromHex(std::string_view hex, Digest* out) {
  if (hex.size() != 64) return false;
  for (size_t i = 0; i < 32; ++i) {
    int high = HexDigit(hex[2 * i]);
    int low = HexDigit(hex[2 * i + 1]);
    if (high < 0 || low < 0) return false;
    out->bytes[i] = static_cast<uint8_t>(high * 16 + low);
  }
  return true;
}

Digest Sha256(std::string_view bytes) {
  Digest digest;
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), digest.bytes.data());
  return digest;
}

Digest Sha256(const std::vector<std::string_view>& pieces) {
  HashStream stream;
  for (std::string_view piece : pieces) stream.Add(piece);
  return stream.Finish();
}

FieldHasher& FieldHasher::Add(std::string_view label, std::string_view value) {
  bytes_ += StrCat(label, ":", value.size(), "=");
  bytes_ += value;
  bytes_ += '\n';
  return *this;
}

FieldHasher& FieldHasher::Add(std::string_view label, int64_t value) {
  return Add(label, std::string_view(StrCat(value)));
}

std::optional<std::vector<std::pair<std::string, std::string>>> FieldHasher::Fields(
    std::string_view bytes) {
  std::vector<std::pair<std::string, std::string>> fields;
  while (!bytes.empty()) {
    const std::optional<FramedField> field = NextFramedField(&bytes);
    if (!field.has_value()) return std::nullopt;
    fields.emplace_back(field->label, field->value);
  }
  return fields;
}

}  // namespace fusion
