#include "client/fusionctl/option_words.h"

#include <sys/un.h>

#include <charconv>
#include <cmath>

namespace fusion {

std::string CheckNotEmpty(const std::string& word) {
  return word.empty() ? "expected a value, got \"\"" : "";
}

std::string CheckTolerance(const std::string& word) {
  double value = 0;
  auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  bool good = error == std::errc() && end == word.data() + word.size() && std::isfinite(value) &&
              value >= 0;
  return good ? "" : StrCat("expected a finite number >= 0, got ", QuoteShort(word));
}

std::string CheckSeed(const std::string& word) {
  uint64_t value = 0;
  auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  bool good = error == std::errc() && end == word.data() + word.size();
  return good ? "" : StrCat("expected 0..", UINT64_MAX, ", got ", QuoteShort(word));
}

std::string CheckAddress(const std::string& word) {
  constexpr size_t kMaxPath = sizeof(sockaddr_un::sun_path) - 1;
  std::string_view path = word;
  if (!path.starts_with("unix:")) return CheckNotEmpty(word);
  path.remove_prefix(5);
  if (path.starts_with("//")) path.remove_prefix(2);
  bool good = !path.empty() && path.size() <= kMaxPath;
  return good ? "" : StrCat("expected a socket path of 1..", kMaxPath, " bytes, got ", path.size());
}

void AddNameValue(CLI::App* app, const char* option, std::map<std::string, std::string>* out,
                  const char* what, const char* help) {
  app->add_option_function<std::vector<std::string>>(
         option,
         [option, out](const std::vector<std::string>& pairs) {
           for (const std::string& pair : pairs) {
             const size_t split = pair.find('=');
             const std::string name = pair.substr(0, split), value = pair.substr(split + 1);
             const auto [at, fresh] = out->emplace(name, value);
             if (fresh || at->second == value) continue;
             throw CLI::ValidationError(
                 option, StrCat("input ", QuoteShort(name), " is both ", QuoteShort(at->second),
                                " and ", QuoteShort(value)));
           }
         },
         help)
      ->allow_extra_args(false)
      ->check([what](const std::string& pair) {
        const size_t split = pair.find('=');
        const bool both = split != std::string::npos && split > 0 && split + 1 < pair.size();
        return both ? std::string() : StrCat("expected NAME=", what, ", got ", QuoteShort(pair));
      })
      ->type_name(StrCat("NAME=", what, " ..."));
}

}  // namespace fusion
