#pragma once

#include "core/base/status.h"
#include "core/bundle/options.h"

namespace fusion::v1 {
class Hints;
class PlanOptions;
}  // namespace fusion::v1

namespace fusion {

/// Writes `options` into the two messages a request carries them in. Names that are not UTF-8 come
/// out changed (TextToWire): callers that take names from files check IsUtf8 first.
void EncodeOptions(const PlanOptions& options, v1::PlanOptions* out, v1::Hints* hints);

/// Inverse of EncodeOptions; fields that are not set get the defaults of the .proto. Fails with
/// InvalidArgument, naming the field: pressures outside 0..1, negative extents, too many entries,
/// rules as DecodeRules, a lock as DecodeLock says.
absl::StatusOr<PlanOptions> DecodeOptions(const v1::PlanOptions& wire, const v1::Hints& hints);

}  // namespace fusion
