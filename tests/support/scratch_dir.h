#pragma once

#include <string>

#include "core/base/check.h"
#include "core/base/files/file.h"

namespace fusion {

/// A fresh directory that is removed with everything in it.
class ScratchDir {
 public:
  const std::string& path() const { return dir_.path(); }
  std::string path(const std::string& name) const { return StrCat(dir_.path(), "/", name); }

  /// Writes a file and returns its path.
  std::string Write(const std::string& name, const std::string& bytes) const {
    FUSION_CHECK(WriteFile(path(name), bytes).ok(), "a file of a test");
    return path(name);
  }

 private:
  TempDir dir_ = TempDir::Create("/tmp", "fusion-test-").value();
};

}  // namespace fusion
