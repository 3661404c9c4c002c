#include "core/export/contract.h"

#include <algorithm>
#include <cstddef>

namespace fusion {
namespace {

size_t At(int i) { return static_cast<size_t>(i); }

/// Keeps the parts in an order in which each is behind those it reads from. Merging some of them
/// changes the order between the first and the last of them only.
class Contraction {
 public:
  explicit Contraction(const NodeGraph& graph)
      : graph_(graph), part_of_(graph.order.size()), rank_(graph.order.size()) {
    for (int node : graph.order) {
      const int part = static_cast<int>(parts_.size());
      part_of_[At(node)] = part;
      rank_[At(node)] = part;
      parts_.push_back({.nodes = {node}});
      slots_.push_back(part);
      slot_of_.push_back(part);
    }
  }

  void Add(int set, std::vector<int> nodes) {
    std::sort(nodes.begin(), nodes.end(),
              [&](int a, int b) { return rank_[At(a)] < rank_[At(b)]; });
    if (nodes.empty() || TryMerge(set, nodes)) return;
    // As much as goes together, from the front.
    std::vector<int> together;
    for (int node : nodes) {
      together.push_back(node);
      if (TryMerge(set, together)) continue;
      together = {node};
      TryMerge(set, together);
    }
  }

  std::vector<NodePart> Finish() {
    std::vector<NodePart> out;
    for (int part : slots_) {
      if (part < 0) continue;
      NodePart& made = parts_[At(part)];
      std::sort(made.nodes.begin(), made.nodes.end(),
                [&](int a, int b) { return rank_[At(a)] < rank_[At(b)]; });
      out.push_back(std::move(made));
    }
    return out;
  }

 private:
  enum Mark : unsigned char { kApart = 0, kInside = 1, kBelow = 2, kAbove = 4 };

  // Makes the parts of these nodes one; false, and nothing changes, if that closed a cycle.
  bool TryMerge(int set, const std::vector<int>& nodes) {
    first_ = static_cast<int>(slots_.size());
    last_ = -1;
    marks_.assign(parts_.size(), kApart);
    for (int node : nodes) {
      const int part = part_of_[At(node)];
      marks_[At(part)] = kInside;
      first_ = std::min(first_, slot_of_[At(part)]);
      last_ = std::max(last_, slot_of_[At(part)]);
    }
    MarkBelow();
    if (!TakeBetween()) return false;
    Merge(set);
    return true;
  }

  template <typename Visit>
  void VisitReaders(int part, const Visit& visit) const {
    for (int node : parts_[At(part)].nodes) {
      for (int reader : graph_.readers[At(node)]) {
        if (part_of_[At(reader)] != part) visit(part_of_[At(reader)]);
      }
    }
  }

  // What reads, in one step or several, from what is merged; within the window.
  void MarkBelow() {
    for (int slot = first_; slot <= last_; ++slot) {
      const int part = slots_[At(slot)];
      if (part < 0 || marks_[At(part)] == kApart) continue;
      VisitReaders(part, [&](int reader) {
        if (marks_[At(reader)] != kInside) marks_[At(reader)] = kBelow;
      });
    }
  }

  // What lies between becomes part of what is merged, if all of it may.
  bool TakeBetween() {
    std::vector<int> between;
    for (int slot = last_; slot >= first_; --slot) {
      const int part = slots_[At(slot)];
      if (part < 0 || (marks_[At(part)] & kBelow) == 0) continue;
      bool above = false;
      VisitReaders(part, [&](int reader) {
        above = above || marks_[At(reader)] == kInside || (marks_[At(reader)] & kAbove) != 0;
      });
      if (!above) continue;
      const NodePart& taken = parts_[At(part)];
      if (taken.set >= 0 || !graph_.free[At(taken.nodes.front())]) return false;
      marks_[At(part)] |= kAbove;
      between.push_back(part);
    }
    for (int part : between) marks_[At(part)] = kInside;
    return true;
  }

  // In the window: what does not read from the new part, the part, what does.
  void Merge(int set) {
    std::vector<int> before, behind;
    NodePart made{.set = set};
    int made_part = -1;
    for (int slot = first_; slot <= last_; ++slot) {
      const int part = slots_[At(slot)];
      if (part < 0) continue;
      if (marks_[At(part)] != kInside) {
        (marks_[At(part)] == kApart ? before : behind).push_back(part);
        continue;
      }
      if (made_part < 0) made_part = part;
      NodePart& old = parts_[At(part)];
      made.nodes.insert(made.nodes.end(), old.nodes.begin(), old.nodes.end());
      old.nodes.clear();
    }
    for (int node : made.nodes) part_of_[At(node)] = made_part;
    parts_[At(made_part)] = std::move(made);
    before.push_back(made_part);
    before.insert(before.end(), behind.begin(), behind.end());
    before.resize(At(last_ - first_ + 1), -1);
    for (size_t i = 0; i < before.size(); ++i) {
      slots_[At(first_) + i] = before[i];
      if (before[i] >= 0) slot_of_[At(before[i])] = first_ + static_cast<int>(i);
    }
  }

  const NodeGraph& graph_;
  std::vector<NodePart> parts_;
  std::vector<int> part_of_;  // by node
  std::vector<int> rank_;     // by node: its place in the order of the graph
  std::vector<int> slots_;    // parts in order; -1: none
  std::vector<int> slot_of_;  // by part
  // Of the merge that is being tried.
  std::vector<unsigned char> marks_;  // by part
  int first_ = 0;                     // window of slots
  int last_ = 0;
};

}  // namespace

std::vector<NodePart> Contract(const NodeGraph& graph, const std::vector<std::vector<int>>& sets) {
  Contraction contraction(graph);
  for (size_t i = 0; i < sets.size(); ++i) contraction.Add(static_cast<int>(i), sets[i]);
  return contraction.Finish();
}

}  // namespace fusion
