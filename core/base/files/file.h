#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/files/byte_source.h"
#include "core/base/files/unique_fd.h"
#include "core/base/status.h"

namespace fusion {

/// A regular file, open for reading.
struct RegularFile {
  UniqueFd fd;
  int64_t bytes = 0;  // its length when it was opened
};
/// Opens a regular file. Does not block. Errors, whose messages do not name the path:
///   InvalidArgument  a directory, a pipe, a socket or a device ("is a pipe, not a regular file")
///   NotFound         no such file
///   Unavailable      any other system error; also a symbolic link if `follow_links` is false
absl::StatusOr<RegularFile> OpenRegularFile(const std::string& path, bool follow_links = true);

/// Reads `file` from its current offset. `file` must outlive the source. Errors are Unavailable.
ByteSource BytesOf(const RegularFile& file);

/// The bytes of a regular file. Fails as OpenRegularFile, and with InvalidArgument if the file is
/// longer than `max_bytes`. Messages name the path.
absl::StatusOr<std::string> ReadFile(const std::string& path, int64_t max_bytes);

/// OK if a new file may replace `path`: it does not exist, is a regular file, or cannot be
/// examined. Else InvalidArgument, with the message of OpenRegularFile, which does not name the
/// path.
absl::Status CheckReplacesFile(const std::string& path);
/// OK if bytes may be written to `path`: CheckReplacesFile is OK, or it is a character device (a
/// terminal, /dev/null) or a descriptor of this process (/dev/stdout, /dev/fd/N). Else
/// InvalidArgument; among others for a named pipe, because opening it blocks until it has a reader.
absl::Status CheckWritesFile(const std::string& path);

/// Mode of a new file: 0600 (only its owner), or 0666 less the umask.
enum class FileRights : uint8_t { kOwner, kUmask };

/// Creates a file or overwrites its content; an existing file keeps its mode. Not atomic, not
/// synced. Errors, which name the path:
///   InvalidArgument    as CheckWritesFile
///   NotFound           the directory does not exist
///   ResourceExhausted  the disk is full, or a quota or file size limit is reached
///   Unavailable        any other system error
/// A full or read-only file system also sets the payload kUnwritable.
absl::Status WriteFile(const std::string& path, std::string_view bytes,
                       FileRights rights = FileRights::kOwner);

/// Creates or atomically replaces a file that only its owner may read: writes `<path>.new`, syncs
/// it and renames it. After a crash or a full disk `path` is the old or the new file. Fails as
/// WriteFile.
absl::Status ReplaceFile(const std::string& path, std::string_view text);

/// Creates the directory `path` (mode 0700) and its missing parents (mode by umask). OK if it
/// exists. Errors as WriteFile.
absl::Status MakeDirectories(const std::string& path);

/// Deletes `path` and everything below it. OK if it does not exist. Also deletes directories whose
/// modes deny their owner access. Uses at most three descriptors, whatever the depth. Follows no
/// links. Errors as WriteFile; then a part may be deleted.
absl::Status RemoveTree(const std::string& path);

/// `path` made absolute by the current directory, without "." and "..". Does not read the file
/// system, so links are not resolved.
std::string AbsolutePath(const std::string& path);

/// A new directory that only this user may enter. The destructor deletes it with its content.
/// Movable; not thread-safe.
class TempDir {
 public:
  /// Creates `<parent>/<prefix>XXXXXX`. NotFound if `parent` does not exist; other errors as
  /// WriteFile.
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
