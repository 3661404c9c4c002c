#include "client/fusionctl/args/user_words.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>

#include "core/base/text/text.h"

namespace fusion {
namespace {

struct Field {
  std::string_view name;  // without "options.", "hints." and "target."
  std::string_view option;
};
constexpr std::array kFields = {
    Field{"dim_bindings", "--bind"},
    Field{"dim_ranges", "--range"},
    Field{"batch_size", "--batch"},
    Field{"custom_ops", "--custom-ops"},
    Field{"opt_level", "--opt-level"},
    Field{"memory_pressure", "--memory-pressure"},
    Field{"compute_pressure", "--compute-pressure"},
    Field{"low_latency", "--low-latency"},
    Field{"shared_buffers", "--share"},
    Field{"bound_strides", "--strides"},
    Field{"allow_fused", "--allow-fused"},
    Field{"options.rules", "--rules"},
    Field{"options.numerics", "--numerics"},
    Field{"options.fusion", "--fusion"},
    Field{"options.frontier", "--frontier"},
    Field{"options.debug", "--debug"},
    Field{"options.guard", "--guard"},
    Field{"target.isa", "--isa"},
    Field{"target.name", "--target"},
    Field{"target.threads", "--threads"},
    Field{"target.measured", "--device-constants"},
    Field{"target.measured.isa", "--device-constants"},
};

bool IsOfField(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '-';
}

// The option for a field of the request; nullopt: `word` is not such a field.
std::optional<std::string_view> OptionOf(std::string_view word) {
  for (const Field& field : kFields) {
    if (word == field.name) return field.option;
    for (std::string_view in : {"options.", "hints."}) {
      if (word.starts_with(in) && word.substr(in.size()) == field.name) return field.option;
    }
  }
  return std::nullopt;
}

// The position behind the quoted text that begins at `begin`.
size_t EndOfQuoted(std::string_view text, size_t begin) {
  size_t i = begin + 1;
  while (i < text.size() && text[i] != '"') i += text[i] == '\\' ? 2 : 1;
  return std::min(i + 1, text.size());
}

}  // namespace

std::string InUserWords(std::string_view message, const Arguments& arguments) {
  constexpr std::string_view kLock = "lock.";
  std::string out;
  for (size_t i = 0; i < message.size();) {
    if (message[i] == '"') {
      const size_t end = EndOfQuoted(message, i);
      out += message.substr(i, end - i);
      i = end;
      continue;
    }
    if (!IsOfField(message[i])) {
      out += message[i++];
      continue;
    }
    size_t end = i;
    while (end < message.size() && IsOfField(message[end])) ++end;
    const std::string_view word = message.substr(i, end - i);
    i = end;
    if (word.starts_with(kLock) && word.size() > kLock.size() && !arguments.lock.empty()) {
      // Bodies and variants have decisions of their own, which are called as those of a lock.
      const bool within = out.find("--lock ") != std::string::npos;
      if (!within) StrAppend(&out, StrCat("--lock ", Quote(arguments.lock), ": "));
      out += word.substr(kLock.size());
      continue;
    }
    if (word == "lock" && !arguments.write_lock.empty() && message.substr(i, 1) == ":") {
      out += "--write-lock";
      continue;
    }
    const std::optional<std::string_view> option = OptionOf(word);
    out += option.value_or(word);
    // The entry of a repeated field follows its option.
    if (option.has_value() && message.substr(i, 2) == "[\"") {
      const size_t entry = EndOfQuoted(message, i + 1);
      StrAppend(&out, StrCat(" ", message.substr(i + 1, entry - i - 1)));
      i = entry + (message.substr(entry, 1) == "]" ? 1 : 0);
    }
  }
  return out;
}

}  // namespace fusion
