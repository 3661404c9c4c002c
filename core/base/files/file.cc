#include "core/base/files/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>
#include <vector>

#include "core/base/files/unwritable.h"

namespace fusion {
namespace {

absl::Status SystemError(std::string_view what, const std::string& path, int error) {
  std::string text = StrCat(what, " ", Quote(path), ": ", std::generic_category().message(error));
  if (error == ENOENT) return NotFound(text);
  if (error == EFBIG) return ResourceExhausted(text);
  const bool full = error == ENOSPC || error == EDQUOT;
  return WithWriteError(full ? ResourceExhausted(text) : Unavailable(text), error);
}

absl::Status NotRegular(mode_t mode) {
  std::string_view kind = "something else";
  if (S_ISDIR(mode)) kind = "a directory";
  if (S_ISFIFO(mode)) kind = "a pipe";
  if (S_ISSOCK(mode)) kind = "a socket";
  if (S_ISCHR(mode) || S_ISBLK(mode)) kind = "a device";
  return InvalidArgument("is ", kind, ", not a regular file");
}

// The descriptor of this process that a path names: /dev/stdout, /dev/fd/3.
std::optional<int> OwnDescriptor(const std::string& path) {
  if (path == "/dev/stdout") return STDOUT_FILENO;
  if (path == "/dev/stderr") return STDERR_FILENO;
  for (const std::string_view folder : {"/dev/fd/", "/proc/self/fd/"}) {
    if (!path.starts_with(folder)) continue;
    const char* const end = path.data() + path.size();
    int number = -1;
    const auto [stop, error] = std::from_chars(path.data() + folder.size(), end, number);
    if (error == std::errc() && stop == end && number >= 0) return number;
  }
  return std::nullopt;
}

// Lets the owner empty and move a directory. With this flag the C library does not follow links. On
// failure the next operation fails too and reports the reason.
void Unlock(int parent, const std::string& name) {
  fchmodat(parent, name.c_str(), S_IRWXU, AT_SYMLINK_NOFOLLOW);
}

UniqueFd OpenDirectory(int parent, const std::string& name) {
  return UniqueFd(openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

std::vector<std::string> NamesIn(int dir) {
  std::vector<std::string> names;
  UniqueFd again = OpenDirectory(dir, ".");  // has its own read position
  if (!again.valid()) return names;
  std::unique_ptr<DIR, int (*)(DIR*)> entries(fdopendir(again.get()), closedir);
  if (entries == nullptr) return names;
  again.Release();
  // A stream of its own may be read by any thread.
  while (const dirent* entry = readdir(entries.get())) {  // NOLINT(concurrency-mt-unsafe)
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  return names;
}

// Empties a directory, whatever the modes and the depth of the directories below it, with three
// descriptors: moves subdirectories of its directories up into it, and removes them there later.
class Emptying {
 public:
  explicit Emptying(int root) : root_(root) {}

  // 0, or the errno of an entry that could not be removed.
  int Run() {
    for (;;) {  // ends: every directory is moved at most once
      const int64_t before = lifted_;
      error_ = 0;
      for (const std::string& name : NamesIn(root_)) {
        if (unlinkat(root_, name.c_str(), 0) == 0) continue;
        if (errno == EISDIR) {
          RemoveDirectory(name);
        } else {
          error_ = errno;
        }
      }
      if (lifted_ == before) return error_;
    }
  }

 private:
  void RemoveDirectory(const std::string& name) {
    Unlock(root_, name);
    UniqueFd dir = OpenDirectory(root_, name);
    int error = dir.valid() ? 0 : errno;
    for (const std::string& child : dir.valid() ? NamesIn(dir.get()) : std::vector<std::string>()) {
      if (unlinkat(dir.get(), child.c_str(), 0) == 0) continue;
      const bool lifted = errno == EISDIR && Lift(dir.get(), child);
      if (!lifted) error = errno;
    }
    if (unlinkat(root_, name.c_str(), AT_REMOVEDIR) != 0) error_ = error != 0 ? error : errno;
  }

  bool Lift(int dir, const std::string& name) {
    Unlock(dir, name);
    if (unlinkat(dir, name.c_str(), AT_REMOVEDIR) == 0) return true;
    std::string fresh;
    do {
      fresh = StrCat("lifted-", ++tried_);
    } while (faccessat(root_, fresh.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0);
    if (renameat(dir, name.c_str(), root_, fresh.c_str()) != 0) return false;
    ++lifted_;
    return true;
  }

  const int root_;
  int64_t lifted_ = 0;
  int64_t tried_ = 0;
  int error_ = 0;
};

}  // namespace

absl::StatusOr<RegularFile> OpenRegularFile(const std::string& path, bool follow_links) {
  // Checked before opening: opening a device or a pipe may have effects.
  struct stat info = {};
  if (stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) return NotRegular(info.st_mode);
  const int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | (follow_links ? 0 : O_NOFOLLOW);
  RegularFile file{UniqueFd(open(path.c_str(), flags))};
  if (!file.fd.valid() || fstat(file.fd.get(), &info) != 0) {
    const std::string why = std::generic_category().message(errno);
    const bool missing = errno == ENOENT || errno == ENOTDIR;
    return missing ? NotFound("cannot be opened: ", why) : Unavailable("cannot be opened: ", why);
  }
  if (!S_ISREG(info.st_mode)) return NotRegular(info.st_mode);  // replaced since the first check
  file.bytes = info.st_size;
  return file;
}

ByteSource BytesOf(const RegularFile& file) {
  return {.read = [fd = file.fd.get()](char* to, size_t most) -> absl::StatusOr<size_t> {
            for (;;) {
              const ssize_t n = read(fd, to, most);
              if (n >= 0) return static_cast<size_t>(n);
              if (errno == EINTR) continue;
              return Unavailable("cannot be read: ", std::generic_category().message(errno));
            }
          },
          .bytes = file.bytes};
}

absl::StatusOr<std::string> ReadFile(const std::string& path, int64_t max_bytes) {
  const std::string what = StrCat("file ", Quote(path));
  absl::StatusOr<RegularFile> file = OpenRegularFile(path);
  if (!file.ok()) return Annotate(file.status(), what);
  if (file->bytes > max_bytes) {
    return InvalidArgument(what, " has ", file->bytes, " bytes; at most ", max_bytes, " are read");
  }
  std::string bytes(static_cast<size_t>(file->bytes), '\0');
  absl::StatusOr<size_t> done = BytesOf(*file).ReadFully(bytes.data(), bytes.size());
  if (!done.ok()) return Annotate(done.status(), what);
  bytes.resize(*done);
  return bytes;
}

absl::Status CheckReplacesFile(const std::string& path) {
  struct stat info = {};
  const bool other = stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode);
  return other ? NotRegular(info.st_mode) : absl::OkStatus();
}

absl::Status CheckWritesFile(const std::string& path) {
  struct stat info = {};
  const bool device = stat(path.c_str(), &info) == 0 && S_ISCHR(info.st_mode);
  return device || OwnDescriptor(path) ? absl::OkStatus() : CheckReplacesFile(path);
}

absl::Status WriteFile(const std::string& path, std::string_view bytes, FileRights rights) {
  mode_t mode = rights == FileRights::kOwner ? 0600 : 0666;
  if (absl::Status other = CheckWritesFile(path); !other.ok()) {
    return Annotate(other, StrCat("file ", Quote(path)));
  }
  // O_NONBLOCK: does not block if a pipe has replaced the file since the check.
  const int flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  // Writes to an own descriptor at its current offset: /dev/stdout may be a file.
  const std::optional<int> own = OwnDescriptor(path);
  UniqueFd fd(own ? fcntl(*own, F_DUPFD_CLOEXEC, 0) : open(path.c_str(), flags, mode));
  if (!fd.valid()) return SystemError("creating", path, errno);
  if (!own) fcntl(fd.get(), F_SETFL, 0);  // block from here on, for slow terminals
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
  // One that is left over may have another mode.
  if (unlink(fresh.c_str()) != 0 && errno != ENOENT) return SystemError("replacing", path, errno);
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
  // Not std::filesystem::remove_all: it fails for directories that deny their owner access, and
  // holds a descriptor per level.
  if (unlink(path.c_str()) == 0 || errno == ENOENT) return absl::OkStatus();
  if (errno != EISDIR) return SystemError("removing", path, errno);
  Unlock(AT_FDCWD, path);
  UniqueFd root = OpenDirectory(AT_FDCWD, path);
  if (!root.valid()) return SystemError("removing", path, errno);
  const int stays = Emptying(root.get()).Run();
  if (stays == 0 && rmdir(path.c_str()) == 0) return absl::OkStatus();
  return SystemError("removing", path, stays != 0 ? stays : errno);
}

std::string AbsolutePath(const std::string& path) {
  std::error_code error;
  std::filesystem::path absolute = std::filesystem::absolute(path, error);
  return error ? path : absolute.lexically_normal().string();
}

absl::StatusOr<TempDir> TempDir::Create(const std::string& parent, std::string_view prefix) {
  std::string name = StrCat(parent, "/", prefix, "XXXXXX");
  if (mkdtemp(name.data()) == nullptr) return SystemError("creating a directory in", parent, errno);
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
  // A destructor cannot report errors: what cannot be removed stays.
  if (!path_.empty()) RemoveTree(path_).IgnoreError();
}

}  // namespace fusion
