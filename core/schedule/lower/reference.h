#pragma once

#include <string>
#include <vector>

#include "core/graph/program/program.h"
#include "core/schedule/lower/lower.h"

namespace fusion {

/// What a kernel must compute, for checking it: a program, and which input or output of the program
/// each param of the kernel is.
struct KernelReference {
  struct Param {
    bool output = false;
    int index = 0;  // position in the program's inputs or outputs
    /// For packed params: element (i0, i1, ...) of the param is element number `source` (over i0,
    /// i1, ...) of the value in memory.
    bool packed = false;
    IndexExpr source;
  };
  Program program;
  std::vector<Param> params;  // in the order of the schedule's params
};

/// The reference of a group that consists of all loop ops of `program`. Its outputs are
/// group.outputs. Every param of `lowered` must be one of these or an input of `program`.
KernelReference MakeReference(const Program& program, const FusionGroup& group,
                              const Lowered& lowered);
/// The reference of PackSchedule(group, lowered, param): a program that copies.
KernelReference MakePackReference(const FusionGroup& group, const Lowered& lowered, size_t param);

/// Text form:
///   reference {
///     param input 2
///     param packed input 1 at 64*i0 + i1
///     param output 0
///     program { ... }
///   }
std::string ToString(const KernelReference& reference);
/// InvalidArgument for text that does not parse.
absl::StatusOr<KernelReference> ParseReference(std::string_view text);

}  // namespace fusion
