#include "core/cache/rocks/write_errors.h"

#include <filesystem>
#include <system_error>

#include "core/base/files/file.h"
#include "core/cache/rocks/rocks_database.h"

namespace fusion {
namespace {

constexpr std::string_view kDamagedName = "/damaged";

}  // namespace

absl::Status WriteErrors::Check() const {
  MutexLock lock(&mutex_);
  return RocksDatabase::ToStatus(status_, "the store");
}

int64_t WriteErrors::changes() const {
  MutexLock lock(&mutex_);
  return changes_;
}

void WriteErrors::ClearUnlessChanged(int64_t seen) {
  MutexLock lock(&mutex_);
  if (changes_ == seen) status_ = rocksdb::Status::OK();
}

void WriteErrors::Set(const rocksdb::Status& status) {
  MutexLock lock(&mutex_);
  status_ = status;
  ++changes_;
}

bool WriteErrors::MetDamage(const std::string& dir) {
  std::error_code error;
  return std::filesystem::exists(StrCat(dir, kDamagedName), error);
}

void WriteErrors::OnBackgroundError(rocksdb::BackgroundErrorReason /*reason*/,
                                    rocksdb::Status* status) {
  logger_.Error("store_background_error", {{"status", status->ToString()}});
  if (status->IsCorruption()) {
    WriteFile(StrCat(dir_, kDamagedName), status->ToString()).IgnoreError();
  }
  Set(*status);
}

// Disables RocksDB's own recovery from a full disk. It would retry while the disk is full, and an
// attempt that fails at a new log file leaves an error that only a restart clears. See
// RocksDatabase::TryToResume.
void WriteErrors::OnErrorRecoveryBegin(rocksdb::BackgroundErrorReason /*reason*/,
                                       rocksdb::Status error, bool* automatic) {
  if (error.IsNoSpace()) *automatic = false;
}

void WriteErrors::OnErrorRecoveryEnd(const rocksdb::BackgroundErrorRecoveryInfo& info) {
  Set(info.new_bg_error);
}

}  // namespace fusion
