#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "core/graph/program/program.h"

namespace fusion {

/// Which loop ops depend on which, looking through reinterpretations (which are no kernel's work).
struct OpLinks {
  explicit OpLinks(const Program& program);

  std::vector<std::vector<LoopId>> readers;  // by op, ascending, each once
  std::vector<std::vector<LoopId>> writers;  // likewise: of what the op reads

  const std::vector<LoopId>& ReadersOf(LoopId l) const { return readers[static_cast<size_t>(l)]; }
  const std::vector<LoopId>& WritersOf(LoopId l) const { return writers[static_cast<size_t>(l)]; }
};

/// A partition of the loop ops of a program into groups that can run one after the other. Groups
/// are numbered; a number is never used twice. Not thread-safe.
class GroupGraph {
 public:
  /// `groups`: in an order that respects data flow, ops ascending. What is passed outlives this.
  GroupGraph(const OpLinks& links, const std::vector<std::vector<LoopId>>& groups);

  const std::vector<LoopId>& loops(int g) const { return loops_[static_cast<size_t>(g)]; }
  /// False for groups that were replaced.
  bool alive(int g) const { return alive_[static_cast<size_t>(g)]; }
  /// One above the largest number.
  int end() const { return static_cast<int>(loops_.size()); }
  int GroupOf(LoopId l) const { return group_of_[static_cast<size_t>(l)]; }
  /// Groups that read from group g, and that it reads from, ascending.
  std::vector<int> ReadersOf(int g) const;
  std::vector<int> WritersOf(int g) const;
  /// Up to `most` groups that run right before g, and as many right after it, nearest first.
  std::vector<int> Near(int g, int most) const;
  /// True if group a runs before group b.
  bool Before(int a, int b) const {
    return place_[static_cast<size_t>(a)] < place_[static_cast<size_t>(b)];
  }

  /// How parts of some groups depend on each other: paths[i][j] is set where j reads from i itself
  /// (kDirect), or through groups other than these (kAround).
  enum Path : uint8_t { kNoPath = 0, kDirect = 1, kAround = 2 };
  using Paths = std::vector<std::vector<uint8_t>>;
  /// The paths between `parts`, which hold the ops of the groups `groups`; nullopt where that is
  /// too long to find out.
  std::optional<Paths> PathsBetween(const std::vector<int>& groups,
                                    const std::vector<std::vector<LoopId>>& parts);

  /// True if `fresh`, which hold the ops of the groups `old`, can stand in their place: no group
  /// would have to run both before and after another. Also false where that is too long to find
  /// out.
  bool CanReplace(const std::vector<int>& old, const std::vector<std::vector<LoopId>>& fresh);
  /// Puts them there; CanReplace(old, fresh). Returns their numbers.
  std::vector<int> Replace(const std::vector<int>& old, std::vector<std::vector<LoopId>> fresh);

  /// All groups in an order that respects data flow.
  std::vector<std::vector<LoopId>> Groups() const;

 private:
  template <typename Visit>
  void VisitGroups(const std::vector<LoopId>& loops, const std::vector<std::vector<LoopId>>& linked,
                   const Visit& visit) const;
  std::vector<int> Neighbours(int g, const std::vector<std::vector<LoopId>>& linked) const;
  /// Places of the first and the last of them.
  std::pair<int64_t, int64_t> Range(const std::vector<int>& groups) const;
  std::vector<int> Sorted(const std::vector<int>& groups) const;
  void Insert(const std::vector<int>& groups, int64_t last);

  const OpLinks& links_;
  std::vector<std::vector<LoopId>> loops_;  // by group
  std::vector<bool> alive_;
  std::vector<int64_t> place_;
  std::vector<int> group_of_;  // by op
  std::map<int64_t, int> at_;  // living groups by place: an order that respects data flow
  std::vector<int> seen_in_;   // by group: last search that came by
  std::vector<int> part_of_;   // by op: scratch of PathsBetween; -1 else
  int search_ = 0;
};

}  // namespace fusion
