#pragma once

#include "core/base/status.h"
#include "core/bundle/measured/accuracy.h"

namespace fusion::v1 {
class DeviceAccuracy;
class ErrorSummary;
}  // namespace fusion::v1

namespace fusion {

void EncodeErrors(const ErrorSummary& errors, v1::ErrorSummary* out);
/// As DecodeAccuracy.
absl::StatusOr<ErrorSummary> DecodeErrors(const v1::ErrorSummary& wire);

void EncodeAccuracy(const DeviceAccuracy& accuracy, v1::DeviceAccuracy* out);
/// For untrusted input: InvalidArgument, naming the field, for counts below 0, and for errors and
/// factors that are negative or not finite.
absl::StatusOr<DeviceAccuracy> DecodeAccuracy(const v1::DeviceAccuracy& wire);

}  // namespace fusion
