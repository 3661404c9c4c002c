#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

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

/// A plan that became slower when it was made again, and the epoch that it is not changed to again.
using KeptPlan = std::pair<Digest, int64_t>;
/// What a server has learned.
struct LearnedState {
  EpochList list;
  std::vector<KeptPlan> kept;       // oldest first
  std::vector<PlanChange> changes;  // by plan_key

  bool operator==(const LearnedState&) const = default;
};
/// As one string for a file, with a checksum.
std::string LearnedToBytes(const LearnedState& state);
/// Inverse of LearnedToBytes. DataLoss: other bytes.
absl::StatusOr<LearnedState> LearnedFromBytes(std::string_view bytes);

}  // namespace fusion
