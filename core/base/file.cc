#include "core/base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "core/base/unique_fd.h"

namespace fusion {
namespace {

absl::Status SystemError(std::string_view what, const std::string& path, int error) {
  std::string text = StrCat(what, " ", Quote(path), ": ", std::generic_category().message(error));
  if (error == ENOENT) return NotFound(text);
  if (error == ENOSPC || error == EDQUOT || error == EFBIG) return ResourceExhausted(text);
  return Unavailable(text);
}

}  // namespace

absl::StatusOr<std::string> ReadFile(const std::string& path, int64_t max_bytes) {
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) return SystemError("opening", path, errno);
  struct stat info = {};
  if (fstat(fd.get(), &info) != 0) return SystemError("opening", path, errno);
  if (!S_ISREG(info.st_mode)) return Unavailable("opening ", Quote(path), ": not a regular file");
  if (info.st_size > max_bytes) {
    return ResourceExhausted("file ", Quote(path), " has ", info.st_size, " bytes; at most ",
                             max_bytes, " are read");
  }
  std::string bytes(static_cast<size_t>(info.st_size), '\0');
  size_t done = 0;
  while (done < bytes.size()) {
    ssize_t n = read(fd.get(), bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return SystemError("reading", path, errno);
    if (n == 0) break;
    done += static_cast<size_t>(n);
  }
  bytes.resize(done);
  return bytes;
}

absl::Status WriteFile(const std::string& path, std::string_view bytes, FileRights rights) {
  mode_t mode = rights == FileRights::kOwner ? 0600 : 0666;
  UniqueFd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode));
  if (!fd.valid()) return SystemError("creating", path, errno);
  while (!bytes.empty()) {
    ssize_t n = write(fd.get(), bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return SystemError("writing", path, errno);
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return absl::OkStatus();
}

absl::Status ReplaceFile(const std::string& path, std::string_view text) {
  const std::string fresh = path + ".new";
  RETURN_IF_ERROR(WriteFile(fresh, text));
  UniqueFd file(open(fresh.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.valid() && fsync(file.get()) == 0 && rename(fresh.c_str(), path.c_str()) == 0) {
    return absl::OkStatus();
  }
  return SystemError("replacing", path, errno);
}

absl::Status MakeDirectories(const std::string& path) {
  std::error_code error;
  bool created = std::filesystem::create_directories(path, error);
  if (error) return SystemError("creating directory", path, error.value());
  if (created && chmod(path.c_str(), 0700) != 0) return SystemError("creating", path, errno);
  return absl::OkStatus();
}

absl::Status RemoveTree(const std::string& path) {
  std::error_code error;
  std::filesystem::remove_all(path, error);
  return error ? SystemError("removing", path, error.value()) : absl::OkStatus();
}

std::string AbsolutePath(const std::string& path) {
  std::error_code error;
  std::filesystem::path absolute = std::filesystem::absolute(path, error);
  return error ? path : absolute.lexically_normal().string();
}

absl::StatusOr<TempDir> TempDir::Create(const std::string& parent, std::string_view prefix) {
  std::string name = StrCat(parent, "/", prefix, "XXXXXX");
  if (mkdtemp(name.data()) == nullptr) return SystemError("creating directory", name, errno);
  return TempDir(std::move(name));
}

TempDir::TempDir(TempDir&& other) noexcept : path_(std::move(other.path_)) { other.path_.clear(); }

TempDir& TempDir::operator=(TempDir&& other) noexcept {
  if (this != &other) {
    Remove();
    path_ = std::move(other.path_);
    other.path_.clear();
  }
  return *this;
}

TempDir::~TempDir() { Remove(); }

void TempDir::Remove() {
  // What cannot be removed stays for whoever clears the parent; there is nobody to tell here.
  if (!path_.empty()) RemoveTree(path_).IgnoreError();
}

}  // namespace fusion
