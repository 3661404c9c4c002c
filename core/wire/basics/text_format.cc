#include "core/wire/basics/text_format.h"

#include <google/protobuf/io/tokenizer.h>

#include <algorithm>

namespace fusion {
namespace {

class FirstError final : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, int column, const std::string& message) override {
    if (error_.has_value()) return;
    error_ = TextError{std::max(line, 0) + 1, std::max(column, 0) + 1, message};
  }
  const std::optional<TextError>& error() const { return error_; }

 private:
  std::optional<TextError> error_;
};

}  // namespace

std::optional<TextError> ReadTextFormat(std::string_view text, google::protobuf::Message* out,
                                        google::protobuf::TextFormat::ParseInfoTree* places) {
  FirstError errors;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&errors);
  parser.SetRecursionLimit(kMaxTextDepth);
  if (places != nullptr) parser.WriteLocationsTo(places);
  if (parser.ParseFromString(std::string(text), out)) return std::nullopt;
  return errors.error().value_or(TextError{.message = "no text of a " + out->GetTypeName()});
}

}  // namespace fusion
