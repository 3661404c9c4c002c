#pragma once

#include <string>
#include <string_view>

#include "core/base/files/file.h"
#include "core/base/files/unique_fd.h"

namespace fusion {

/// A directory of this process. The destructor removes it with its content. A killed process leaves
/// its directory behind; the next Create with the same parent and prefix removes it. A file lock in
/// each directory shows whether its process is alive, also across containers.
class Scratch {
 public:
  /// Creates `<parent>/<prefix>XXXXXX`, and removes abandoned directories of this user with the
  /// same prefix. Fails as TempDir::Create; Unavailable if the lock cannot be taken.
  static absl::StatusOr<Scratch> Create(const std::string& parent, std::string_view prefix);
  const std::string& path() const { return dir_.path(); }

 private:
  Scratch(TempDir dir, UniqueFd lock) : dir_(std::move(dir)), lock_(std::move(lock)) {}
  TempDir dir_;
  UniqueFd lock_;
};

}  // namespace fusion
