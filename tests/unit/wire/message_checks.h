#pragma once

#include <google/protobuf/message.h>
#include <google/protobuf/text_format.h>

#include <string>
#include <vector>

#include "tests/support/field_count.h"

namespace fusion {

/// Fields of `message`, nested ones included, that hold no value or their default.
inline std::vector<std::string> UnsetFields(const google::protobuf::Message& message,
                                            const std::string& prefix = "") {
  std::vector<std::string> unset;
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  const google::protobuf::Descriptor& type = *message.GetDescriptor();
  auto descend = [&](const google::protobuf::Message& inner, const std::string& name) {
    for (std::string& field : UnsetFields(inner, name + ".")) unset.push_back(std::move(field));
  };
  for (int i = 0; i < type.field_count(); ++i) {
    const google::protobuf::FieldDescriptor* field = type.field(i);
    std::string name = prefix + field->name();
    bool is_message = field->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_MESSAGE;
    if (field->is_repeated()) {
      int size = reflection.FieldSize(message, field);
      if (size == 0) unset.push_back(name);
      if (is_message && size > 0) descend(reflection.GetRepeatedMessage(message, field, 0), name);
    } else if (!reflection.HasField(message, field)) {
      unset.push_back(name);
    } else if (is_message) {
      descend(reflection.GetMessage(message, field), name);
    }
  }
  return unset;
}

template <typename Message>
int WireFieldCount() {
  return Message::descriptor()->field_count();
}

inline std::string TextOf(const google::protobuf::Message& message) {
  std::string text;
  google::protobuf::TextFormat::PrintToString(message, &text);
  return text;
}

}  // namespace fusion
