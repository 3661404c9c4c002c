#pragma once

#include <rocksdb/listener.h>

#include <string>

#include "core/base/logging.h"
#include "core/base/status.h"
#include "core/base/threads/mutex.h"

namespace fusion {

/// The current write error of a database, from RocksDB's events and from failed writes. `logger`
/// must outlive it. Thread-safe.
class WriteErrors final : public rocksdb::EventListener {
 public:
  /// For the database in `dir`. If a background job of RocksDB finds damage, a marker file is
  /// written there (MetDamage).
  WriteErrors(std::string dir, Logger& logger) : dir_(std::move(dir)), logger_(logger) {}

  /// Records a failed write: Check fails until ClearUnlessChanged or RocksDB's own recovery.
  void Note(const rocksdb::Status& failed) { Set(failed); }
  /// The current error, converted by RocksDatabase::ToStatus. OK: none.
  absl::Status Check() const;

  /// A counter of changes of the error.
  int64_t changes() const;
  /// Clears the error after RocksDB resumed, unless changes() differs from `seen`: then an error
  /// came in the meantime. `seen`: changes() before the attempt to resume.
  void ClearUnlessChanged(int64_t seen);

  /// True if the marker file is in `dir`. RocksDB no longer writes to such a database, and would
  /// find the damage again.
  static bool MetDamage(const std::string& dir);

  void OnBackgroundError(rocksdb::BackgroundErrorReason reason, rocksdb::Status* status) override;
  void OnErrorRecoveryBegin(rocksdb::BackgroundErrorReason reason, rocksdb::Status error,
                            bool* automatic) override;
  void OnErrorRecoveryEnd(const rocksdb::BackgroundErrorRecoveryInfo& info) override;

 private:
  void Set(const rocksdb::Status& status);

  const std::string dir_;
  Logger& logger_;
  mutable Mutex mutex_;
  rocksdb::Status status_ ABSL_GUARDED_BY(mutex_);
  int64_t changes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace fusion
