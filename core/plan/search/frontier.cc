#include "core/plan/search/frontier.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include "core/plan/cost/gain.h"
#include "core/plan/search/all_in_one.h"
#include "core/plan/search/grow.h"
#include "core/plan/search/interpolate_plans.h"

namespace fusion {
namespace {

// Limit on searches for the least memory; models need two or three.
constexpr int kMemorySearches = 6;

bool Faster(const PlanPoint& a, const PlanPoint& b) {
  return std::tie(a.latency_us, a.peak_bytes, a.compile_s) <
         std::tie(b.latency_us, b.peak_bytes, b.compile_s);
}

// True if b is in no measure better than a.
bool AsGood(const PlanPoint& a, const PlanPoint& b) {
  return a.latency_us <= b.latency_us && a.peak_bytes <= b.peak_bytes && a.compile_s <= b.compile_s;
}

double NearPeak(int64_t peak_bytes) { return static_cast<double>(peak_bytes) * (1 + kNearPeak); }

std::string ReasonText(const Hints& hints) {
  const bool memory = IsHighPressure(hints.memory_pressure);
  const bool compute = IsHighPressure(hints.compute_pressure);
  std::string what = memory ? "the least peak bytes" : "the least time";
  std::string why = memory && compute ? "memory and compute pressure are high"
                    : memory          ? "memory pressure is high"
                    : compute         ? "compute pressure is high"
                                      : "no pressure is high";
  return StrCat(what, ": ", why,
                hints.low_latency && memory
                    ? "; launches are not joined, although latency is wanted"
                : hints.low_latency ? "; latency is wanted, so launches may be joined"
                                    : "",
                compute ? StrCat("; nothing is recomputed, and groups are more than ",
                                 kPressureSpeedup, " times as fast as their nodes")
                        : "");
}

// Finds plans, and weighs them.
class Chooser {
 public:
  Chooser(const Grouping& start, const PlanOptions& options,
          const std::map<NodeId, std::string>& unfused_nodes, GroupEvaluator* evaluator)
      : start_(start),
        options_(options),
        unfused_nodes_(unfused_nodes),
        evaluator_(evaluator),
        weigher_(evaluator) {}

  absl::StatusOr<ChosenPlan> Run() {
    const bool pressed = IsHighPressure(options_.hints.memory_pressure);
    ASSIGN_OR_RETURN(Grouping grown, GrowGroups(start_, unfused_nodes_, evaluator_));
    ASSIGN_OR_RETURN(Grouping fast, Search(grown, {}));
    RETURN_IF_ERROR(Add(kSearchPoint, fast));
    RETURN_IF_ERROR(Add(kGreedyPoint, std::move(grown)));
    RETURN_IF_ERROR(Add(kOpByOpPoint, start_));
    if (pressed) RETURN_IF_ERROR(AddLeastMemory(fast));
    size_t chosen = Choose(pressed);
    const size_t eligible = found_.size();
    if (options_.frontier) {
      if (!pressed) RETURN_IF_ERROR(AddLeastMemory(fast));
      RETURN_IF_ERROR(AddQuickCompile());
    }
    const bool wanted = options_.hints.low_latency && !pressed;
    if (wanted || (options_.frontier && !pressed)) {
      RETURN_IF_ERROR(AddAllInOne(chosen));
      // The two plans differ only in launches, so the smallest gain is real.
      if (wanted && found_.back().point.latency_us < found_[chosen].point.latency_us) {
        chosen = found_.size() - 1;
      }
    }
    PlanPoint& point = found_[chosen].point;
    point.chosen = true;
    point.reason = ReasonText(options_.hints);
    ChosenPlan out;
    for (size_t i = 0; i < found_.size(); ++i) {
      // The frontier option must not change the chosen plan, even if an added point is better.
      if (i >= eligible && i != chosen && AsGood(found_[i].point, point)) continue;
      out.frontier.push_back(found_[i].point);
    }
    out.grouping = {std::move(found_[chosen].groups), std::move(considered_[chosen]),
                    std::move(found_[chosen].follows)};
    out.frontier = NonDominated(std::move(out.frontier));
    return out;
  }

