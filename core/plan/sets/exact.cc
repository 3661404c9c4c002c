#include "core/plan/sets/exact.h"

#include <algorithm>
#include <bit>
#include <unordered_map>

namespace fusion {
namespace {

class Solver {
 public:
  explicit Solver(const ExactProblem& problem)
      : problem_(problem), count_(problem.paths.size()), before_(count_, 0), apart_(count_, 0) {
    for (size_t i = 0; i < count_; ++i) {
      for (size_t j = 0; j < count_; ++j) {
        if (problem.paths[i][j] != GroupGraph::kNoPath) before_[j] |= Bit(i);
        if ((problem.paths[i][j] & GroupGraph::kAround) == 0) continue;
        apart_[i] |= Bit(j);
        apart_[j] |= Bit(i);
      }
    }
  }

  absl::StatusOr<ExactSolution> Run() {
    const uint32_t all = static_cast<uint32_t>((uint64_t{1} << count_) - 1);
    std::vector<uint32_t> sets = ClosedSets(all);
    std::unordered_map<uint32_t, Step> best;
    best[0] = {0, 0};
    for (uint32_t done : sets) {
      auto known = best.find(done);
      if (known == best.end()) continue;
      const double spent = known->second.cost;
      for (uint32_t next : sets) {
        if ((next & done) != done || next == done) continue;
        uint32_t group = next ^ done;
        if (!Whole(group)) continue;
        double limit = problem_.below - spent - (next == all ? 0 : Bound(all ^ next));
        auto other = best.find(next);
        if (other != best.end()) limit = std::min(limit, other->second.cost - spent);
        if (Bound(group) >= limit) continue;
        ASSIGN_OR_RETURN(double cost, Cost(group));
        if (cost >= limit) continue;
        best[next] = {spent + cost, done};
      }
    }
    ExactSolution solution;
    auto end = best.find(all);
    if (end == best.end() || all == 0) return solution;
    solution.cost = end->second.cost;
    for (uint32_t at = all; at != 0; at = best.at(at).from) {
      solution.groups.push_back(at ^ best.at(at).from);
    }
    std::reverse(solution.groups.begin(), solution.groups.end());
    return solution;
  }

 private:
  struct Step {
    double cost = 0;
    uint32_t from = 0;
  };

  static uint32_t Bit(size_t i) { return uint32_t{1} << i; }

  // Sets that are closed under dependence, small ones first.
  std::vector<uint32_t> ClosedSets(uint32_t all) const {
    std::vector<uint32_t> sets;
    for (uint64_t set = 0; set <= all; ++set) {
      auto mask = static_cast<uint32_t>(set);
      bool closed = true;
      for (size_t i = 0; i < count_ && closed; ++i) {
        closed = (mask & Bit(i)) == 0 || (before_[i] & ~mask) == 0;
      }
      if (closed) sets.push_back(mask);
    }
    std::stable_sort(sets.begin(), sets.end(),
                     [](uint32_t a, uint32_t b) { return std::popcount(a) < std::popcount(b); });
    return sets;
  }

  // True if no path between two members leads through a part outside.
  bool Whole(uint32_t group) const {
    for (size_t i = 0; i < count_; ++i) {
      if ((group & Bit(i)) != 0 && (apart_[i] & group) != 0) return false;
    }
    return true;
  }

  double Bound(uint32_t group) {
    auto [it, fresh] = bounds_.try_emplace(group, 0);
    if (fresh) it->second = problem_.bound(group);
    return it->second;
  }

  absl::StatusOr<double> Cost(uint32_t group) {
    auto it = costs_.find(group);
    if (it != costs_.end()) return it->second;
    ASSIGN_OR_RETURN(double cost, problem_.cost(group));
    costs_[group] = cost;
    return cost;
  }

  const ExactProblem& problem_;
  const size_t count_;
  std::vector<uint32_t> before_;  // by part: those it depends on
  std::vector<uint32_t> apart_;   // by part: those no group holds together with it
  std::unordered_map<uint32_t, double> bounds_;
  std::unordered_map<uint32_t, double> costs_;
};

}  // namespace

absl::StatusOr<ExactSolution> SolveExactly(const ExactProblem& problem) {
  return Solver(problem).Run();
}

}  // namespace fusion
