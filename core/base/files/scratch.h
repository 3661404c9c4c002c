#pragma once

#include <string>
#include <string_view>

#include "core/base/files/file.h"
#include "core/base/files/unique_fd.h"

namespace fusion {

/// A directory of this process, removed at the end. A process that was killed leaves its own
/// behind: the next one to start in the same parent removes it. Who still lives is told by a lock
/// in each directory, which works across containers too.
class Scratch {
 public:
  /// `<parent>/<prefix>XXXXXX`; removes what the dead left under this prefix.
  static absl::StatusOr<Scratch> Create(const std::string& parent, std::string_view prefix);
  const std::string& path() const { return dir_.path(); }

 private:
  Scratch(TempDir dir, UniqueFd lock) : dir_(std::move(dir)), lock_(std::move(lock)) {}
  TempDir dir_;
  UniqueFd lock_;
};

}  // namespace fusion