 private:
  // Positions in found_.
  enum : size_t { kFast = 0, kNodes = 2 };

  absl::StatusOr<Grouping> Search(const Grouping& from, const Objective& objective) {
    return SearchGroups(start_, from, objective, options_, unfused_nodes_, {}, evaluator_);
  }

  // Replaces groups that the hints do not allow.
  absl::Status Admit(Grouping* grouping) {
    if (!IsHighPressure(options_.hints.compute_pressure)) return absl::OkStatus();
    ASSIGN_OR_RETURN(*grouping, DissolveSlowGroups(*grouping, start_, evaluator_));
    return absl::OkStatus();
  }

  absl::Status Add(const char* name, Grouping grouping) {
    RETURN_IF_ERROR(Admit(&grouping));
    ASSIGN_OR_RETURN(PlanPoint point, weigher_.Weigh(grouping.groups));
    point.name = name;
    found_.push_back({std::move(grouping.groups), std::move(point)});
    considered_.push_back(std::move(grouping.considered));
    return absl::OkStatus();
  }

  // A search for memory saves bytes between kernels, which increases what kernels hold for
  // themselves. The best balance shows only in the whole plan. So there are several searches, each
  // with half of the previous one's bytes per kernel. Changes that do not lower the peak are then
  // reverted to the fast groups, or to single nodes if these need less.
  absl::Status AddLeastMemory(const Grouping& fast) {
    auto smaller = [](const PlanPoint& fresh, const PlanPoint& old) {
      return std::tie(fresh.peak_bytes, fresh.latency_us) <
             std::tie(old.peak_bytes, old.latency_us);
    };
    const size_t least = LeastOf(smaller);
    WeighedGroups best = found_[least];
    std::vector<Considered> considered = considered_[least];
    int64_t run_bytes = best.point.peak_bytes;
    for (int i = 0; i < kMemorySearches && run_bytes > 0; ++i) {
      ASSIGN_OR_RETURN(Grouping small, Search(fast, {.run_bytes = run_bytes}));
      ASSIGN_OR_RETURN(int64_t held, MostRunBytes(small));
      RETURN_IF_ERROR(Admit(&small));
      ASSIGN_OR_RETURN(PlanPoint point, weigher_.Weigh(small.groups));
      if (smaller(point, best.point)) {
        best = {std::move(small.groups), std::move(point)};
        considered = std::move(small.considered);
      }
      if (held > run_bytes) break;  // with less there is no such plan
      run_bytes = held / 2;
    }
    const double limit = NearPeak(best.point.peak_bytes);
    auto faster = [limit](const PlanPoint& fresh, const PlanPoint& old) {
      return static_cast<double>(fresh.peak_bytes) <= limit && fresh.latency_us < old.latency_us;
    };
    RETURN_IF_ERROR(InterpolateInto(&best, found_[kFast].groups, faster));
    RETURN_IF_ERROR(InterpolateInto(&best, found_[kNodes].groups, smaller));
    best.point.name = kLeastMemoryPoint;
    found_.push_back(std::move(best));
    considered_.push_back(std::move(considered));
    return absl::OkStatus();
  }

  // The largest GroupVerdict::run_bytes of a grouping.
  absl::StatusOr<int64_t> MostRunBytes(const Grouping& grouping) {
    int64_t most = 0;
    for (const std::vector<LoopId>& loops : grouping.groups) {
      ASSIGN_OR_RETURN(const GroupVerdict* verdict, evaluator_->Evaluate(loops));
      most = std::max(most, verdict->run_bytes);
    }
    return most;
  }

