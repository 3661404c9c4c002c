#pragma once

#include <map>

#include "core/base/threads/mutex.h"
#include "core/cache/measurement_store.h"

namespace fusion {

/// Measurements in memory, for a server without a disk store. They are lost when the process ends.
/// Thread-safe.
class MemoryMeasurements final : public MeasurementStore {
 public:
  explicit MemoryMeasurements(int64_t budget_bytes = int64_t{64} << 20) : index_(budget_bytes) {}

  std::optional<PlanMeasurements> Get(const Digest& plan) override;
  absl::Status Put(const Digest& plan, const PlanMeasurements& measurements) override;
  void Remove(const Digest& plan) override;
  std::vector<Digest> Plans() const override;
  MeasurementStats Stats() const override;

 private:
  mutable Mutex mutex_;
  MeasurementIndex index_ ABSL_GUARDED_BY(mutex_);
  std::map<Digest, PlanMeasurements> measurements_ ABSL_GUARDED_BY(mutex_);
  int64_t evicted_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace fusion
