#pragma once

#include <vector>

#include "core/base/refusal.h"
#include "core/graph/program/program.h"

namespace fusion {

/// A candidate as a search met it: all it has to keep for the ledger, which works out the rest.
struct Considered {
  std::vector<LoopId> first;   // ascending; the side that is read from
  std::vector<LoopId> second;  // ascending; empty: about the first alone
  Refusal refusal;             // empty: taken
};

}  // namespace fusion
