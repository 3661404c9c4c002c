#include "core/cache/rocks/rocks_database.h"

#include <fcntl.h>
#include <rocksdb/cache.h>
#include <rocksdb/file_checksum.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/options.h>
#include <rocksdb/table.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <vector>

#include "core/base/files/file.h"
#include "core/base/files/server_state.h"
#include "core/base/files/unique_fd.h"
#include "core/cache/rocks/rocks_schema.h"
#include "core/cache/rocks/set_aside.h"

namespace fusion {
namespace {

constexpr std::array<const char*, kFamilyCount> kFamilyNames = {"default",      "plans",  "kernels",
                                                                "measurements", "models", "meta"};

// Values of at least this length are in blob files instead of tables, so compaction does not copy
// them.
constexpr uint64_t kMinBlobBytes = 4 << 10;
constexpr uint64_t kBlobFileBytes = 64 << 20;
// Shares of garbage in blob files at which collection is turned on and off. Collection copies the
// older half of all live bytes in each compaction, because keys are digests and each compaction
// meets all files. A store that only grows should not pay for that. Chosen: a store that is filled
// twelve times over occupies no more than with permanent collection (178 MiB for a limit of 64;
// redo: cache_test --gtest_filter=*PhysicalBound*).
constexpr double kCollectFrom = 0.25;
constexpr double kCollectTo = 0.1;
constexpr int64_t kWritesBetweenLooks = 16;
// Small, because recovery on a full disk needs space for about one memtable.
constexpr size_t kMemtableBytes = 16 << 20;
// Without this limit a rarely written family pins log files of up to four times all memtables.
constexpr uint64_t kMaxWalBytes = 64 << 20;
// A file written to test for free space. RocksDB ignores files with unknown names.
constexpr std::string_view kProbeName = "/room.probe";
constexpr Nanoseconds kResumePause = std::chrono::seconds(1);

// Forwards RocksDB's log lines. Without it RocksDB writes a LOG file in the store, and an assertion
// in Debian's library aborts the process if a line does not fit on a full disk.
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
    // This line is the only sign that a damaged record of the write-ahead log and all later ones
    // are skipped: Open succeeds nevertheless.
    const std::string_view text(line);
    if (text.find(": dropping ") != std::string_view::npos) ++*log_damage_;
    logger_.Log(level, "rocksdb", {{"line", StripSpace(line)}});
  }
  fusion::Logger& logger_;
  std::atomic<int64_t>* const log_damage_;
};

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
  // Without it only a read of the affected value detects a flipped byte in a blob file.
  options.file_checksum_gen_factory = rocksdb::GetFileChecksumGenCrc32cFactory();
  return options;
}

std::vector<rocksdb::ColumnFamilyDescriptor> Families(int64_t block_cache_bytes) {
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = MakeBlockCache(block_cache_bytes);
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
  kernels.enable_blob_garbage_collection = false;  // TendGarbage
  kernels.blob_garbage_collection_age_cutoff = 0.5;
  kernels.blob_garbage_collection_force_threshold = 0.5;

  // Measurements: a record per plan, and one per kernel, machine and tenant, rewritten with each
  // report. FIFO compaction keeps overwritten records, so one busy plan would displace all others.
  // RocksRecords limits them instead.
  std::vector<rocksdb::ColumnFamilyDescriptor> families;
  for (size_t i = 0; i < kFamilyCount; ++i) {
    auto family = static_cast<Family>(i);
    families.emplace_back(kFamilyNames[i], family == Family::kKernels ? kernels : plain);
  }
  return families;
}

// Tests by writing whether one memtable of each family fits on the disk. Free space as reported by
// the system may be reserved, or exceed a quota.
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

// True if this error of Open means that the files are damaged.
bool IsDamage(const rocksdb::Status& status) {
  // NotFound: CURRENT names an absent file. InvalidArgument: unknown families, or invalid options;
  // only the former is about the files.
  return status.IsCorruption() || status.IsNotFound() || status.IsPathNotFound() ||
         (status.IsInvalidArgument() &&
          status.ToString().find("olumn families") != std::string::npos);
}

}  // namespace

std::shared_ptr<rocksdb::Cache> MakeBlockCache(int64_t bytes) {
  return rocksdb::NewLRUCache(static_cast<size_t>(bytes), /*num_shard_bits=*/0);
}

absl::Status RocksDatabase::ToStatus(const rocksdb::Status& status, std::string_view context) {
  if (status.ok()) return absl::OkStatus();
  std::string text = StrCat(context, ": ", status.ToString());
  if (status.IsNoSpace()) return OfServerState(ResourceExhausted(text));
  if (status.IsCorruption()) return DataLoss(text);
  return Unavailable(text);
}

RocksDatabase::RocksDatabase(std::string dir, StoreLock lock, Logger& logger, const Clock& clock)
    : lock_(std::move(lock)), dir_(std::move(dir)), logger_(logger), clock_(clock) {}

rocksdb::Status RocksDatabase::OpenOnce(int64_t block_cache_bytes, bool read_only) {
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  errors_ = std::make_shared<WriteErrors>(dir_, logger_);
  read_only_ = read_only;
  const rocksdb::DBOptions options = DatabaseOptions(logger_, errors_, &log_damage_);
  const auto families = Families(block_cache_bytes);
  if (!read_only) {
    std::error_code gone;
    std::filesystem::remove(StrCat(dir_, kProbeName), gone);
  }
  rocksdb::Status status =
      read_only ? rocksdb::DB::OpenForReadOnly(options, dir_, families, &handles, &db_)
                : rocksdb::DB::Open(options, dir_, families, &handles, &db_);
  if (!status.ok()) return status;
  std::copy(handles.begin(), handles.end(), families_.begin());
  return status;
}

