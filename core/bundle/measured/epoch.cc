#include "core/bundle/measured/epoch.h"

namespace fusion {

std::string_view EpochStateName(EpochState state) {
  switch (state) {
    case EpochState::kRejected:
      return "rejected";
    case EpochState::kShadow:
      return "shadow";
    case EpochState::kCanary:
      return "canary";
    case EpochState::kActive:
      return "active";
    case EpochState::kRetired:
      return "retired";
    case EpochState::kRolledBack:
      return "rolled back";
  }
  return "unknown";
}

}  // namespace fusion
