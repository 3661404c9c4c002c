#pragma once

#include <rocksdb/db.h>

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <string_view>

#include "core/base/clock.h"
#include "core/base/logging.h"
#include "core/base/mutex.h"
#include "core/base/unique_fd.h"

namespace fusion {

/// Column families; their names are part of the format on disk. kModels is reserved: nothing writes
/// it yet.
enum class Family : uint8_t { kDefault, kPlans, kKernels, kMeasurements, kModels, kMeta };
inline constexpr size_t kFamilyCount = 6;

inline rocksdb::Slice AsSlice(std::string_view text) { return {text.data(), text.size()}; }
inline std::string_view AsView(const rocksdb::Slice& slice) { return {slice.data(), slice.size()}; }

class WriteErrors;

/// An open RocksDB with the settings and families of our store, and the lock that keeps others out.
/// Reading and writing go through db() and family(). Thread-safe after Open.
class RocksDatabase {
 public:
  /// As RocksStore::Open.
  static absl::StatusOr<std::unique_ptr<RocksDatabase>> Open(const std::string& dir,
                                                             int64_t block_cache_bytes,
                                                             Logger& logger, const Clock& clock);
  /// Renames a damaged, closed database and logs it; where it is then.
  static absl::StatusOr<std::string> SetAside(const std::string& dir, std::string_view reason,
                                              Logger& logger, const Clock& clock);
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
  /// Once in a second at most: if there is room now, ends that. For who finds CheckWritable not OK.
  void TryToResume() ABSL_LOCKS_EXCLUDED(resume_mutex_);

  /// Our status for one of RocksDB's: ResourceExhausted for lack of space, DataLoss for corruption,
  /// Unavailable for the rest.
  static absl::Status ToStatus(const rocksdb::Status& status, std::string_view context);

 private:
  RocksDatabase() = default;
  rocksdb::Status OpenOnce(const std::string& dir, int64_t block_cache_bytes, Logger& logger);
  void Close();

  UniqueFd lock_;
  rocksdb::DB* db_ = nullptr;
  std::array<rocksdb::ColumnFamilyHandle*, kFamilyCount> families_{};
  std::string set_aside_;
  std::atomic<int64_t> log_damage_{0};
  std::string dir_;
  Logger* logger_ = nullptr;
  Mutex resume_mutex_;
  bool resuming_ ABSL_GUARDED_BY(resume_mutex_) = false;
  Nanoseconds next_resume_ ABSL_GUARDED_BY(resume_mutex_){0};
  std::shared_ptr<WriteErrors> errors_;
};

}  // namespace fusion
