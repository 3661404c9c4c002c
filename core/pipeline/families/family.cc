#include "core/pipeline/families/family.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "core/bundle/plan_variants.h"
#include "core/pipeline/families/family_maker.h"
#include "core/pipeline/kernels/share_packed.h"

namespace fusion {
namespace {

// Points at which a variant for few elements is compared with its plan, by `measure`: the smallest
// values, the values of its tilings, and points where one symbol alone gives no more elements than
// that. Points without elements are left out.
std::map<int64_t, std::vector<Units>> ComparedPoints(const ShapeFamily& family,
                                                     const SizeExpr& measure) {
  const Units least = LeastUnits(family.few_symbols);
  const Units most = MostUnits(family.few_symbols);
  const Units few = FewPoint(family.symbols);
  std::set<Units> points = {least, few};
  for (size_t s = 0; s < least.size(); ++s) {
    for (int64_t units : {few[s], MiddleOf(few[s], most[s]), most[s]}) {
      Units point = least;
      point[s] = units;
      points.insert(point);
    }
  }
  std::map<int64_t, std::vector<Units>> out;
  const int64_t end = measure.Evaluate(few).value_or(0);
  for (const Units& units : points) {
    const std::optional<int64_t> elements = measure.Evaluate(units);
    if (elements.value_or(0) > 0 && *elements <= end) out[*elements].push_back(units);
  }
  return out;
}

// The largest measure up to which the variant is no slower than the plan: the product of the ratios
// of their times at all points is at most 1. nullopt: no range gains enough.
absl::StatusOr<std::optional<int64_t>> BestEnd(const ShapeFamily& family, const SizeExpr& measure,
                                               const FamilyMaker& plan, const FamilyMaker& variant,
                                               const CancelToken* cancel) {
  // Half of what estimates of small kernels are off by (medians of `fusionctl bench` on bert_layer
  // and llama_small, 1..16 rows, 2026-11, AVX-512, 2 cores): it is worth kernels to compile.
  constexpr double kWorthAVariant = 1.05;
  // The error of these estimates: it limits the weight of a single point.
  const double most_counted = std::log(1.1);
  double sum = 0;
  double best = 0;
  std::optional<int64_t> end;
  for (const auto& [elements, points] : ComparedPoints(family, measure)) {
    for (const Units& units : points) {
      if (cancel != nullptr) RETURN_IF_ERROR(cancel->Check());
      const std::optional<double> all = plan.TimeAt(units);
      const std::optional<double> few = variant.TimeAt(units);
      if (!all || !few || !(*all > 0) || !(*few > 0)) continue;
      sum += std::clamp(std::log(*all / *few), -most_counted, most_counted);
      best = std::max(best, *all / *few);
    }
    if (sum > 0 && best >= kWorthAVariant) end = elements;
  }
  return end;
}

// Adds a variant and its kernels.
absl::Status AddVariant(PlanVariant variant, PlannedModel planned, NamedKernels made,
                        PlannedModel* model, NamedKernels* named) {
  Plan& few = planned.plan;
  few.decisions.clear();
  few.candidates = 0;
  few.frontier.clear();
  few.samples.clear();
  std::set<Digest> known;
  for (const PlanKernel& kernel : model->plan.kernels) known.insert(kernel.key);
  Plan whole = model->plan;
  std::vector<size_t> fresh;
  for (size_t k = 0; k < few.kernels.size(); ++k) {
    if (!known.insert(few.kernels[k].key).second) continue;
    whole.kernels.push_back(few.kernels[k]);
    fresh.push_back(k);
  }
  SharePacked(model->plan, &few);
  variant.plan = std::make_shared<const Plan>(few);
  whole.variants.push_back(std::move(variant));
  RETURN_IF_ERROR(Verify(whole));
  model->plan = std::move(whole);
  for (size_t k : fresh) {
    model->kernels.push_back(planned.kernels[k]);
    named->jobs.push_back(std::move(made.jobs[k]));
    named->refusals.push_back(std::move(made.refusals[k]));
  }
  model->variants.push_back(std::move(planned));
  return absl::OkStatus();
}

// Sets the reported times of the samples that the last variant serves.
void TellOfVariant(const FamilyMaker& maker, Plan* plan) {
  const int variant = static_cast<int>(plan->variants.size()) - 1;
  for (PlanSample& sample : plan->samples) {
    Units units = sample.values;
    for (size_t s = 0; s < units.size(); ++s) units[s] /= plan->symbols[s].multiple;
    if (VariantAt(*plan, units) != variant) continue;
    sample.family_us = maker.TimeAt(units).value_or(sample.family_us);
  }
}

}  // namespace

absl::StatusOr<NamedKernels> MakeFamily(const ShapeFamily& family, const DeviceSpec& device,
                                        const PlanOptions& options, const Toolchain& toolchain,
                                        PlannedModel* model, const CancelToken* cancel) {
  std::vector<PlanVariant> variants = std::exchange(model->plan.variants, {});
  std::vector<PlannedModel> planned = std::exchange(model->variants, {});
  FamilyMaker all(family, family.symbols, device, options, toolchain, model, cancel);
  absl::StatusOr<NamedKernels> whole = all.Run();
  if (absl::IsFailedPrecondition(whole.status())) return all.Refusal(whole.status());
  ASSIGN_OR_RETURN(NamedKernels named, std::move(whole));
  for (size_t v = 0; v < variants.size(); ++v) {
    FamilyMaker few(family, family.few_symbols, device, options, toolchain, &planned[v], cancel);
    absl::StatusOr<NamedKernels> made = few.Run();
    if (!made.ok()) {
      absl::Status failed = Annotate(made.status(), "variant for few elements");
      if (WasGivenUp(failed) || options.lock != nullptr) return failed;
      named.no_variant = Message(failed);
      continue;
    }
    if (options.lock == nullptr) {
      ASSIGN_OR_RETURN(std::optional<int64_t> most,
                       BestEnd(family, variants[v].measure, all, few, cancel));
      if (!most.has_value()) continue;
      variants[v].most = *most;
    }
    // Not moved: `few` looks at it below.
    RETURN_IF_ERROR(AddVariant(variants[v], planned[v], *std::move(made), model, &named));
    if (options.lock == nullptr) TellOfVariant(few, &model->plan);
  }
  return named;
}

}  // namespace fusion
