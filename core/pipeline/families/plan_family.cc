#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/pipeline/families/family.h"
#include "core/plan/cost/pin.h"

namespace fusion {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// A polynomial in proportion to the elements of one tensor: the largest one at the values for few
// elements, usually an activation. Tensors that grow faster, such as tables of positions by
// positions, are small there.
std::optional<SizeExpr> MeasureOf(const ShapeFamily& family) {
  auto elements = [](const Graph& graph, size_t t) -> int64_t {
    const Shape& shape = graph.tensors()[t].type.shape;
    return shape.is_static() ? NumElements(shape.ToDims()) : -1;
  };
  const Graph& few = family.few->graph;
  std::vector<size_t> order(few.tensors().size());
  std::iota(order.begin(), order.end(), 0);
  std::erase_if(order, [&](size_t t) { return few.tensors()[t].producer == kNoNode; });
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return elements(few, a) > elements(few, b); });
  std::vector<Units> points;
  for (const FamilyMember& member : family.members) {
    if (member.graph.tensors().size() != few.tensors().size()) return std::nullopt;
    points.push_back(member.units);
  }
  for (size_t t : order) {
    std::vector<int64_t> values;
    for (const FamilyMember& m : family.members) values.push_back(elements(m.graph, t));
    std::optional<SizeExpr> size = FitSize(points, values);
    if (!size.has_value() || size->is_static()) continue;
    std::vector<SizeExpr::Term> terms = size->terms();
    int64_t factor = 0;
    bool grows = true;
    for (const SizeExpr::Term& term : terms) {
      factor = std::gcd(factor, term.coefficient);
      grows = grows && term.coefficient > 0;
    }
    if (!grows) continue;
    for (SizeExpr::Term& term : terms) term.coefficient /= factor;
    return SizeExpr::Sum(std::move(terms));
  }
  return std::nullopt;
}

// Evaluates the groups and tilings that are best for each point at all points.
class FamilyPlanner {
 public:
  FamilyPlanner(const ShapeFamily& family, const Graph& graph, const DeviceSpec& device,
                const PlanOptions& options, const CancelToken* cancel,
                const std::map<NodeId, std::string>& unfused_nodes)
      : family_(family),
        largest_{MostUnits(family.symbols), graph},
        device_(device),
        options_(options),
        cancel_(cancel),
        unfused_nodes_(unfused_nodes) {
    if (auto reason = unfused_nodes_.extract(kNoVariant)) no_variant_ = std::move(reason.mapped());
    points_.push_back(&largest_);
    for (const FamilyMember& sample : family.samples) {
      if (sample.units != largest_.units) points_.push_back(&sample);
    }
  }

  absl::StatusOr<PlannedModel> Run() {
    if (options_.lock != nullptr) points_.resize(1);  // it says all
    for (const FamilyMember* point : points_) {
      ASSIGN_OR_RETURN(PlannedModel planned, Make(point->graph, options_.lock));
      exact_us_.push_back(planned.plan.totals.estimated_us);
      exact_.push_back(std::move(planned));
    }
    RETURN_IF_ERROR(WeighAll());
    if (options_.lock != nullptr) return Locked();
    RETURN_IF_ERROR(FindFew());
    ASSIGN_OR_RETURN(const size_t best, Best());
    std::optional<PlannedModel> few;
    if (few_.has_value() && *few_ != best) {
      ASSIGN_OR_RETURN(few, Make(family_.few->graph, AsIs(*few_)));
    }
    PlannedModel model;
    if (best == 0) {
      model = std::move(exact_[0]);
    } else {
      ASSIGN_OR_RETURN(model, Make(largest_.graph, AsIs(best)));
      for (PlanPoint& point : model.plan.frontier) {
        if (!point.chosen) continue;
        point.reason = StrCat("loses least anywhere: its groups and cuts are best for ",
                              StrJoin(ValuesOf(*points_[best]), ", "));
      }
    }
    model.plan.samples = SamplesOf(best);
    if (!no_variant_.empty()) model.plan.fallbacks.push_back({kNoVariant, no_variant_});
    if (few.has_value()) {
      // MakeFamily sets PlanVariant::most.
      model.plan.variants.push_back({*measure_, 0, nullptr});
      model.variants.push_back(*std::move(few));
    }
    return model;
  }

 private:
  std::shared_ptr<const PlanLock> AsIs(size_t plan) const {
    return LockFor(exact_[plan], LockUse::kAsIs);
  }

  absl::StatusOr<PlannedModel> Make(const Graph& graph, std::shared_ptr<const PlanLock> lock) {
    PlanOptions as_cut = options_;
    as_cut.lock = std::move(lock);
    return MakePlan(graph, device_, as_cut, cancel_, unfused_nodes_);
  }

  absl::StatusOr<double> TimeOf(const Graph& graph, std::shared_ptr<const PlanLock> lock) const {
    PlanOptions as_cut = options_;
    as_cut.lock = std::move(lock);
    ASSIGN_OR_RETURN(PlannedModel made, MakeMember(graph, device_, as_cut, cancel_));
    return made.plan.totals.estimated_us;
  }

