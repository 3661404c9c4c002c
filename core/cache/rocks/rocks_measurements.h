#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "core/base/clock.h"
#include "core/base/logging.h"
#include "core/base/threads/mutex.h"
#include "core/cache/measurement_store.h"

namespace rocksdb {
class WriteBatch;
}  // namespace rocksdb

namespace fusion {

class RocksDatabase;

struct RocksMeasurementsOptions {
  /// Maximum of stored bytes. The excess is evicted when the store is opened.
  int64_t budget_bytes = int64_t{64} << 20;
  /// Older measurements are deleted when the store is opened.
  Nanoseconds max_age = std::chrono::hours(24 * 60);
  /// Called before each Put, which fails with its error. Empty: no check.
  std::function<absl::Status()> check_space;
};

/// Measurements on disk, in the database of RocksStore. Writes are not synced: they survive a crash
/// of the process, but a crash of the machine loses the last ones. Thread-safe. `logger` must
/// outlive it; `clock` is used only by the constructor.
class RocksMeasurements final : public MeasurementStore {
 public:
  RocksMeasurements(RocksMeasurementsOptions options, std::shared_ptr<RocksDatabase> database,
                    Logger& logger, const Clock& clock);

  std::optional<PlanMeasurements> Get(const Digest& plan) override;
  absl::Status Put(const Digest& plan, const PlanMeasurements& measurements) override;
  void Remove(const Digest& plan) override;
  std::vector<Digest> Plans() const override;
  MeasurementStats Stats() const override;

 private:
  void LoadIndex(const Clock& clock);
  void Write(rocksdb::WriteBatch* deletes);
  void Drop(const Digest& plan, std::string_view reason);

  const RocksMeasurementsOptions options_;
  const std::shared_ptr<RocksDatabase> database_;
  Logger& logger_;

  // Held from the choice of victims until the index is updated. Acquired before mutex_.
  Mutex write_mutex_;
  mutable Mutex mutex_;
  MeasurementIndex index_ ABSL_GUARDED_BY(mutex_);
  int64_t evicted_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t dropped_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace fusion
