#include "core/cache/record_store.h"

namespace fusion {

std::vector<Digest> RecordIndex::Victims(const Digest& key, int64_t bytes) const {
  auto old = facts_.find(key);
  int64_t after = bytes_ + bytes - (old == facts_.end() ? 0 : old->second.bytes);
  std::vector<Digest> victims;
  for (const auto& [last_report_ms, other] : by_age_) {
    if (after <= budget_bytes_) break;
    if (other == key) continue;
    after -= facts_.at(other).bytes;
    victims.push_back(other);
  }
  return victims;
}

void RecordIndex::Add(const Digest& key, const Facts& facts) {
  Remove(key);
  facts_.emplace(key, facts);
  by_age_.insert({facts.last_report_ms, key});
  bytes_ += facts.bytes;
}

void RecordIndex::Remove(const Digest& key) {
  auto it = facts_.find(key);
  if (it == facts_.end()) return;
  by_age_.erase({it->second.last_report_ms, key});
  bytes_ -= it->second.bytes;
  facts_.erase(it);
}

std::vector<Digest> RecordIndex::Keys() const {
  std::vector<Digest> keys;
  for (auto it = by_age_.rbegin(); it != by_age_.rend(); ++it) keys.push_back(it->second);
  return keys;
}

}  // namespace fusion
