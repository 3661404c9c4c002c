#include "core/bundle/answer.h"

namespace fusion {

std::string_view CacheOutcomeName(CacheOutcome outcome) {
  switch (outcome) {
    case CacheOutcome::kMiss:
      return "planned";
    case CacheOutcome::kHitMemory:
      return "memory";
    case CacheOutcome::kHitStore:
      return "store";
    case CacheOutcome::kSharedFlight:
      return "shared";
  }
  return "";
}

}  // namespace fusion
