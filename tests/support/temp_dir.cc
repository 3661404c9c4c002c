#include "tests/support/temp_dir.h"

#include <cstdlib>
#include <fstream>

namespace fusion {

TempDir::TempDir() {
  std::string name = (std::filesystem::temp_directory_path() / "fusion_test_XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) std::abort();
  path_ = name;
}

TempDir::~TempDir() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string TempDir::Write(const std::string& name, const std::string& bytes) const {
  std::ofstream(path_ / name, std::ios::binary) << bytes;
  return path(name);
}

}  // namespace fusion
