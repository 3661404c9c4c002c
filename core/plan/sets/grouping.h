#pragma once

#include <string>
#include <vector>

#include "core/graph/program/program.h"
#include "core/plan/sets/considered.h"

namespace fusion {

/// Sets of loop ops that become kernels.
struct Grouping {
  std::vector<std::vector<LoopId>> groups;  // in an order that respects data flow
  std::vector<Considered> considered;       // on the way here, in order
  /// By group: it runs as the next phases of the launch that the group before it is of. Empty: each
  /// is a launch of its own.
  std::vector<bool> follows = {};
};

/// Groups [begin, EndOfLaunch(follows, begin, groups)) are one launch; `follows` as in Grouping.
size_t EndOfLaunch(const std::vector<bool>& follows, size_t begin, size_t groups);

/// Loop ops of one kernel: beyond it a kernel gains nothing that two lack, and takes ever longer to
/// plan and to compile. The largest of a transformer layer have some 30.
inline constexpr size_t kMostOps = 96;

/// Inputs of the loop ops of one kernel, and those of them that lie one behind the other in a
/// result (Concat): compiling takes time that grows with their square, 15 s of the 30 s a kernel
/// may take with so many (Intel family 6 model 85, g++ 12, 2026-11-21).
inline constexpr size_t kMostOperands = 2048;
inline constexpr size_t kMostPieces = 1024;

/// Why one kernel cannot hold these loop ops: what of them is above kMostOperands or kMostPieces.
/// Empty if it can.
std::string TooWide(const Program& program, const std::vector<LoopId>& loops);

/// Orders groups so that every group comes after those it reads from.
std::vector<std::vector<LoopId>> TopologicalOrder(const Program& program,
                                                  std::vector<std::vector<LoopId>> groups);

}  // namespace fusion
