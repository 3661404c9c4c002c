#include "core/cache/memory/memory_measurements.h"

namespace fusion {

std::optional<PlanMeasurements> MemoryMeasurements::Get(const Digest& plan) {
  MutexLock lock(&mutex_);
  auto it = measurements_.find(plan);
  if (it == measurements_.end()) return std::nullopt;
  return it->second;
}

absl::Status MemoryMeasurements::Put(const Digest& plan, const PlanMeasurements& measurements) {
  int64_t bytes = ChargedBytes(measurements);
  MutexLock lock(&mutex_);
  if (bytes > index_.budget_bytes()) {
    return ResourceExhausted("measurements of ", HumanBytes(bytes), " exceed the budget of ",
                             HumanBytes(index_.budget_bytes()));
  }
  for (const Digest& victim : index_.Victims(plan, bytes)) {
    index_.Remove(victim);
    measurements_.erase(victim);
    ++evicted_;
  }
  index_.Add(plan, {.bytes = bytes, .last_report_ms = measurements.last_report_unix_ms});
  measurements_[plan] = measurements;
  return absl::OkStatus();
}

void MemoryMeasurements::Remove(const Digest& plan) {
  MutexLock lock(&mutex_);
  index_.Remove(plan);
  measurements_.erase(plan);
}

std::vector<Digest> MemoryMeasurements::Plans() const {
  MutexLock lock(&mutex_);
  return index_.Plans();
}

MeasurementStats MemoryMeasurements::Stats() const {
  MutexLock lock(&mutex_);
  return {.plans = index_.plans(),
          .bytes = index_.bytes(),
          .limit_bytes = index_.budget_bytes(),
          .evicted = evicted_};
}

}  // namespace fusion
