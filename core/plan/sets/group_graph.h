#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "core/graph/program/program.h"

namespace fusion {

/// Data dependences between loop ops. Reinterpretations are skipped: their readers depend on the op
/// that wrote the source.
struct OpLinks {
  explicit OpLinks(const Program& program);

  std::vector<std::vector<LoopId>> readers;  // by op: readers of its result; ascending, each once
  std::vector<std::vector<LoopId>> writers;  // by op: ops whose results it reads; likewise

  const std::vector<LoopId>& ReadersOf(LoopId l) const { return readers[static_cast<size_t>(l)]; }
  const std::vector<LoopId>& WritersOf(LoopId l) const { return writers[static_cast<size_t>(l)]; }
};

/// A partition of the loop ops of a program into groups that can run one after the other. Groups
/// are numbered; a number is never reused. Not thread-safe.
class GroupGraph {
 public:
  /// `groups`: in an order that respects data flow, each ascending. `links` must outlive this.
  GroupGraph(const OpLinks& links, const std::vector<std::vector<LoopId>>& groups);

  const std::vector<LoopId>& loops(int g) const { return loops_[static_cast<size_t>(g)]; }
  /// False once a group was replaced.
  bool alive(int g) const { return alive_[static_cast<size_t>(g)]; }
  /// One above the largest number in use.
  int end() const { return static_cast<int>(loops_.size()); }
  int GroupOf(LoopId l) const { return group_of_[static_cast<size_t>(l)]; }
  /// Groups that read from group g; groups that it reads from. Ascending.
  std::vector<int> ReadersOf(int g) const;
  std::vector<int> WritersOf(int g) const;
  /// Up to `most` groups that run directly before g, and as many directly after it; nearest first.
  std::vector<int> Near(int g, int most) const;
  /// True if group a is before group b in the current order.
  bool Before(int a, int b) const {
    return place_[static_cast<size_t>(a)] < place_[static_cast<size_t>(b)];
  }

  /// How parts of some groups depend on each other. paths[i][j] has the bit kDirect if j reads from
  /// i, and kAround if j depends on i through groups outside.
  enum Path : uint8_t { kNoPath = 0, kDirect = 1, kAround = 2 };
  using Paths = std::vector<std::vector<uint8_t>>;
  /// The paths between `parts`, which together hold exactly the ops of `groups`. nullopt if they
  /// exceed a fixed budget of visited groups.
  std::optional<Paths> PathsBetween(const std::vector<int>& groups,
                                    const std::vector<std::vector<LoopId>>& parts);

  /// True if `fresh`, which together hold exactly the ops of the groups `old`, can replace these
  /// without a cycle. Also false where PathsBetween returns nullopt.
  bool CanReplace(const std::vector<int>& old, const std::vector<std::vector<LoopId>>& fresh);
  /// Replaces the groups. CanReplace(old, fresh) must be true. Returns the new numbers.
  std::vector<int> Replace(const std::vector<int>& old, std::vector<std::vector<LoopId>> fresh);

  /// All groups in an order that respects data flow.
  std::vector<std::vector<LoopId>> Groups() const;

 private:
  template <typename Visit>
  void VisitGroups(const std::vector<LoopId>& loops, const std::vector<std::vector<LoopId>>& linked,
                   const Visit& visit) const;
  std::vector<int> Neighbours(int g, const std::vector<std::vector<LoopId>>& linked) const;
  /// Smallest and largest place of these groups.
  std::pair<int64_t, int64_t> Range(const std::vector<int>& groups) const;
  std::vector<int> Sorted(const std::vector<int>& groups) const;
  void Insert(const std::vector<int>& groups, int64_t last);

  const OpLinks& links_;
  std::vector<std::vector<LoopId>> loops_;  // by group
  std::vector<bool> alive_;
  std::vector<int64_t> place_;
  std::vector<int> group_of_;  // by op
  std::map<int64_t, int> at_;  // living groups by place; ascending places respect data flow
  std::vector<int> seen_in_;   // by group: the last search that visited it
  std::vector<int> part_of_;   // by op: scratch of PathsBetween; -1 otherwise
  int search_ = 0;
};

}  // namespace fusion
