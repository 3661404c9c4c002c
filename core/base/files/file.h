#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/files/byte_source.h"
#include "core/base/files/unique_fd.h"
#include "core/base/status.h"

namespace fusion {

/// A regular file that is open for reading.
struct RegularFile {
  UniqueFd fd;
  int64_t bytes = 0;  // its length when it was opened
};
/// Never waits, and never opens what has no end: InvalidArgument for a directory, a pipe, a socket
/// or a device ("is a pipe, not a regular file"). NotFound if nothing is there, Unavailable for
/// every other refusal of the system, also for a link with `follow_links` off. The message does not
/// name the path.
absl::StatusOr<RegularFile> OpenRegularFile(const std::string& path, bool follow_links = true);

/// From where the file stands. `file` must outlive the source. Errors are Unavailable.
ByteSource BytesOf(const RegularFile& file);

/// The bytes of a regular file. Errors name the path: those of OpenRegularFile, and InvalidArgument
/// if it is longer than `max_bytes`.
absl::StatusOr<std::string> ReadFile(const std::string& path, int64_t max_bytes);

/// OK if a new file may take the place of `path`: nothing is there, or a regular file. Else
/// InvalidArgument as that of OpenRegularFile. The message does not name the path.
absl::Status CheckReplacesFile(const std::string& path);
/// OK if bytes may be written to `path` as it is: as above, or it is a character device (a
/// terminal, /dev/null) or a descriptor of this process (/dev/stdout, /dev/fd/N). Else
/// InvalidArgument: opening a named pipe waits for a reader.
absl::Status CheckWritesFile(const std::string& path);

/// Who may read a new file besides its owner: nobody, or whoever the umask lets.
enum class FileRights : uint8_t { kOwner, kUmask };

/// Creates or replaces a file. Not atomic, not synced. ResourceExhausted: no room; else as
/// ReadFile, with InvalidArgument as CheckWritesFile.
absl::Status WriteFile(const std::string& path, std::string_view bytes,
                       FileRights rights = FileRights::kOwner);

/// Creates or replaces a file that only its owner may read, so that a crash or a full disk leaves
/// the old one or the new one: writes `<path>.new`, syncs it and renames it. Fails as WriteFile.
absl::Status ReplaceFile(const std::string& path, std::string_view text);

/// Creates `path` and its parents (mode 0700); fine if it exists.
absl::Status MakeDirectories(const std::string& path);

/// Deletes `path` with everything below it; fine if it does not exist. Also directories that deny
/// their owner everything, and however deep they are in each other. Follows no links.
absl::Status RemoveTree(const std::string& path);

/// `path`, made absolute by the current directory; nothing is looked up.
std::string AbsolutePath(const std::string& path);

/// A fresh directory that only this user may enter, deleted with its content by the destructor.
/// Movable; not thread-safe.
class TempDir {
 public:
  /// `<parent>/<prefix>XXXXXX`; `parent` must exist.
  static absl::StatusOr<TempDir> Create(const std::string& parent, std::string_view prefix);

  TempDir(TempDir&& other) noexcept;
  TempDir& operator=(TempDir&& other) noexcept;
  ~TempDir();

  const std::string& path() const { return path_; }

 private:
  explicit TempDir(std::string path) : path_(std::move(path)) {}
  void Remove();
  std::string path_;
};

}  // namespace fusion
