#include "core/cache/rocks_database.h"

#include <fcntl.h>
#include <rocksdb/cache.h>
#include <rocksdb/file_checksum.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/listener.h>
#include <rocksdb/options.h>
#include <rocksdb/table.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <vector>

#include "core/base/file.h"
#include "core/base/mutex.h"
#include "core/cache/rocks_schema.h"

namespace fusion {
namespace {

constexpr std::array<const char*, kFamilyCount> kFamilyNames = {"default",      "plans",  "kernels",
                                                                "measurements", "models", "meta"};

// A value at least this long lies in a blob file instead of a table, so compaction does not copy
// it.
constexpr uint64_t kMinBlobBytes = 4 << 10;
constexpr uint64_t kBlobFileBytes = 64 << 20;
// Small, because a full disk needs about one memtable of room to recover.
constexpr size_t kMemtableBytes = 16 << 20;
// Without it a family that is rarely written pins up to four times all memtables of log files.
constexpr uint64_t kMaxWalBytes = 64 << 20;
// Written now and then while the disk is full; RocksDB leaves names that it does not know alone.
constexpr std::string_view kProbeName = "/room.probe";
// Is there once RocksDB has met damage on its own. It writes no more then, and would meet it again.
constexpr std::string_view kDamagedName = "/damaged";
constexpr Nanoseconds kResumePause = std::chrono::seconds(1);

// Forwards RocksDB's own lines. Without a logger of ours it keeps a LOG file in the store, and an
// assertion in Debian's library ends the process when a line does not fit on a full disk.
class ForwardingLog final : public rocksdb::Logger {
 public:
  ForwardingLog(fusion::Logger& logger, std::atomic<int64_t>* log_damage)
      : rocksdb::Logger(logger.Enabled(LogLevel::kDebug) ? rocksdb::INFO_LEVEL
                                                         : rocksdb::WARN_LEVEL),
        logger_(logger),
        log_damage_(log_damage) {}

  using rocksdb::Logger::Logv;
  void Logv(const char* format, va_list arguments) override {
    Forward(LogLevel::kDebug, format, arguments);
  }
  void Logv(const rocksdb::InfoLogLevel level, const char* format, va_list arguments) override {
    if (level < GetInfoLogLevel()) return;
    Forward(level >= rocksdb::ERROR_LEVEL  ? LogLevel::kError
            : level >= rocksdb::WARN_LEVEL ? LogLevel::kWarning
                                           : LogLevel::kDebug,
            format, arguments);
  }

 private:
  void Forward(LogLevel level, const char* format, va_list arguments) {
    char line[2048];
    std::vsnprintf(line, sizeof(line), format, arguments);
    // Nothing else says that a damaged record of the write-ahead log, and what follows it, is left
    // out: Open succeeds all the same.
    const std::string_view text(line);
    if (text.find(": dropping ") != std::string_view::npos) ++*log_damage_;
    logger_.Log(level, "rocksdb", {{"line", StripSpace(line)}});
  }
  fusion::Logger& logger_;
  std::atomic<int64_t>* const log_damage_;
};

}  // namespace

// What keeps RocksDB from writing, as it says itself.
class WriteErrors final : public rocksdb::EventListener {
 public:
  WriteErrors(std::string dir, Logger& logger) : dir_(std::move(dir)), logger_(logger) {}
  void OnBackgroundError(rocksdb::BackgroundErrorReason /*reason*/,
                         rocksdb::Status* status) override {
    logger_.Error("store_background_error", {{"status", status->ToString()}});
    if (status->IsCorruption()) {
      WriteFile(StrCat(dir_, kDamagedName), status->ToString()).IgnoreError();
    }
    Set(*status);
  }
  // By itself RocksDB would try as long as the disk is full, and an attempt that fails half way, at
  // a new log, leaves an error that nothing but a restart ends. See TryToResume.
  void OnErrorRecoveryBegin(rocksdb::BackgroundErrorReason /*reason*/, rocksdb::Status error,
                            bool* automatic) override {
    if (error.IsNoSpace()) *automatic = false;
  }
  void OnErrorRecoveryEnd(const rocksdb::BackgroundErrorRecoveryInfo& info) override {
    Set(info.new_bg_error);
  }
  void Clear() { Set(rocksdb::Status::OK()); }

  absl::Status Check() const {
    MutexLock lock(&mutex_);
    return RocksDatabase::ToStatus(status_, "the store");
  }

 private:
  void Set(const rocksdb::Status& status) {
    MutexLock lock(&mutex_);
    status_ = status;
  }

