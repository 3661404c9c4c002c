#include "client/fusionctl/args/option_words.h"

#include <sys/un.h>

#include <charconv>
#include <cmath>

#include "client/resilient_client.h"
#include "core/base/parse/host_port.h"
#include "core/base/text/utf8.h"
#include "core/base/utc_time.h"
#include "core/device/target.h"

namespace fusion {
namespace {

// Of one address.
std::string CheckOneAddress(const std::string& word) {
  constexpr size_t kMaxPath = sizeof(sockaddr_un::sun_path) - 1;
  std::string_view path = word;
  if (path.starts_with("unix:")) {
    path.remove_prefix(5);
    if (path.starts_with("//")) path.remove_prefix(2);
    bool good = !path.empty() && path.size() <= kMaxPath;
    return good ? ""
                : StrCat("expected a socket path of 1..", kMaxPath, " bytes, got ", path.size());
  }
  const absl::StatusOr<HostPort> parsed = ParseHostPort(word);
  if (parsed.ok() && parsed->port > 0) {
    const std::string ip = parsed->host.substr(0, parsed->host.find('%'));  // without its zone
    if (IsIpAddress(ip) || (IsHostName(parsed->host) && !word.starts_with('['))) return "";
  }
  return StrCat("expected HOST:PORT or unix:/PATH, got ", QuoteShort(word));
}

}  // namespace

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

std::string CheckIsa(const std::string& word) {
  if (ParseIsa(word).ok()) return "";
  return StrCat("expected one of ", StrJoin(kIsas, ", ", IsaName), "; got ", QuoteShort(word));
}

std::string CheckTime(const std::string& word) {
  return std::string(Message(ParseUtcTime(word).status()));
}

std::string CheckCallerName(const std::string& word, size_t most) {
  if (word.empty() || word.size() > most) {
    return StrCat("expected a name of 1..", most, " bytes, got ", word.size());
  }
  if (OneLine(word) == word) return "";
  return StrCat("expected a name of one line, got ", QuoteShort(word));
}

std::string CheckAddresses(const std::string& word) {
  std::string out;
  for (const std::string& address : SplitAddresses(word)) {
    if (out.empty()) out = CheckOneAddress(address);
  }
  return out;
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
