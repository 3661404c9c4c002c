#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <string>

#include "core/base/text/text.h"

namespace fusion {

// Checks of values on the command line, for CLI11: the error text; empty if the value is valid.

std::string CheckNotEmpty(const std::string& word);
/// A finite number >= 0.
std::string CheckTolerance(const std::string& word);
/// 0..2^64 - 1.
std::string CheckSeed(const std::string& word);
/// The name of an instruction set (IsaName).
std::string CheckIsa(const std::string& word);
/// A time that ParseUtcTime accepts.
std::string CheckTime(const std::string& word);
/// A name in the file of --tokens: 1..`most` bytes of UTF-8 in one line.
std::string CheckCallerName(const std::string& word, size_t most);
/// HOST:PORT or unix:/PATH, or several of them separated by commas.
std::string CheckAddresses(const std::string& word);

template <typename T>
using Choices = std::map<std::string, T>;

/// Adds an option that accepts the keys of `choices` and stores the value in *field. `hint`:
/// appended to the error for other words.
template <typename T>
CLI::Option* AddChoice(CLI::App* app, const std::string& name, T* field, const Choices<T>& choices,
                       const std::string& help, const std::string& hint = "") {
  auto join = [&choices](std::string_view separator) {
    return StrJoin(choices, separator, [](const auto& choice) { return choice.first; });
  };
  std::string words = join(", ");
  return app
      ->add_option_function<std::string>(
          name, [field, choices](const std::string& word) { *field = choices.at(word); }, help)
      ->check([choices, words, hint](const std::string& word) {
        if (choices.count(word) > 0) return std::string();
        return StrCat("expected one of ", words, "; got ", QuoteShort(word), hint);
      })
      ->type_name(StrCat("{", join(","), "}"));
}

/// Adds an option that takes any number of pairs NAME=`what`; an error if a name has two values.
void AddNameValue(CLI::App* app, const char* option, std::map<std::string, std::string>* out,
                  const char* what, const char* help);

}  // namespace fusion
