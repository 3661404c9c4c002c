#pragma once

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "core/base/status.h"

namespace fusion {

/// Ends a fuzzed program with a message, which the fuzzer books as a finding.
inline void Require(bool condition, const char* what, const absl::Status& status = {}) {
  if (condition) return;
  std::fprintf(stderr, "%s: %s\n", what, status.ToString().c_str());
  std::abort();
}

/// What a parser may answer: a value, or a short message that blames the text, not us.
inline void RequireBlamesText(const absl::Status& status) {
  Require(!absl::IsInternal(status), "the parser blames itself", status);
  Require(status.message().size() < (1 << 13), "a message is long", status);
}

/// One seed of a corpus.
inline void WriteSeed(const std::string& corpus, const std::string& name, std::string_view bytes) {
  std::ofstream(std::filesystem::path(corpus) / name, std::ios::binary) << bytes;
}

/// What follows "--seeds=" as the only one of `argc` words: a directory to fill; else "".
inline std::string SeedsDirectory(int argc, char** argv) {
  constexpr std::string_view kSeeds = "--seeds=";
  const std::string_view word = argc == 2 ? argv[1] : "";
  return word.starts_with(kSeeds) ? std::string(word.substr(kSeeds.size())) : "";
}

}  // namespace fusion
