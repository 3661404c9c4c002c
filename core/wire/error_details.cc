#include "core/wire/error_details.h"

#include "absl/strings/cord.h"
#include "core/bundle/rules.h"
#include "core/wire/scalars.h"
#include "fusion/v1/fusion_service.pb.h"

namespace fusion {
namespace {

// Details travel in HTTP headers, of which a call may have 8 KB in all.
constexpr int kMostBlamed = 8;

}  // namespace

std::string EncodeErrorDetails(const absl::Status& status) {
  absl::optional<absl::Cord> blamed = status.GetPayload(kBlamedRules);
  if (!blamed.has_value()) return "";
  v1::RulesFault fault;
  const std::string names(*blamed);
  for (std::string_view name : StrSplit(names, ' ')) {
    if (fault.rules_size() < kMostBlamed) fault.add_rules(TextToWire(name));
  }
  v1::ErrorStatus details;
  details.set_code(static_cast<int>(status.code()));
  details.add_details()->PackFrom(fault);
  return details.SerializeAsString();
}

void DecodeErrorDetails(const std::string& bytes, absl::Status* status) {
  v1::ErrorStatus details;
  if (bytes.empty() || !details.ParseFromString(bytes)) return;
  for (const google::protobuf::Any& detail : details.details()) {
    v1::RulesFault fault;
    if (!detail.Is<v1::RulesFault>() || !detail.UnpackTo(&fault)) continue;
    status->SetPayload(kBlamedRules, absl::Cord(StrJoin(fault.rules(), " ")));
  }
}

}  // namespace fusion
