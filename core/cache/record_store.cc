#include "core/cache/record_store.h"

#include <algorithm>
#include <cstring>

namespace fusion {

uint64_t OwnerOf(const KernelTimings& record) {
  uint64_t owner = 0;
  const Digest of = Sha256(record.tenant);
  std::memcpy(&owner, of.bytes.data(), sizeof(owner));
  return owner;
}

std::vector<Digest> RecordIndex::Victims(const Digest& key, const Facts& facts) const {
  auto old = facts_.find(key);
  int64_t after = bytes_ + facts.bytes - (old == facts_.end() ? 0 : old->second.bytes);
  // What each owner would have, and which of its records is next.
  struct Owner {
    int64_t bytes = 0;
    ByAge::const_iterator next;
    ByAge::const_iterator end;
  };
  std::vector<Owner> owners;
  for (const auto& [owner, share] : shares_) {
    int64_t bytes = share.bytes + (owner == facts.owner ? facts.bytes : 0);
    if (old != facts_.end() && old->second.owner == owner) bytes -= old->second.bytes;
    owners.push_back({bytes, share.records.begin(), share.records.end()});
  }
  std::vector<Digest> victims;
  while (after > budget_bytes_) {
    Owner* most = nullptr;
    for (Owner& owner : owners) {
      if (owner.next != owner.end && owner.next->second == key) ++owner.next;
      if (owner.next == owner.end) continue;
      if (most == nullptr || owner.bytes > most->bytes) most = &owner;
    }
    if (most == nullptr) break;
    const Digest& victim = most->next->second;
    const int64_t bytes = facts_.at(victim).bytes;
    victims.push_back(victim);
    after -= bytes;
    most->bytes -= bytes;
    ++most->next;
  }
  return victims;
}

void RecordIndex::Add(const Digest& key, const Facts& facts) {
  Remove(key);
  facts_.emplace(key, facts);
  by_age_.insert({facts.last_report_ms, key});
  bytes_ += facts.bytes;
  Share& share = shares_[facts.owner];
  share.bytes += facts.bytes;
  share.records.insert({facts.last_report_ms, key});
}

void RecordIndex::Remove(const Digest& key) {
  auto it = facts_.find(key);
  if (it == facts_.end()) return;
  const Facts& facts = it->second;
  by_age_.erase({facts.last_report_ms, key});
  bytes_ -= facts.bytes;
  auto share = shares_.find(facts.owner);
  share->second.bytes -= facts.bytes;
  share->second.records.erase({facts.last_report_ms, key});
  if (share->second.records.empty()) shares_.erase(share);
  facts_.erase(it);
}

std::vector<Digest> RecordIndex::Keys() const {
  std::vector<Digest> keys;
  for (auto it = by_age_.rbegin(); it != by_age_.rend(); ++it) keys.push_back(it->second);
  return keys;
}

}  // namespace fusion
