#pragma once

#include <google/protobuf/message.h>
#include <google/protobuf/text_format.h>

#include <optional>
#include <string>
#include <string_view>

namespace fusion {

/// Messages within messages that a text of ours may have. Protobuf's parser calls itself for each
/// of them: a file of nothing but opening braces would end the process. Rules and locks need six,
/// locks one more for each loop that lies in another one.
inline constexpr int kMaxTextDepth = 80;

/// The first thing that is wrong with a text. Line and column of people: they begin with 1.
struct TextError {
  int line = 1;
  int column = 1;
  std::string message;
};

/// Reads protobuf's text format, which nobody vouches for, into `out`; `places`, if given, learns
/// where every field stands. Nothing if it could be read.
std::optional<TextError> ReadTextFormat(
    std::string_view text, google::protobuf::Message* out,
    google::protobuf::TextFormat::ParseInfoTree* places = nullptr);

}  // namespace fusion