  // Starts from the plan that compiles soonest and takes parts of the others.
  absl::Status AddQuickCompile() {
    auto sooner = [](const PlanPoint& fresh, const PlanPoint& old) {
      return std::tie(fresh.compile_s, fresh.latency_us) < std::tie(old.compile_s, old.latency_us);
    };
    const size_t soonest = LeastOf(sooner);
    WeighedGroups quick = found_[soonest];
    const size_t others = found_.size();
    for (size_t i = 0; i < others; ++i) {
      if (i != soonest) RETURN_IF_ERROR(InterpolateInto(&quick, found_[i].groups, sooner));
    }
    quick.point.name = kQuickCompilePoint;
    found_.push_back(std::move(quick));
    considered_.push_back(considered_[soonest]);
    return absl::OkStatus();
  }

  // Whole layers as one launch each.
  absl::Status AddAllInOne(size_t from) {
    ASSIGN_OR_RETURN(Grouping joined, JoinSequential({found_[from].groups, considered_[from]},
                                                     unfused_nodes_, evaluator_));
    ASSIGN_OR_RETURN(PlanPoint point, weigher_.Weigh(joined.groups, joined.follows));
    point.name = kAllInOnePoint;
    found_.push_back({std::move(joined.groups), std::move(point), std::move(joined.follows)});
    considered_.push_back(std::move(joined.considered));
    return absl::OkStatus();
  }

  // Position of the point that `better` prefers to all others.
  template <typename Better>
  size_t LeastOf(const Better& better) const {
    size_t least = 0;
    for (size_t i = 1; i < found_.size(); ++i) {
      if (better(found_[i].point, found_[least].point)) least = i;
    }
    return least;
  }

  template <typename Better>
  absl::Status InterpolateInto(WeighedGroups* into, const std::vector<std::vector<LoopId>>& other,
                               const Better& better) {
    ASSIGN_OR_RETURN(*into,
                     InterpolatePlans(std::move(*into), other, better, evaluator_, &weigher_));
    return absl::OkStatus();
  }

  size_t Choose(bool pressed) const {
    double limit = std::numeric_limits<double>::infinity();
    if (pressed) {
      for (const WeighedGroups& f : found_) limit = std::min(limit, NearPeak(f.point.peak_bytes));
    }
    size_t best = found_.size();
    for (size_t i = 0; i < found_.size(); ++i) {
      if (static_cast<double>(found_[i].point.peak_bytes) > limit) continue;
      if (best == found_.size() || Faster(found_[i].point, found_[best].point)) best = i;
    }
    return best;
  }

  const Grouping& start_;
  const PlanOptions& options_;
  const std::map<NodeId, std::string>& unfused_nodes_;
  GroupEvaluator* evaluator_;
  PlanWeigher weigher_;
  std::vector<WeighedGroups> found_;
  std::vector<std::vector<Considered>> considered_;  // on the way to each of found_
};

}  // namespace

absl::StatusOr<ChosenPlan> ChoosePlan(const Grouping& start, const PlanOptions& options,
                                      const std::map<NodeId, std::string>& unfused_nodes,
                                      GroupEvaluator* evaluator) {
  return Chooser(start, options, unfused_nodes, evaluator).Run();
}

absl::StatusOr<ChosenPlan> TakePlan(Grouping grouping, const char* name, std::string reason,
                                    GroupEvaluator* evaluator) {
  ASSIGN_OR_RETURN(PlanPoint point,
                   PlanWeigher(evaluator).Weigh(grouping.groups, grouping.follows));
  point.name = name;
  point.chosen = true;
  point.reason = std::move(reason);
  return ChosenPlan{.grouping = std::move(grouping), .frontier = {std::move(point)}};
}

std::vector<PlanPoint> NonDominated(std::vector<PlanPoint> points) {
  std::stable_sort(points.begin(), points.end(), Faster);
  std::vector<PlanPoint> out;
  for (PlanPoint& p : points) {
    // A point that dominates it precedes it in this order.
    bool dominated = std::any_of(out.begin(), out.end(),
                                 [&](const PlanPoint& better) { return AsGood(better, p); });
    if (!dominated) out.push_back(std::move(p));
  }
  return out;
}

}  // namespace fusion
