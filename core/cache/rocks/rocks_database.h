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

/// A cache for table blocks, including indexes and filters. It has one shard. With the default of
/// up to 64 each shard would be too small for large blocks, which would be read again with each
/// use.
std::shared_ptr<rocksdb::Cache> MakeBlockCache(int64_t bytes);

/// An open RocksDB with the options and column families of the store. Holds the store's lock. Read
/// and write through db() and family(). Thread-safe after Open.
class RocksDatabase {
 public:
  /// Errors as RocksStore::Open. `lock`: from LockStore(dir). `logger` and `clock` must outlive it.
  static absl::StatusOr<std::unique_ptr<RocksDatabase>> Open(const std::string& dir,
                                                             int64_t block_cache_bytes,
                                                             StoreLock lock, Logger& logger,
                                                             const Clock& clock);
  /// Opens an existing, undamaged database of the current schema read-only. Needs no disk space.
  /// Entries that are only in the write-ahead log are read too.
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
  /// The new path of a damaged database that Open renamed; empty: there was none.
  const std::string& set_aside() const { return set_aside_; }
  /// Sets set_aside(). For the caller that renamed the database.
  void NoteSetAside(std::string path) { set_aside_ = std::move(path); }
  /// The number of damaged places in the write-ahead log that Open found. Records after them are
  /// lost.
  int64_t log_damage() const { return log_damage_; }
  /// The error of the last failed write, until it is resolved. OK: RocksDB can write.
  /// FailedPrecondition: opened read-only.
  absl::Status CheckWritable() const;
  /// Records a failed write. CheckWritable returns it until TryToResume succeeds.
  void NoteFailedWrite(const rocksdb::Status& failed) { errors_->Note(failed); }
  /// Resumes writing, if there is space now. Call it if CheckWritable fails. Does nothing within a
  /// second after the last attempt, or while one is running. Slow: call it without locks held.
  void TryToResume() ABSL_LOCKS_EXCLUDED(resume_mutex_);

  /// Turns the garbage collection of blob files of kernels on or off, depending on their share of
  /// garbage. Call it after each write, not concurrently. Cheap except every 16th call.
  void TendGarbage();

  /// Bytes of a family's files, without garbage in blob files.
  int64_t LiveBytes(Family of_family) const;
  /// Bytes of memory of the block cache and the memtables.
  int64_t CachedBytes() const;

  /// Converts a RocksDB status: ResourceExhausted for lack of space, DataLoss for corruption,
  /// Unavailable for other errors. `context` begins the message.
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
  int64_t writes_ = 0;  // calls of TendGarbage
  std::atomic<int64_t> log_damage_{0};
  Mutex resume_mutex_;
  bool resuming_ ABSL_GUARDED_BY(resume_mutex_) = false;
  Nanoseconds next_resume_ ABSL_GUARDED_BY(resume_mutex_){0};
  std::shared_ptr<WriteErrors> errors_;
};

}  // namespace fusion
