#include "core/base/status.h"

#include "absl/strings/cord.h"

namespace fusion {

absl::Status Annotate(const absl::Status& status, std::string_view context) {
  if (status.ok()) return status;
  absl::Status out(status.code(), StrCat(context, ": ", Message(status)));
  status.ForEachPayload(
      [&](absl::string_view type, const absl::Cord& payload) { out.SetPayload(type, payload); });
  return out;
}

}  // namespace fusion
