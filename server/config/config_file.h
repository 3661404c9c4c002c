#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace fusion {

/// Where the names of a config file stand, one 'name = value' a line. Lines begin with 1.
class ConfigLines {
 public:
  ConfigLines() = default;
  /// `text`: of the file `path`.
  ConfigLines(std::string path, std::string_view text);

  /// "FILE:LINE: " of the n-th place of `name`, the last if there are fewer; empty if it is not in
  /// the file.
  std::string Place(std::string_view name, size_t nth = 0) const;

  /// `message` with the place in front of it, if it begins with "--NAME:" and NAME is in the file
  /// and not in `given`, the words of the command line, which go before the file.
  std::string Locate(std::string_view message, const std::vector<std::string>& given) const;

 private:
  std::string path_;
  std::map<std::string, std::vector<int>, std::less<>> lines_;
};

}  // namespace fusion
