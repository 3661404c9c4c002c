#pragma once

#include <google/protobuf/message.h>
#include <google/protobuf/text_format.h>

#include <optional>
#include <string>
#include <string_view>

namespace fusion {

/// Maximum nesting of messages in a text. Protobuf's parser is recursive: without a limit, a file
/// of opening braces would overflow the stack. Rules and locks need six; locks need one more per
/// nested loop.
inline constexpr int kMaxTextDepth = 80;

/// The first error of a text. Line and column start at 1.
struct TextError {
  int line = 1;
  int column = 1;
  std::string message;
};

/// Parses untrusted protobuf text into `out`; nullopt if it succeeds. `places`, unless null,
/// receives the position of every field.
std::optional<TextError> ReadTextFormat(
    std::string_view text, google::protobuf::Message* out,
    google::protobuf::TextFormat::ParseInfoTree* places = nullptr);

}  // namespace fusion
