#pragma once

#include "core/base/status.h"
#include "core/bundle/options.h"

namespace fusion::v1 {
class Hints;
class PlanOptions;
}  // namespace fusion::v1

namespace fusion {

/// Writes `options` into the two messages of a request. Names that are not UTF-8 are changed by
/// TextToWire; check names from files with IsUtf8 first.
void EncodeOptions(const PlanOptions& options, v1::PlanOptions* out, v1::Hints* hints);

/// Inverse of EncodeOptions. Unset fields get the defaults of the .proto. InvalidArgument, naming
/// the field, for pressures outside 0..1, negative extents and too many entries; else fails as
/// DecodeRules and DecodeLock do.
absl::StatusOr<PlanOptions> DecodeOptions(const v1::PlanOptions& wire, const v1::Hints& hints);

}  // namespace fusion