absl::Status RocksDatabase::CheckWritable() const {
  if (read_only_) return FailedPrecondition("the store was opened to be read only");
  return errors_->Check();
}

int64_t RocksDatabase::CachedBytes() const {
  uint64_t blocks = 0;  // the cache is shared by all families
  db_->GetIntProperty(rocksdb::DB::Properties::kBlockCacheUsage, &blocks);
  uint64_t unwritten = 0;
  db_->GetAggregatedIntProperty(rocksdb::DB::Properties::kCurSizeAllMemTables, &unwritten);
  return static_cast<int64_t>(blocks + unwritten);
}

int64_t RocksDatabase::LiveBytes(Family of_family) const {
  auto property = [&](const std::string& name) {
    uint64_t value = 0;
    db_->GetIntProperty(family(of_family), name, &value);
    return static_cast<int64_t>(value);
  };
  return property(rocksdb::DB::Properties::kLiveSstFilesSize) +
         property(rocksdb::DB::Properties::kLiveBlobFileSize) -
         property(rocksdb::DB::Properties::kLiveBlobFileGarbageSize);
}

void RocksDatabase::TendGarbage() {
  if (writes_++ % kWritesBetweenLooks != 0) return;
  rocksdb::ColumnFamilyHandle* kernels = family(Family::kKernels);
  uint64_t all = 0;
  uint64_t garbage = 0;
  if (!db_->GetIntProperty(kernels, rocksdb::DB::Properties::kLiveBlobFileSize, &all) ||
      !db_->GetIntProperty(kernels, rocksdb::DB::Properties::kLiveBlobFileGarbageSize, &garbage)) {
    return;
  }
  // Read each time: a change may be in effect although it could not be saved on a full disk.
  const bool collects = db_->GetOptions(kernels).enable_blob_garbage_collection;
  const double from = collects ? kCollectTo : kCollectFrom;
  const bool wanted = static_cast<double>(garbage) > from * static_cast<double>(all);
  if (wanted == collects) return;
  const rocksdb::Status set =
      db_->SetOptions(kernels, {{"enable_blob_garbage_collection", wanted ? "true" : "false"}});
  if (!set.ok()) logger_.Warning("store_garbage_not_tended", {{"reason", set.ToString()}});
}

void RocksDatabase::TryToResume() {
  if (read_only_) return;
  {
    MutexLock lock(&resume_mutex_);
    const Nanoseconds now = clock_.Now();
    if (resuming_ || now < next_resume_) return;
    resuming_ = true;
    next_resume_ = now + kResumePause;
  }
  // An error that comes after Resume must not be cleared.
  const int64_t seen = errors_->changes();
  if (HasRoom(StrCat(dir_, kProbeName))) {
    rocksdb::Status resumed = db_->Resume();
    if (resumed.ok()) errors_->ClearUnlessChanged(seen);
    logger_.Log(resumed.ok() ? LogLevel::kInfo : LogLevel::kError, "store_resumed",
                {{"status", resumed.ToString()}});
  }
  MutexLock lock(&resume_mutex_);
  resuming_ = false;
}

absl::StatusOr<std::unique_ptr<RocksDatabase>> RocksDatabase::Open(const std::string& dir,
                                                                   int64_t block_cache_bytes,
                                                                   StoreLock lock, Logger& logger,
                                                                   const Clock& clock) {
  std::unique_ptr<RocksDatabase> database(new RocksDatabase(dir, std::move(lock), logger, clock));
  if (WriteErrors::MetDamage(dir)) {
    ASSIGN_OR_RETURN(database->set_aside_,
                     SetAside(dir, "a compaction met damaged files", logger, clock));
    RETURN_IF_ERROR(MakeDirectories(dir));
  }
  for (bool first : {true, false}) {
    rocksdb::Status opened = database->OpenOnce(block_cache_bytes, /*read_only=*/false);
    absl::Status status;
    bool damage = false;
    if (opened.ok()) {
      status = BringToOurSchema(*database, dir, logger);
      damage = status.code() == absl::StatusCode::kDataLoss;
    } else {
      status = ToStatus(opened, StrCat("opening the store ", Quote(dir)));
      damage = IsDamage(opened);
      // A newer server may have more families. Its data are not damaged.
      if (damage) RETURN_IF_ERROR(RefuseNewerSchema(dir));
    }
    if (status.ok()) return database;
    if (!damage || !first) return status;
    database->Close();
    ASSIGN_OR_RETURN(database->set_aside_, SetAside(dir, Message(status), logger, clock));
  }
  return Internal("opening the store ", Quote(dir), ": no attempt was made");
}

absl::StatusOr<std::unique_ptr<RocksDatabase>> RocksDatabase::OpenToRead(const std::string& dir,
                                                                         int64_t block_cache_bytes,
                                                                         StoreLock lock,
                                                                         Logger& logger,
                                                                         const Clock& clock) {
  std::unique_ptr<RocksDatabase> database(new RocksDatabase(dir, std::move(lock), logger, clock));
  RETURN_IF_ERROR(ToStatus(database->OpenOnce(block_cache_bytes, /*read_only=*/true),
                           StrCat("opening the store ", Quote(dir), " to read it")));
  RETURN_IF_ERROR(CheckOurSchema(*database, dir));
  return database;
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
