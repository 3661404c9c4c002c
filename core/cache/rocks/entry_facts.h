#pragma once

#include <string>
#include <string_view>

#include "core/cache/rocks/eviction_index.h"

namespace fusion {

// Keys of the meta family that describe entries, beside the key "schema".

/// Facts of an entry: this, its kind ('0' plan, '1' kernel) and its digest. Values of schema 2:
/// bytes, cost_ms, last_use_ms, created_ms (8 bytes each, little endian), the payload's digest, and
/// the tenant.
inline constexpr char kFactsPrefix = 'e';
std::string FactsKey(const EntryId& id);
std::string FactsValue(const EntryFacts& facts);
/// False for what FactsKey and FactsValue do not make.
bool ReadFacts(std::string_view key, std::string_view value, EntryId* id, EntryFacts* facts);
bool ReadFactsKey(std::string_view key, EntryId* id);

/// The same of schema 1: bytes, cost_ms, last_use_ms, digest and, since there are lists of plans,
/// created_ms. Plans written before are listed last.
bool ReadFactsOfSchema1(std::string_view value, EntryFacts* facts);

/// A pinned plan: this and its digest. Values: the digests of its kernels.
inline constexpr char kPinPrefix = 'p';
std::string PinKey(const Digest& plan);
std::string PinValue(const std::vector<Digest>& kernels);
bool ReadPin(std::string_view key, std::string_view value, Digest* plan,
             std::vector<Digest>* kernels);

}  // namespace fusion
