#pragma once

#include "core/device/target.h"

namespace fusion::v1 {
class Target;
}  // namespace fusion::v1

namespace fusion {

/// Writes every field of `target` into `out`.
void EncodeTarget(const Target& target, v1::Target* out);

/// Inverse of EncodeTarget. InvalidArgument, naming the field, for impossible sizes, counts and
/// measured constants, or if neither `name` nor `isa` is set; Unimplemented for an unknown `isa`.
absl::StatusOr<Target> DecodeTarget(const v1::Target& wire);

}  // namespace fusion
