#include "core/cache/measurement_store.h"

namespace fusion {

std::vector<Digest> MeasurementIndex::Victims(const Digest& plan, int64_t bytes) const {
  auto old = facts_.find(plan);
  int64_t after = bytes_ + bytes - (old == facts_.end() ? 0 : old->second.bytes);
  std::vector<Digest> victims;
  for (const auto& [last_report_ms, key] : by_age_) {
    if (after <= budget_bytes_) break;
    if (key == plan) continue;
    after -= facts_.at(key).bytes;
    victims.push_back(key);
  }
  return victims;
}

void MeasurementIndex::Add(const Digest& plan, const Facts& facts) {
  Remove(plan);
  facts_.emplace(plan, facts);
  by_age_.insert({facts.last_report_ms, plan});
  bytes_ += facts.bytes;
}

void MeasurementIndex::Remove(const Digest& plan) {
  auto it = facts_.find(plan);
  if (it == facts_.end()) return;
  by_age_.erase({it->second.last_report_ms, plan});
  bytes_ -= it->second.bytes;
  facts_.erase(it);
}

std::vector<Digest> MeasurementIndex::Plans() const {
  std::vector<Digest> plans;
  for (auto it = by_age_.rbegin(); it != by_age_.rend(); ++it) plans.push_back(it->second);
  return plans;
}

}  // namespace fusion