  // Groups and tilings that fit no other graph are no candidates.
  absl::Status WeighAll() {
    for (const PlannedModel& model : exact_) {
      std::vector<double> times;
      std::shared_ptr<const PlanLock> lock = LockFor(model, LockUse::kFit);
      for (const FamilyMember* point : points_) {
        absl::StatusOr<double> time = TimeOf(point->graph, lock);
        if (WasGivenUp(time.status())) return time.status();
        times.push_back(time.ok() ? *time : kNever);
      }
      times_.push_back(std::move(times));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<PlannedModel> Locked() {
    const std::vector<LockedVariant>& variants = options_.lock->variants;
    PlannedModel model = std::move(exact_[0]);
    model.plan.samples = SamplesOf(0);
    if (variants.empty()) return model;
    if (family_.few.has_value()) measure_ = MeasureOf(family_);
    if (variants.size() > 1 || !measure_.has_value()) {
      return InvalidArgument("lock.variants: ", variants.size(), "; this request takes ",
                             measure_.has_value() ? "one at most" : "none");
    }
    auto lock = std::make_shared<const PlanLock>(LockOf(variants[0].decisions, options_.lock->use));
    absl::StatusOr<PlannedModel> few = Make(family_.few->graph, std::move(lock));
    if (!few.ok()) return Annotate(few.status(), "lock.variants[0]");
    model.plan.variants.push_back({*measure_, variants[0].most, nullptr});
    model.variants.push_back(*std::move(few));
    return model;
  }

  // The largest ratio of this plan's time, with the plan for few elements beside it, to the time of
  // the exact plans.
  double Worst(size_t plan) const {
    double worst = 0;
    for (size_t p = 0; p < points_.size(); ++p) {
      double time = times_[plan][p];
      if (time == kNever) return kNever;
      if (few_.has_value() && IsForFew(*points_[p])) time = std::min(time, times_[*few_][p]);
      if (exact_us_[p] > 0) worst = std::max(worst, time / exact_us_[p]);
    }
    return worst;
  }

  // Whether the plan for few elements may run there.
  bool IsForFew(const FamilyMember& point) const {
    const Units most = MostUnits(family_.few_symbols);
    for (size_t s = 0; s < most.size(); ++s) {
      if (point.units[s] > most[s]) return false;
    }
    const std::optional<int64_t> elements = measure_->Evaluate(point.units);
    const std::optional<int64_t> end = measure_->Evaluate(points_[*few_]->units);
    return elements.has_value() && end.has_value() && *elements <= *end;
  }

  // Whether a plan has schedules for `graph`, tiles as they are.
  absl::StatusOr<bool> Fits(size_t plan, const Graph& graph) const {
    absl::StatusOr<double> time = TimeOf(graph, AsIs(plan));
    if (WasGivenUp(time.status())) return time.status();
    return time.ok();
  }

  // The plan that loses least at its worst point, among those that fit the largest values.
  absl::StatusOr<size_t> Best() const {
    size_t best = 0;
    double worst = kNever;
    for (size_t plan = 0; plan < exact_.size(); ++plan) {
      const double own = Worst(plan);
      if (own >= worst) continue;
      bool fits = plan == 0;
      if (!fits) {
        ASSIGN_OR_RETURN(fits, Fits(plan, largest_.graph));
      }
      if (!fits) continue;
      worst = own;
      best = plan;
    }
    return best;
  }

  // Sets few_ and measure_ if there is to be a variant.
  absl::Status FindFew() {
    if (!family_.few.has_value() || !no_variant_.empty() ||
        IsHighPressure(options_.hints.memory_pressure)) {
      return absl::OkStatus();
    }
    measure_ = MeasureOf(family_);
    if (!measure_.has_value()) return absl::OkStatus();
    const Units wanted = FewPoint(family_.symbols);
    for (size_t p = 1; p < points_.size(); ++p) {
      if (points_[p]->units != wanted) continue;
      ASSIGN_OR_RETURN(const bool fits, Fits(p, family_.few->graph));
      if (fits) few_ = p;
    }
    return absl::OkStatus();
  }

  // The samples that the answer reports.
  std::vector<PlanSample> SamplesOf(size_t plan) const {
    std::vector<PlanSample> out;
    for (size_t p = 0; p < points_.size(); ++p) {
      if (times_[plan][p] == kNever) continue;
      out.push_back({ValuesOf(*points_[p]), times_[plan][p], exact_us_[p]});
    }
    return out;
  }

  std::vector<int64_t> ValuesOf(const FamilyMember& point) const {
    std::vector<int64_t> out;
    for (size_t s = 0; s < family_.symbols.size(); ++s) {
      out.push_back(point.units[s] * family_.symbols[s].multiple);
    }
    return out;
  }

  const ShapeFamily& family_;
  const FamilyMember largest_;
  const DeviceSpec& device_;
  const PlanOptions& options_;
  const CancelToken* cancel_;
  std::map<NodeId, std::string> unfused_nodes_;
  std::string no_variant_;  // why there is to be none
  std::vector<const FamilyMember*> points_;
  std::vector<PlannedModel> exact_;         // by point
  std::vector<double> exact_us_;            // their times
  std::vector<std::vector<double>> times_;  // of each of those at each point
  std::optional<size_t> few_;               // that for few elements, by point
  std::optional<SizeExpr> measure_;         // what those are counted by
};

}  // namespace

absl::StatusOr<PlannedModel> PlanFamily(const ShapeFamily& family, const Graph& graph,
                                        const DeviceSpec& device, const PlanOptions& options,
                                        const CancelToken* cancel,
                                        const std::map<NodeId, std::string>& unfused_nodes) {
  return FamilyPlanner(family, graph, device, options, cancel, unfused_nodes).Run();
}

}  // namespace fusion
