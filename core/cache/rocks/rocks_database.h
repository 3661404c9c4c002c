#pragma once

#include <rocksdb/cache.h>
#include <rocksdb/db.h>

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <string_view>

#include "core/base/clock.h"
#include "core/base/logging.h"
#include "core/base/threads/mutex.h"
#include "core/cache/rocks/store_lock.h"
#include "core/cache/rocks/write_errors.h"

namespace fusion {

/// Column families; their names are part of the format on disk. kModels is reserved: nothing writes
/// it yet.
enum class Family : uint8_t { kDefault, kPlans, kKernels, kMeasurements, kModels, kMeta };
inline constexpr size_t kFamilyCount = 6;

inline rocksdb::Slice AsSlice(std::string_view text) { return {text.data(), text.size()}; }
inline std::string_view AsView(const rocksdb::Slice& slice) { return {slice.data(), slice.size()}; }

/// For the blocks of tables, indexes and filters among them. One shard: the default of up to 64
/// leaves each too small to keep anything large, and what does not fit is read again with each use.
std::shared_ptr<rocksdb::Cache> MakeBlockCache(int64_t bytes);

/// An open RocksDB with the settings and families of our store, and the lock that keeps others out.
/// Reading and writing go through db() and family(). Thread-safe after Open.
class RocksDatabase {
 public:
  /// As RocksStore::Open; `lock` is the store's.
  static absl::StatusOr<std::unique_ptr<RocksDatabase>> Open(const std::string& dir,
                                                             int64_t block_cache_bytes,
                                                             StoreLock lock, Logger& logger,
                                                             const Clock& clock);
  /// Of a database that is there, sound and of our schema; needs no room. What was written to its
  /// log is read as well.
  static absl::StatusOr<std::unique_ptr<RocksDatabase>> OpenToRead(const std::string& dir,
                                                                   int64_t block_cache_bytes,
                                                                   StoreLock lock, Logger& logger,
                                                                   const Clock& clock);
  ~RocksDatabase();
  RocksDatabase(const RocksDatabase&) = delete;
  RocksDatabase& operator=(const RocksDatabase&) = delete;

  rocksdb::DB& db() const { return *db_; }
  rocksdb::ColumnFamilyHandle* family(Family family) const {
    return families_[static_cast<size_t>(family)];
  }
  /// Where Open put a damaged database; empty: there was none.
  const std::string& set_aside() const { return set_aside_; }
  void NoteSetAside(std::string path) { set_aside_ = std::move(path); }
  /// Damaged places in the write-ahead log that Open met; it goes on without what follows them.
  int64_t log_damage() const { return log_damage_; }
  /// Why RocksDB writes nothing at present, after a write that failed. OK: it does.
  absl::Status CheckWritable() const;
  /// A write that failed: CheckWritable says so until TryToResume has ended it.
  void NoteFailedWrite(const rocksdb::Status& failed) { errors_->Note(failed); }
  /// Once in a second at most: if there is room now, ends that. For who finds CheckWritable not OK.
  /// Takes long, so not for who holds a lock.
  void TryToResume() ABSL_LOCKS_EXCLUDED(resume_mutex_);

  /// Has compactions leave out what is deleted of kernels while there is enough of it. Quick but
  /// now and then; for who has written, one at a time.
  void TendGarbage();

  /// Bytes of a family's files without garbage that a compaction would leave out.
  int64_t LiveBytes(Family of_family) const;
  /// What blocks of its files and what is not yet in files takes of memory.
  int64_t CachedBytes() const;

  /// Our status for one of RocksDB's: ResourceExhausted for lack of space, DataLoss for corruption,
  /// Unavailable for the rest.
  static absl::Status ToStatus(const rocksdb::Status& status, std::string_view context);

 private:
  RocksDatabase(std::string dir, StoreLock lock, Logger& logger, const Clock& clock);
  rocksdb::Status OpenOnce(int64_t block_cache_bytes, bool read_only);
  void Close();

  const StoreLock lock_;
  const std::string dir_;
  Logger& logger_;
  const Clock& clock_;
  bool read_only_ = false;
  rocksdb::DB* db_ = nullptr;
  std::array<rocksdb::ColumnFamilyHandle*, kFamilyCount> families_{};
  std::string set_aside_;
  int64_t writes_ = 0;  // that TendGarbage was told of
  std::atomic<int64_t> log_damage_{0};
  Mutex resume_mutex_;
  bool resuming_ ABSL_GUARDED_BY(resume_mutex_) = false;
  Nanoseconds next_resume_ ABSL_GUARDED_BY(resume_mutex_){0};
  std::shared_ptr<WriteErrors> errors_;
};

}  // namespace fusion
