#pragma once

#include <string>
#include <string_view>

#include "core/bundle/measured/kernel_timings.h"

namespace fusion {

/// The timings of a kernel as one string for a store.
std::string EncodeTimings(const KernelTimings& timings);

/// Inverse of EncodeTimings for untrusted input. InvalidArgument, naming the field, if something is
/// malformed; DataLoss if they have another key than `key`.
absl::StatusOr<KernelTimings> DecodeTimings(const Digest& key, std::string_view bytes);

}  // namespace fusion
