#pragma once

#include <string>
#include <string_view>

#include "core/base/status.h"
#include "core/bundle/measured/epoch.h"

namespace fusion::v1 {
class ListEpochsResponse;
}  // namespace fusion::v1

namespace fusion {

void EncodeEpochs(const EpochList& list, v1::ListEpochsResponse* out);
/// For untrusted input: InvalidArgument, naming the field, for anything that EncodeEpochs does not
/// produce.
absl::StatusOr<EpochList> DecodeEpochs(const v1::ListEpochsResponse& wire);

/// As one string for a file, with a checksum.
std::string EpochsToBytes(const EpochList& list);
/// Inverse of EpochsToBytes. DataLoss: other bytes.
absl::StatusOr<EpochList> EpochsFromBytes(std::string_view bytes);

}  // namespace fusion
