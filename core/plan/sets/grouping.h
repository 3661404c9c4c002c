#pragma once

#include <string>
#include <vector>

#include "core/graph/program/program.h"
#include "core/plan/sets/considered.h"

namespace fusion {

/// A partition of loop ops into groups. Each becomes a kernel, or phases of one (`follows`).
struct Grouping {
  std::vector<std::vector<LoopId>> groups;  // in an order that respects data flow
  std::vector<Considered> considered;       // candidates that the search met, in order
  /// By group: true if it runs as further phases of the previous group's launch. Empty: every group
  /// is a launch.
  std::vector<bool> follows = {};
};

/// The end of the launch that begins at group `begin`: groups [begin, end) are one launch.
/// `follows` as in Grouping; `groups` is the number of groups.
size_t EndOfLaunch(const std::vector<bool>& follows, size_t begin, size_t groups);

/// The largest number of loop ops in one kernel. Larger kernels gain nothing over two, and take
/// ever longer to plan and compile. The largest kernels of a transformer layer have some 30.
inline constexpr size_t kMostOps = 96;

/// The largest number of inputs of the loop ops of one kernel, and of inputs that are concatenated
/// in it (Concat). Compile time grows with their square: at this limit it is 15 s of the 30 s that
/// a kernel may take (Intel family 6 model 85, g++ 12, 2026-11-21).
inline constexpr size_t kMostOperands = 2048;
inline constexpr size_t kMostPieces = 1024;

/// Why one kernel cannot hold these loop ops: the limit (kMostOperands, kMostPieces) that they
/// exceed. Empty if they exceed none.
std::string TooWide(const Program& program, const std::vector<LoopId>& loops);

/// Orders groups so that every group comes after those that it reads from. The groups must be free
/// of cycles.
std::vector<std::vector<LoopId>> TopologicalOrder(const Program& program,
                                                  std::vector<std::vector<LoopId>> groups);

}  // namespace fusion
