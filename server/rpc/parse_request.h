#pragma once

#include <string_view>

#include "core/base/status.h"

namespace google::protobuf {
class Descriptor;
}  // namespace google::protobuf

namespace fusion {

/// Checks an untrusted serialised message before it is parsed. InvalidArgument: it is no message of
/// `type`. ResourceExhausted: it would make more than kMaxRequestObjects objects. Messages call it
/// `what`.
absl::Status CheckObjects(const google::protobuf::Descriptor& type, std::string_view bytes,
                          std::string_view what);

/// Parses an untrusted request. Fails as CheckObjects does.
template <typename Message>
absl::Status ParseRequest(std::string_view bytes, Message* out) {
  RETURN_IF_ERROR(CheckObjects(*Message::descriptor(), bytes, "request"));
  if (out->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return absl::OkStatus();
  return InvalidArgument("request is malformed: its ", bytes.size(), " bytes are no protobuf ",
                         Message::descriptor()->full_name());
}

}  // namespace fusion
