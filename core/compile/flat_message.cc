#include "core/compile/flat_message.h"

#include <limits>
#include <nlohmann/json.hpp>

namespace fusion {

// Takes the events of nlohmann's MessagePack reader. Returning false ends the reading at once: a
// nested array is refused before it is entered.
class FlatMessageReader final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit FlatMessageReader(FlatMessage* message) : message_(*message) {}
  const std::string& error() const { return error_; }

  bool null() override { return Refuse("null"); }
  bool boolean(bool value) override { return Take(value); }
  bool number_integer(number_integer_t value) override { return Take(int64_t{value}); }
  bool number_unsigned(number_unsigned_t value) override {
    if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      return Refuse("an integer above 2^63");
    }
    return Take(static_cast<int64_t>(value));
  }
  bool number_float(number_float_t value, const string_t& /*text*/) override { return Take(value); }
  bool string(string_t& value) override { return Take(std::move(value)); }
  bool binary(binary_t& value) override { return Take(std::string(value.begin(), value.end())); }
  bool start_object(std::size_t /*elements*/) override {
    if (open_) return Refuse("a map within the map");
    open_ = true;
    return true;
  }
  bool key(string_t& name) override {
    name_ = std::move(name);
    return message_.fields_.contains(name_) ? Refuse("field " + Quote(name_) + " twice") : true;
  }
  bool end_object() override { return true; }
  bool start_array(std::size_t /*elements*/) override { return Refuse("an array"); }
  bool end_array() override { return false; }
  bool parse_error(std::size_t position, const std::string& /*token*/,
                   const nlohmann::detail::exception& /*error*/) override {
    return Refuse(StrCat("no MessagePack at byte ", position));
  }

 private:
  template <typename T>
  bool Take(T value) {
    if (!open_) return Refuse("a scalar instead of a map");
    message_.fields_[name_] = std::move(value);
    return true;
  }
  bool Refuse(std::string what) {
    if (error_.empty()) error_ = std::move(what);
    return false;
  }

  FlatMessage& message_;
  bool open_ = false;
  std::string name_;
  std::string error_;
};

template <typename T>
absl::StatusOr<T> FlatMessage::Get(const std::string& name, std::string_view type) const {
  auto it = fields_.find(name);
  if (it == fields_.end()) return InvalidArgument("message has no field ", Quote(name));
  if (const T* value = std::get_if<T>(&it->second)) return *value;
  return InvalidArgument("message field ", Quote(name), " is not ", type);
}

absl::StatusOr<std::string> FlatMessage::Text(const std::string& name) const {
  return Get<std::string>(name, "a text");
}
absl::StatusOr<int64_t> FlatMessage::Int(const std::string& name) const {
  return Get<int64_t>(name, "an integer");
}
absl::StatusOr<double> FlatMessage::Number(const std::string& name) const {
  return Get<double>(name, "a number");
}
absl::StatusOr<bool> FlatMessage::Flag(const std::string& name) const {
  return Get<bool>(name, "a flag");
}

std::string FlatMessage::Encode() const {
  nlohmann::json map = nlohmann::json::object();
  for (const auto& [name, field] : fields_) {
    if (const auto* text = std::get_if<std::string>(&field)) {
      map[name] = nlohmann::json::binary({text->begin(), text->end()});
    } else if (const auto* flag = std::get_if<bool>(&field)) {
      map[name] = *flag;
    } else if (const auto* integer = std::get_if<int64_t>(&field)) {
      map[name] = *integer;
    } else {
      map[name] = std::get<double>(field);
    }
  }
  std::string bytes;
  nlohmann::json::to_msgpack(map, bytes);
  return bytes;
}

absl::StatusOr<FlatMessage> FlatMessage::Decode(std::string_view bytes) {
  FlatMessage message;
  FlatMessageReader reader(&message);
  bool read = nlohmann::json::sax_parse(bytes.begin(), bytes.end(), &reader,
                                        nlohmann::json::input_format_t::msgpack, /*strict=*/true);
  if (!read || !reader.error().empty()) {
    return InvalidArgument("message of ", bytes.size(), " bytes: ", reader.error());
  }
  return message;
}

}  // namespace fusion
