#include "core/plan/sets/grouping.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <set>

#include "core/base/check.h"

namespace fusion {
std::string TooWide(const Program& program, const std::vector<LoopId>& loops) {
  size_t operands = 0;
  size_t pieces = 0;
  for (LoopId l : loops) {
    const LoopOp& op = program.op(l);
    auto guarded =
        static_cast<size_t>(std::count_if(op.body.reads.begin(), op.body.reads.end(),
                                          [](const Read& read) { return !read.guards.empty(); }));
    operands += op.inputs.size();
    if (guarded > 1) pieces += guarded;
  }
  if (pieces > kMostPieces) {
    return StrCat(pieces, " inputs; one kernel reads at most ", kMostPieces,
                  " that lie one behind the other");
  }
  if (operands <= kMostOperands) return "";
  return StrCat(operands, " inputs; one kernel reads at most ", kMostOperands);
}

size_t EndOfLaunch(const std::vector<bool>& follows, size_t begin, size_t groups) {
  size_t end = begin + 1;
  while (end < groups && end < follows.size() && follows[end]) ++end;
  return end;
}

std::vector<std::vector<LoopId>> TopologicalOrder(const Program& program,
                                                  std::vector<std::vector<LoopId>> groups) {
  // Among the ready groups, the one with the smallest last op comes first: deterministic, and close
  // to the program's own order.
  std::vector<int> group_of(program.ops.size(), -1);
  for (size_t g = 0; g < groups.size(); ++g) {
    for (LoopId l : groups[g]) group_of[static_cast<size_t>(l)] = static_cast<int>(g);
  }
  std::function<int(ValueId)> writer = [&](ValueId v) {
    LoopId l = program.value(v).producer;
    if (l == kNoLoop) return -1;
    if (program.op(l).IsAlias()) return writer(program.op(l).inputs[0]);
    return group_of[static_cast<size_t>(l)];
  };
  std::vector<std::set<int>> readers(groups.size());
  std::vector<int> waits(groups.size(), 0);
  for (size_t g = 0; g < groups.size(); ++g) {
    std::set<int> from;
    for (LoopId l : groups[g]) {
      for (ValueId in : program.op(l).inputs) {
        int w = writer(in);
        if (w >= 0 && w != static_cast<int>(g)) from.insert(w);
      }
    }
    waits[g] = static_cast<int>(from.size());
    for (int w : from) readers[static_cast<size_t>(w)].insert(static_cast<int>(g));
  }
  using Entry = std::pair<LoopId, int>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
  for (size_t g = 0; g < groups.size(); ++g) {
    if (waits[g] == 0) ready.emplace(groups[g].back(), static_cast<int>(g));
  }
  std::vector<std::vector<LoopId>> out;
  while (!ready.empty()) {
    auto g = static_cast<size_t>(ready.top().second);
    ready.pop();
    out.push_back(groups[g]);
    for (int r : readers[g]) {
      if (--waits[static_cast<size_t>(r)] == 0)
        ready.emplace(groups[static_cast<size_t>(r)].back(), r);
    }
  }
  FUSION_CHECK(out.size() == groups.size(), "groups without a cycle");
  return out;
}

}  // namespace fusion
