#include "core/base/files/scratch.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <filesystem>

namespace fusion {
namespace {

constexpr std::string_view kLock = "/owner.lock";

// Takes the lock of `dir`; invalid if another process holds it or it cannot be opened.
UniqueFd TakeLock(const std::string& dir, int flags) {
  UniqueFd fd(open(StrCat(dir, kLock).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags, 0600));
  if (fd.valid() && flock(fd.get(), LOCK_EX | LOCK_NB) != 0) fd.Reset();
  return fd;
}

void RemoveAbandoned(const std::string& parent, std::string_view prefix) {
  std::error_code error;
  for (std::filesystem::directory_iterator entry(parent, error), end; !error && entry != end;
       entry.increment(error)) {
    std::string path = entry->path().string();
    struct stat facts {};
    if (!entry->path().filename().string().starts_with(prefix) ||
        lstat(path.c_str(), &facts) != 0 || !S_ISDIR(facts.st_mode) || facts.st_uid != geteuid()) {
      continue;
    }
    UniqueFd lock = TakeLock(path, 0);
    if (lock.valid()) RemoveTree(path).IgnoreError();  // a leftover costs disk, nothing else
  }
}

}  // namespace

absl::StatusOr<Scratch> Scratch::Create(const std::string& parent, std::string_view prefix) {
  RemoveAbandoned(parent, prefix);
  // Another process that starts now may take our lock before we do, and remove the directory.
  for (int attempt = 0; attempt < 3; ++attempt) {
    ASSIGN_OR_RETURN(TempDir dir, TempDir::Create(parent, prefix));
    UniqueFd lock = TakeLock(dir.path(), O_CREAT);
    struct stat facts {};
    if (lock.valid() && fstat(lock.get(), &facts) == 0 && facts.st_nlink > 0) {
      return Scratch(std::move(dir), std::move(lock));
    }
  }
  return Unavailable("no directory of our own could be made in ", Quote(parent));
}

}  // namespace fusion
