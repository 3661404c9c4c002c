#pragma once

#include <string>
#include <vector>

#include "core/graph/program/program.h"
#include "core/schedule/lower/lower.h"

namespace fusion {

/// What a kernel must compute, for checking it: a program, and how the kernel's params are its
/// inputs and outputs.
struct KernelReference {
  struct Param {
    bool output = false;
    int index = 0;  // of the program's inputs or outputs
    /// A packed param: element (i0, i1, ...) of the param is element `source` of the value as it
    /// lies in memory.
    bool packed = false;
    IndexExpr source;
  };
  Program program;
  std::vector<Param> params;  // in the order of the schedule
};

/// The reference of a group that is a whole program: its loop ops themselves.
KernelReference MakeReference(const Program& program, const FusionGroup& group,
                              const Lowered& lowered);
/// The reference of PackSchedule(group, lowered, param): a copy.
KernelReference MakePackReference(const FusionGroup& group, const Lowered& lowered, size_t param);

/// Text form:
///   reference {
///     param input 2
///     param packed input 1 at 64*i0 + i1
///     param output 0
///     program { ... }
///   }
std::string ToString(const KernelReference& reference);
absl::StatusOr<KernelReference> ParseReference(std::string_view text);

}  // namespace fusion