  const std::string dir_;
  Logger& logger_;
  mutable Mutex mutex_;
  rocksdb::Status status_ ABSL_GUARDED_BY(mutex_);
};

namespace {

rocksdb::DBOptions DatabaseOptions(Logger& logger, std::shared_ptr<WriteErrors> errors,
                                   std::atomic<int64_t>* log_damage) {
  rocksdb::DBOptions options;
  options.create_if_missing = true;
  options.create_missing_column_families = true;
  options.paranoid_checks = true;
  options.info_log = std::make_shared<ForwardingLog>(logger, log_damage);
  options.listeners.push_back(std::move(errors));
  options.max_background_jobs = 2;
  options.max_total_wal_size = kMaxWalBytes;
  options.track_and_verify_wals_in_manifest = true;
  // Without it a flipped byte in a blob file is found by nothing but a read of that very value.
  options.file_checksum_gen_factory = rocksdb::GetFileChecksumGenCrc32cFactory();
  return options;
}

std::vector<rocksdb::ColumnFamilyDescriptor> Families(int64_t block_cache_bytes) {
  rocksdb::BlockBasedTableOptions table;
  // One shard: the default of 64 leaves each too small to keep anything large.
  table.block_cache =
      rocksdb::NewLRUCache(static_cast<size_t>(block_cache_bytes), /*num_shard_bits=*/0);
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  table.block_size = 16 << 10;
  rocksdb::ColumnFamilyOptions plain;
  plain.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  plain.write_buffer_size = kMemtableBytes;
  plain.compression = rocksdb::kZSTD;
  plain.memtable_protection_bytes_per_key = 8;

  rocksdb::ColumnFamilyOptions kernels = plain;
  kernels.enable_blob_files = true;
  kernels.min_blob_size = kMinBlobBytes;
  kernels.blob_file_size = kBlobFileBytes;
  // Binary with source, 20 KB: zstd leaves 4.8 KB, lz4 6.4 KB (GEMM and attention kernels).
  kernels.blob_compression_type = rocksdb::kZSTD;
  kernels.enable_blob_garbage_collection = true;
  kernels.blob_garbage_collection_age_cutoff = 0.5;
  kernels.blob_garbage_collection_force_threshold = 0.5;

  // One record per plan, written anew with each report. With FIFO compaction, which keeps what is
  // overwritten, one busy plan would push out all others; RocksMeasurements bounds them instead.
  std::vector<rocksdb::ColumnFamilyDescriptor> families;
  for (size_t i = 0; i < kFamilyCount; ++i) {
    auto family = static_cast<Family>(i);
    families.emplace_back(kFamilyNames[i], family == Family::kKernels ? kernels : plain);
  }
  return families;
}

// Whether a memtable of every family can be written out, by trying: free space as the system counts
// it may be reserved, or beyond a quota.
bool HasRoom(const std::string& path) {
  constexpr size_t kBlock = 1 << 20;
  UniqueFd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  bool room = fd.valid();
  const std::string block(kBlock, '\x5a');
  for (size_t written = 0; room && written < kFamilyCount * kMemtableBytes; written += kBlock) {
    room = write(fd.get(), block.data(), block.size()) == static_cast<ssize_t>(block.size());
  }
  room = room && fsync(fd.get()) == 0;
  unlink(path.c_str());
  return room;
}

absl::StatusOr<UniqueFd> Lock(const std::string& dir) {
  std::string path = dir + ".lock";
  UniqueFd fd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!fd.valid()) {
    return Unavailable("opening ", Quote(path), ": ", std::generic_category().message(errno));
  }
  if (flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    char holder[32] = {};
    ssize_t n = read(fd.get(), holder, sizeof(holder) - 1);
    return FailedPrecondition("store ", Quote(dir), " is open already",
                              n > 0 ? StrCat(" in process ", StripSpace(holder)) : std::string(),
                              "; one process at a time can use it");
  }
  std::string pid = StrCat(getpid(), "\n");
  // The number only serves the message above: a lock without it is as good.
  if (ftruncate(fd.get(), 0) == 0) (void)!write(fd.get(), pid.data(), pid.size());
  return fd;
}

// Whether an Open that failed like this means that the files are bad, not the circumstances.
bool IsDamage(const rocksdb::Status& status) {
  // NotFound: CURRENT names an absent file. InvalidArgument: families we do not know, or options of
  // ours it refuses; only the former says anything about the files.
  return status.IsCorruption() || status.IsNotFound() || status.IsPathNotFound() ||
         (status.IsInvalidArgument() &&
          status.ToString().find("olumn families") != std::string::npos);
}

}  // namespace

