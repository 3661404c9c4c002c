#pragma once

#include <string_view>

#include "core/base/status.h"

namespace google::protobuf {
class Descriptor;
}  // namespace google::protobuf

namespace fusion {

/// Counts the objects that a serialised message of a stranger would make, before it is parsed.
/// InvalidArgument: it is no message of `type`; ResourceExhausted above kMaxRequestObjects.
absl::Status CheckObjects(const google::protobuf::Descriptor& type, std::string_view bytes,
                          std::string_view what);

/// Parses a request of a stranger. Fails as CheckObjects.
template <typename Message>
absl::Status ParseRequest(std::string_view bytes, Message* out) {
  RETURN_IF_ERROR(CheckObjects(*Message::descriptor(), bytes, "request"));
  if (out->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return absl::OkStatus();
  return InvalidArgument("request is malformed: its ", bytes.size(), " bytes are no protobuf ",
                         Message::descriptor()->full_name());
}

}  // namespace fusion
