#include "server/rpc/parse_request.h"

#include <google/protobuf/descriptor.h>

#include "server/admission/object_count.h"
#include "server/rpc/request_codec.h"

namespace fusion {

absl::Status CheckObjects(const google::protobuf::Descriptor& type, std::string_view bytes,
                          std::string_view what) {
  int64_t objects = CountObjects(type, bytes, kMaxRequestObjects);
  if (objects == kNestedTooDeep) {
    return InvalidArgument(what, " is nested deeper than ", kMaxMessageDepth, " messages");
  }
  if (objects < 0) {
    return InvalidArgument(what, " is malformed: its ", bytes.size(), " bytes are no protobuf ",
                           type.full_name());
  }
  if (objects > kMaxRequestObjects) {
    return ResourceExhausted(what, " has more than ", kMaxRequestObjects,
                             " messages, texts and unknown fields, eight numbers counted as one");
  }
  return absl::OkStatus();
}

}  // namespace fusion
