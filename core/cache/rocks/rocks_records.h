#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "core/base/clock.h"
#include "core/base/logging.h"
#include "core/base/threads/mutex.h"
#include "core/cache/record_store.h"

namespace rocksdb {
class WriteBatch;
}  // namespace rocksdb

namespace fusion {

class RocksDatabase;

struct RocksRecordsOptions {
  /// Maximum of stored bytes. The excess is evicted when the store is opened.
  int64_t budget_bytes = int64_t{64} << 20;
  /// Older records are deleted when the store is opened.
  Nanoseconds max_age = std::chrono::hours(24 * 60);
  /// Called before each Put, which fails with its error. Empty: no check.
  std::function<absl::Status()> check_space;
};

/// Records on disk, in the database of RocksStore. Writes are not synced: they survive a crash
/// of the process, but a crash of the machine loses the last ones. Thread-safe. `logger` must
/// outlive it; `clock` is used only by the constructor.
template <typename Record>
class RocksRecords final : public RecordStore<Record> {
 public:
  RocksRecords(RocksRecordsOptions options, std::shared_ptr<RocksDatabase> database, Logger& logger,
               const Clock& clock);

  std::optional<Record> Get(const Digest& key) override;
  absl::Status Put(const Digest& key, const Record& record) override;
  void Remove(const Digest& key) override;
  std::vector<Digest> Keys() const override;
  RecordStats Stats() const override;

 private:
  void LoadIndex(const Clock& clock);
  void Write(rocksdb::WriteBatch* deletes);
  void Drop(const Digest& key, std::string_view reason);

  const RocksRecordsOptions options_;
  const std::shared_ptr<RocksDatabase> database_;
  Logger& logger_;

  // Held from the choice of victims until the index is updated. Acquired before mutex_.
  Mutex write_mutex_;
  mutable Mutex mutex_;
  RecordIndex index_ ABSL_GUARDED_BY(mutex_);
  int64_t evicted_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t dropped_ ABSL_GUARDED_BY(mutex_) = 0;
};

extern template class RocksRecords<PlanMeasurements>;
extern template class RocksRecords<KernelTimings>;

}  // namespace fusion
