#pragma once

#include <string>
#include <string_view>

#include "core/cache/rocks/eviction_index.h"

namespace fusion {

// Records of the meta family that describe entries. (Its key "schema" has the schema version.)

/// Facts of an entry. Key: this prefix, the kind ('0' plan, '1' kernel), the digest. Value in
/// schema 2: bytes, cost_ms, last_use_ms, created_ms (8 bytes each, little endian), the payload's
/// digest, the tenant.
inline constexpr char kFactsPrefix = 'e';
std::string FactsKey(const EntryId& id);
std::string FactsValue(const EntryFacts& facts);
/// Inverses of FactsKey and FactsValue. False if key or value is malformed.
bool ReadFacts(std::string_view key, std::string_view value, EntryId* id, EntryFacts* facts);
bool ReadFactsKey(std::string_view key, EntryId* id);

/// Reads a value of schema 1: bytes, cost_ms, last_use_ms, the payload's digest and, in newer ones,
/// created_ms. Plans without created_ms are listed last. False if malformed.
bool ReadFactsOfSchema1(std::string_view value, EntryFacts* facts);

/// A pinned plan. Key: this prefix, the plan's digest. Value: the digests of its kernels.
inline constexpr char kPinPrefix = 'p';
std::string PinKey(const Digest& plan);
std::string PinValue(const std::vector<Digest>& kernels);
/// Inverse of PinKey and PinValue. False if key or value is malformed.
bool ReadPin(std::string_view key, std::string_view value, Digest* plan,
             std::vector<Digest>* kernels);

}  // namespace fusion