absl::StatusOr<std::string> RocksDatabase::SetAside(const std::string& dir, std::string_view reason,
                                                    Logger& logger, const Clock& clock) {
  auto seconds = std::chrono::duration_cast<std::chrono::seconds>(clock.UnixTime()).count();
  std::string aside = StrCat(dir, ".corrupt-", seconds);
  for (int i = 1; std::filesystem::exists(aside); ++i) {
    aside = StrCat(dir, ".corrupt-", seconds, "-", i);
  }
  std::error_code error;
  std::filesystem::rename(dir, aside, error);
  if (error) {
    return Unavailable("store ", Quote(dir), " is damaged (", reason,
                       ") and cannot be renamed: ", error.message());
  }
  logger.Error("store_set_aside",
               {{"dir", dir}, {"renamed_to", aside}, {"reason", reason}, {"now", "empty store"}});
  return aside;
}

absl::Status RocksDatabase::ToStatus(const rocksdb::Status& status, std::string_view context) {
  if (status.ok()) return absl::OkStatus();
  std::string text = StrCat(context, ": ", status.ToString());
  if (status.IsNoSpace()) return ResourceExhausted(text);
  if (status.IsCorruption()) return DataLoss(text);
  return Unavailable(text);
}

rocksdb::Status RocksDatabase::OpenOnce(const std::string& dir, int64_t block_cache_bytes,
                                        Logger& logger) {
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  errors_ = std::make_shared<WriteErrors>(dir, logger);
  dir_ = dir;
  logger_ = &logger;
  std::error_code gone;
  std::filesystem::remove(StrCat(dir, kProbeName), gone);
  rocksdb::Status status = rocksdb::DB::Open(DatabaseOptions(logger, errors_, &log_damage_), dir,
                                             Families(block_cache_bytes), &handles, &db_);
  if (!status.ok()) return status;
  std::copy(handles.begin(), handles.end(), families_.begin());
  return status;
}

absl::Status RocksDatabase::CheckWritable() const { return errors_->Check(); }

void RocksDatabase::TryToResume() {
  {
    MutexLock lock(&resume_mutex_);
    const Nanoseconds now = Clock::Real().Now();
    if (resuming_ || now < next_resume_) return;
    resuming_ = true;
    next_resume_ = now + kResumePause;
  }
  if (HasRoom(StrCat(dir_, kProbeName))) {
    rocksdb::Status resumed = db_->Resume();
    if (resumed.ok()) errors_->Clear();
    logger_->Log(resumed.ok() ? LogLevel::kInfo : LogLevel::kError, "store_resumed",
                 {{"status", resumed.ToString()}});
  }
  MutexLock lock(&resume_mutex_);
  resuming_ = false;
}

absl::StatusOr<std::unique_ptr<RocksDatabase>> RocksDatabase::Open(const std::string& dir,
                                                                   int64_t block_cache_bytes,
                                                                   Logger& logger,
                                                                   const Clock& clock) {
  RETURN_IF_ERROR(MakeDirectories(dir));
  std::unique_ptr<RocksDatabase> database(new RocksDatabase());
  ASSIGN_OR_RETURN(database->lock_, Lock(dir));
  std::error_code error;
  if (std::filesystem::exists(StrCat(dir, kDamagedName), error)) {
    ASSIGN_OR_RETURN(database->set_aside_,
                     SetAside(dir, "a compaction met damaged files", logger, clock));
    RETURN_IF_ERROR(MakeDirectories(dir));
  }
  for (bool first : {true, false}) {
    rocksdb::Status opened = database->OpenOnce(dir, block_cache_bytes, logger);
    absl::Status status;
    bool damage = false;
    if (opened.ok()) {
      status = BringToOurSchema(*database, dir, logger);
      damage = status.code() == absl::StatusCode::kDataLoss;
    } else {
      status = ToStatus(opened, StrCat("opening the store ", Quote(dir)));
      damage = IsDamage(opened);
      // A newer server may have families of its own: its data are sound.
      if (damage) RETURN_IF_ERROR(RefuseNewerSchema(dir));
    }
    if (status.ok()) return database;
    if (!damage || !first) return status;
    database->Close();
    ASSIGN_OR_RETURN(database->set_aside_, SetAside(dir, Message(status), logger, clock));
  }
  return Internal("opening the store ", Quote(dir), ": no attempt was made");
}

RocksDatabase::~RocksDatabase() { Close(); }

void RocksDatabase::Close() {
  if (db_ == nullptr) return;
  for (rocksdb::ColumnFamilyHandle*& handle : families_) {
    db_->DestroyColumnFamilyHandle(handle).PermitUncheckedError();
    handle = nullptr;
  }
  db_->Close().PermitUncheckedError();
  delete db_;
  db_ = nullptr;
}

}  // namespace fusion
