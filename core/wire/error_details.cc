#include "core/wire/error_details.h"

#include <google/protobuf/unknown_field_set.h>

#include <algorithm>

#include "absl/strings/cord.h"
#include "core/base/files/server_state.h"
#include "core/base/files/unwritable.h"
#include "core/bundle/rules/rules.h"
#include "core/wire/basics/scalars.h"
#include "fusion/v1/fusion_service.pb.h"

namespace fusion {
namespace {

using google::protobuf::UnknownField;
using google::protobuf::UnknownFieldSet;

// Details travel in HTTP headers, of which a call may have 8 KB in all.
constexpr int kMostBlamed = 8;

constexpr char kRetryInfoUrl[] = "type.googleapis.com/google.rpc.RetryInfo";
constexpr int64_t kNanosecondsPerSecond = 1'000'000'000;
// Nobody means to wait longer; also keeps nanoseconds in range.
constexpr int64_t kMostRetrySeconds = 86'400;

void DecodeRetryInfo(const google::protobuf::Any& detail, absl::Status* status) {
  // The name is Google's, the layout is ours as well: UnpackTo would look at the name.
  v1::RetryInfo info;
  if (!info.ParseFromString(detail.value()) || !info.has_retry_delay()) return;
  const int64_t seconds = info.retry_delay().seconds();
  const int64_t nanos = info.retry_delay().nanos();
  if (seconds < 0 || nanos < 0 || nanos >= kNanosecondsPerSecond) return;
  const Nanoseconds delay(std::min(seconds, kMostRetrySeconds) * kNanosecondsPerSecond + nanos);
  *status = WithRetryAfter(*status, delay);
}

// google.rpc.PreconditionFailure has `repeated Violation violations = 1`, and Violation
// `string type = 1`. Nothing else of it is used here.
constexpr char kPreconditionFailureUrl[] = "type.googleapis.com/google.rpc.PreconditionFailure";
constexpr int kViolations = 1;
constexpr int kViolationType = 1;
constexpr char kServerViolation[] = "SERVER";

std::string EncodeServerViolation() {
  UnknownFieldSet violation, failure;
  violation.AddLengthDelimited(kViolationType, kServerViolation);
  std::string bytes;
  if (!violation.SerializeToString(&bytes)) return "";
  failure.AddLengthDelimited(kViolations, bytes);
  return failure.SerializeToString(&bytes) ? bytes : "";
}

bool HasServerViolation(const std::string& bytes) {
  UnknownFieldSet failure;
  if (!failure.ParseFromString(bytes)) return false;
  for (int i = 0; i < failure.field_count(); ++i) {
    const UnknownField& field = failure.field(i);
    UnknownFieldSet violation;
    if (field.number() != kViolations || field.type() != UnknownField::TYPE_LENGTH_DELIMITED ||
        !violation.ParseFromString(field.length_delimited())) {
      continue;
    }
    for (int k = 0; k < violation.field_count(); ++k) {
      const UnknownField& type = violation.field(k);
      if (type.number() == kViolationType && type.type() == UnknownField::TYPE_LENGTH_DELIMITED &&
          type.length_delimited() == kServerViolation) {
        return true;
      }
    }
  }
  return false;
}

}  // namespace

std::string EncodeErrorDetails(const absl::Status& status) {
  v1::ErrorStatus details;
  absl::optional<absl::Cord> blamed = status.GetPayload(kBlamedRules);
  if (blamed.has_value()) {
    v1::RulesFault fault;
    const std::string names(*blamed);
    for (std::string_view name : StrSplit(names, ' ')) {
      if (fault.rules_size() < kMostBlamed) fault.add_rules(TextToWire(name));
    }
    details.add_details()->PackFrom(fault);
  }
  if (std::optional<Nanoseconds> delay = RetryAfterOf(status)) {
    v1::RetryInfo info;
    info.mutable_retry_delay()->set_seconds(delay->count() / kNanosecondsPerSecond);
    info.mutable_retry_delay()->set_nanos(
        static_cast<int32_t>(delay->count() % kNanosecondsPerSecond));
    google::protobuf::Any* detail = details.add_details();
    detail->set_type_url(kRetryInfoUrl);
    detail->set_value(info.SerializeAsString());
  }
  if (IsOfServerState(status) || IsUnwritable(status)) {
    google::protobuf::Any* detail = details.add_details();
    detail->set_type_url(kPreconditionFailureUrl);
    detail->set_value(EncodeServerViolation());
  }
  if (details.details().empty()) return "";
  details.set_code(static_cast<int>(status.code()));
  return details.SerializeAsString();
}

void DecodeErrorDetails(const std::string& bytes, absl::Status* status) {
  v1::ErrorStatus details;
  if (bytes.empty() || !details.ParseFromString(bytes)) return;
  for (const google::protobuf::Any& detail : details.details()) {
    v1::RulesFault fault;
    if (detail.type_url() == kRetryInfoUrl) {
      DecodeRetryInfo(detail, status);
    } else if (detail.type_url() == kPreconditionFailureUrl) {
      if (HasServerViolation(detail.value())) status->SetPayload(kServerState, absl::Cord());
    } else if (detail.Is<v1::RulesFault>() && detail.UnpackTo(&fault)) {
      status->SetPayload(kBlamedRules, absl::Cord(StrJoin(fault.rules(), " ")));
    }
  }
}

}  // namespace fusion
