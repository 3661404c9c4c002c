#pragma once

#include <vector>

#include "core/base/refusal.h"
#include "core/graph/program/program.h"

namespace fusion {

/// A candidate that a search met. The ledger derives everything else from these fields.
struct Considered {
  std::vector<LoopId> first;   // ascending; the side that the other one reads from
  std::vector<LoopId> second;  // ascending; empty: the candidate is `first` alone
  Refusal refusal;             // empty: accepted
};

}  // namespace fusion
