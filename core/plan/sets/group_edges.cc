#include "core/plan/sets/group_edges.h"

#include <algorithm>
#include <set>

namespace fusion {

GroupEdges::GroupEdges(const Program& program, const std::vector<std::vector<LoopId>>& groups)
    : readers_(groups.size()), writers_(groups.size()), depth_(groups.size(), 0) {
  std::vector<int> group_of(program.ops.size(), -1);
  for (size_t g = 0; g < groups.size(); ++g) {
    for (LoopId l : groups[g]) group_of[static_cast<size_t>(l)] = static_cast<int>(g);
  }
  for (size_t g = 0; g < groups.size(); ++g) {
    std::set<int> from;
    for (LoopId l : groups[g]) {
      for (ValueId in : program.op(l).inputs) {
        LoopId producer = program.value(in).producer;
        while (producer != kNoLoop && program.op(producer).IsAlias()) {
          producer = program.value(program.op(producer).inputs[0]).producer;
        }
        if (producer != kNoLoop) from.insert(group_of[static_cast<size_t>(producer)]);
      }
    }
    from.erase(static_cast<int>(g));
    from.erase(-1);
    for (int w : from) {
      writers_[g].push_back(w);
      readers_[static_cast<size_t>(w)].push_back(static_cast<int>(g));
      depth_[g] = std::max(depth_[g], depth_[static_cast<size_t>(w)] + 1);
    }
  }
  for (size_t w = 0; w < groups.size(); ++w) {
    for (int r : readers_[w]) edges_.emplace_back(static_cast<int>(w), r);
  }
}

std::vector<std::vector<int>> GroupEdges::Between(size_t most) const {
  std::vector<std::vector<int>> out(edges_.size());
  std::vector<int> reached_by(readers_.size(), -1);  // the last writer that a path leads from
  std::vector<size_t> seen_for(readers_.size(), edges_.size());
  std::vector<int> stack;
  for (size_t e = 0; e < edges_.size();) {
    size_t begin = e;
    int writer = edges_[e].first;
    // Only readers more than one step away can have another path; the search stops at the last of
    // them.
    int last = -1;
    for (; e < edges_.size() && edges_[e].first == writer; ++e) {
      auto reader = static_cast<size_t>(edges_[e].second);
      if (depth_[reader] > depth_[static_cast<size_t>(writer)] + 1) last = edges_[e].second;
    }
    if (last < 0) continue;
    stack = {writer};
    while (!stack.empty()) {
      int g = stack.back();
      stack.pop_back();
      for (int next : readers_[static_cast<size_t>(g)]) {
        if (next > last || reached_by[static_cast<size_t>(next)] == writer) continue;
        reached_by[static_cast<size_t>(next)] = writer;
        stack.push_back(next);
      }
    }
    for (size_t i = begin; i < e; ++i) {
      stack = {edges_[i].second};
      while (!stack.empty() && out[i].size() < most) {
        int g = stack.back();
        stack.pop_back();
        for (int from : writers_[static_cast<size_t>(g)]) {
          auto at = static_cast<size_t>(from);
          if (reached_by[at] != writer || seen_for[at] == i || out[i].size() == most) continue;
          seen_for[at] = i;
          out[i].push_back(from);
          stack.push_back(from);
        }
      }
      std::sort(out[i].begin(), out[i].end());
    }
  }
  return out;
}

bool GroupEdges::HasPath(int from, int to) const {
  if (depth_[static_cast<size_t>(from)] >= depth_[static_cast<size_t>(to)]) return false;
  std::vector<bool> seen(static_cast<size_t>(to - from), false);
  std::vector<int> stack = {from};
  while (!stack.empty()) {
    int g = stack.back();
    stack.pop_back();
    for (int next : readers_[static_cast<size_t>(g)]) {
      if (next == to) return true;
      if (next > to || seen[static_cast<size_t>(next - from)]) continue;
      seen[static_cast<size_t>(next - from)] = true;
      stack.push_back(next);
    }
  }
  return false;
}

}  // namespace fusion
