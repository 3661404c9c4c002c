#pragma once

#include <rocksdb/listener.h>

#include <string>

#include "core/base/logging.h"
#include "core/base/status.h"
#include "core/base/threads/mutex.h"

namespace fusion {

/// What keeps RocksDB from writing, as it says itself and as writes that failed say. Thread-safe.
/// `logger` outlives it.
class WriteErrors final : public rocksdb::EventListener {
 public:
  /// Of the database in `dir`, in which a file is left once RocksDB meets damage on its own: see
  /// MetDamage.
  WriteErrors(std::string dir, Logger& logger) : dir_(std::move(dir)), logger_(logger) {}

  /// A write that failed: until the next Clear nothing is taken to be written.
  void Note(const rocksdb::Status& failed) { Set(failed); }
  /// OK: it writes.
  absl::Status Check() const;

  /// How often what Check says was set so far.
  int64_t changes() const;
  /// After RocksDB was made to write again: forgets what was set by then, that is while changes()
  /// was `seen` before, and nothing that came since.
  void ClearUnlessChanged(int64_t seen);

  /// Whether damage was met in the database in `dir`. RocksDB writes there no more, and would meet
  /// it again.
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
