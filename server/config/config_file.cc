#include "server/config/config_file.h"

#include <algorithm>

#include "core/base/text/text.h"

namespace fusion {

ConfigLines::ConfigLines(std::string path, std::string_view text) : path_(std::move(path)) {
  int number = 0;
  for (std::string_view line : StrSplit(text, '\n')) {
    ++number;
    std::string_view name = StripSpace(line.substr(0, line.find('=')));
    if (name.empty() || name[0] == '#' || name[0] == ';' || name[0] == '[') continue;
    lines_[std::string(name)].push_back(number);
  }
}

std::string ConfigLines::Place(std::string_view name, size_t nth) const {
  auto found = lines_.find(name);
  if (found == lines_.end()) return "";
  return StrCat(path_, ":", found->second[std::min(nth, found->second.size() - 1)], ": ");
}

std::string ConfigLines::Locate(std::string_view message,
                                const std::vector<std::string>& given) const {
  if (!message.starts_with("--")) return std::string(message);
  const std::string_view flag = message.substr(0, message.find_first_of(": "));
  for (const std::string& word : given) {
    if (word == flag || word.starts_with(StrCat(flag, "="))) return std::string(message);
  }
  return Place(flag.substr(2)) + std::string(message);
}

}  // namespace fusion
