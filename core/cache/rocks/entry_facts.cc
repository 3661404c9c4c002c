#include "core/cache/rocks/entry_facts.h"

#include <cstring>

namespace fusion {
namespace {

constexpr size_t kDigestBytes = 32;
constexpr size_t kFactsKeyBytes = 2 + kDigestBytes;
constexpr size_t kFixedBytes = 32 + kDigestBytes;  // the tenant follows
// Lengths of values in schema 1.
constexpr size_t kOldestBytes = 24 + kDigestBytes;
constexpr size_t kOldBytes = kOldestBytes + 8;
// Distinguishes values of schema 2 from those of schema 1, which may have the same length: no entry
// is so large that its size sets this bit.
constexpr uint8_t kFactsMark = 0x80;

Digest DigestAt(std::string_view bytes, size_t at) {
  Digest digest;
  std::memcpy(digest.bytes.data(), bytes.data() + at, kDigestBytes);
  return digest;
}

}  // namespace

std::string FactsKey(const EntryId& id) {
  std::string key{kFactsPrefix, static_cast<char>('0' + static_cast<int>(id.kind))};
  return key.append(BytesOf(id.key));
}

std::string FactsValue(const EntryFacts& facts) {
  std::string value(kFixedBytes, '\0');
  std::memcpy(value.data(), &facts.bytes, 8);
  value[7] = static_cast<char>(kFactsMark);
  std::memcpy(value.data() + 8, &facts.cost_ms, 8);
  std::memcpy(value.data() + 16, &facts.last_use_ms, 8);
  std::memcpy(value.data() + 24, &facts.created_ms, 8);
  std::memcpy(value.data() + 32, facts.payload.bytes.data(), kDigestBytes);
  return value.append(facts.tenant);
}

bool ReadFactsKey(std::string_view key, EntryId* id) {
  if (key.size() != kFactsKeyBytes || (key[1] != '0' && key[1] != '1')) return false;
  id->kind = static_cast<EntryKind>(key[1] - '0');
  id->key = DigestAt(key, 2);
  return true;
}

bool ReadFacts(std::string_view key, std::string_view value, EntryId* id, EntryFacts* facts) {
  if (!ReadFactsKey(key, id)) return false;
  if (value.size() < kFixedBytes || static_cast<uint8_t>(value[7]) != kFactsMark) return false;
  facts->bytes = 0;
  std::memcpy(&facts->bytes, value.data(), 7);
  std::memcpy(&facts->cost_ms, value.data() + 8, 8);
  std::memcpy(&facts->last_use_ms, value.data() + 16, 8);
  std::memcpy(&facts->created_ms, value.data() + 24, 8);
  facts->payload = DigestAt(value, 32);
  facts->tenant = value.substr(kFixedBytes);
  return facts->bytes >= 0;
}

bool ReadFactsOfSchema1(std::string_view value, EntryFacts* facts) {
  if (value.size() != kOldBytes && value.size() != kOldestBytes) return false;
  std::memcpy(&facts->bytes, value.data(), 8);
  std::memcpy(&facts->cost_ms, value.data() + 8, 8);
  std::memcpy(&facts->last_use_ms, value.data() + 16, 8);
  facts->payload = DigestAt(value, 24);
  if (value.size() == kOldBytes) {
    std::memcpy(&facts->created_ms, value.data() + kOldestBytes, 8);
  }
  return facts->bytes >= 0;
}

std::string PinKey(const Digest& plan) { return std::string(1, kPinPrefix).append(BytesOf(plan)); }

std::string PinValue(const std::vector<Digest>& kernels) {
  std::string value;
  for (const Digest& kernel : kernels) value.append(BytesOf(kernel));
  return value;
}

bool ReadPin(std::string_view key, std::string_view value, Digest* plan,
             std::vector<Digest>* kernels) {
  if (key.size() != 1 + kDigestBytes || value.size() % kDigestBytes != 0) return false;
  *plan = DigestAt(key, 1);
  kernels->clear();
  for (size_t at = 0; at < value.size(); at += kDigestBytes) {
    kernels->push_back(DigestAt(value, at));
  }
  return true;
}

}  // namespace fusion
