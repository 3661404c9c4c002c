#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace fusion {

/// Line numbers of the names in a config file, which has one 'name = value' per line. The first
/// line is 1.
class ConfigLines {
 public:
  ConfigLines() = default;
  /// `text`: the contents of the file `path`.
  ConfigLines(std::string path, std::string_view text);

  /// "FILE:LINE: " of the nth occurrence of `name` (from 0), or of the last one if there are fewer;
  /// empty if there is none.
  std::string Place(std::string_view name, size_t nth = 0) const;

  /// Puts Place(NAME) before a message that begins with "--NAME:" or "--NAME ", if NAME is in the
  /// file and not in `given`, the arguments of the command line, which override the file. Returns
  /// other messages unchanged.
  std::string Locate(std::string_view message, const std::vector<std::string>& given) const;

 private:
  std::string path_;
  std::map<std::string, std::vector<int>, std::less<>> lines_;
};

}  // namespace fusion
