#include "core/base/status.h"

namespace fusion {

absl::Status Annotate(const absl::Status& status, std::string_view context) {
  if (status.ok()) return status;
  return {status.code(), StrCat(context, ": ", Message(status))};
}

}  // namespace fusion
