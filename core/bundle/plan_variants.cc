#include "core/bundle/plan_variants.h"

#include <algorithm>
#include <set>
#include <utility>

namespace fusion {
namespace {

SizeExpr DimOf(const PlanTensor& t, size_t dim) {
  return t.sizes.empty() ? SizeExpr(t.dims[dim]) : t.sizes[dim];
}

// True if both tensors have the same type for all values of the symbols.
bool SameType(const Plan& plan, int id, const Plan& other, int other_id) {
  if (id < 0 || other_id < 0) return id == other_id;
  const PlanTensor& a = plan.tensors[static_cast<size_t>(id)];
  const PlanTensor& b = other.tensors[static_cast<size_t>(other_id)];
  if (a.dtype != b.dtype || a.dims.size() != b.dims.size()) return false;
  for (size_t d = 0; d < a.dims.size(); ++d) {
    if (DimOf(a, d) != DimOf(b, d)) return false;
  }
  return true;
}

absl::Status CheckBound(const Plan& plan, const Plan& variant) {
  for (auto [what, list] : {std::pair{"input", &Plan::inputs}, std::pair{"output", &Plan::outputs},
                            std::pair{"weight", &Plan::weights}}) {
    if ((plan.*list).size() != (variant.*list).size()) {
      return InvalidArgument((variant.*list).size(), " ", what, "s; the plan has ",
                             (plan.*list).size());
    }
    for (size_t i = 0; i < (plan.*list).size(); ++i) {
      // A variant may read only prepared forms of a weight.
      if (list == &Plan::weights && (variant.*list)[i] < 0) continue;
      if (SameType(plan, (plan.*list)[i], variant, (variant.*list)[i])) continue;
      return InvalidArgument(what, " ", i, " is not of the type that it has in the plan");
    }
  }
  if (plan.output_extents != variant.output_extents ||
      plan.shared_buffers != variant.shared_buffers ||
      plan.bound_strides != variant.bound_strides) {
    return InvalidArgument("output extents, shared buffers or strides are not those of the plan");
  }
  return absl::OkStatus();
}

absl::Status CheckVariant(const Plan& plan, const PlanVariant& v, const std::set<Digest>& kernels) {
  if (v.plan == nullptr || !v.plan->variants.empty()) {
    return InvalidArgument("no plan, or one with variants");
  }
  const Plan& variant = *v.plan;
  RETURN_IF_ERROR(Verify(variant));
  if (static_cast<size_t>(v.measure.symbols()) > plan.symbols.size() ||
      variant.symbols.size() != plan.symbols.size()) {
    return InvalidArgument("of ", variant.symbols.size(), " symbols, measured by ",
                           v.measure.ToString(), "; the plan has ", plan.symbols.size());
  }
  for (size_t s = 0; s < plan.symbols.size(); ++s) {
    const DimRange& inner = variant.symbols[s];
    const DimRange& outer = plan.symbols[s];
    if (inner.multiple == outer.multiple && inner.least >= outer.least &&
        inner.most <= outer.most) {
      continue;
    }
    return InvalidArgument("symbol ", s, " is ", inner.least, "..", inner.most,
                           ", which is not within the plan's");
  }
  if (v.most < 0) return InvalidArgument("for at most ", v.most, " elements");
  if (variant.target != plan.target || variant.isa != plan.isa || variant.threads != plan.threads ||
      variant.nodes != plan.nodes || variant.numerics != plan.numerics ||
      variant.fusion != plan.fusion) {
    return InvalidArgument("for another target, graph or kind of fusion");
  }
  if (!variant.decisions.empty() || !variant.samples.empty() || !variant.frontier.empty() ||
      variant.search.level > 0) {
    return InvalidArgument("with a ledger, samples, a frontier or a search of its own");
  }
  for (const PlanKernel& kernel : variant.kernels) {
    if (kernels.contains(kernel.key)) continue;
    return InvalidArgument("kernel ", kernel.symbol, " is none of the plan's");
  }
  return CheckBound(plan, variant);
}

}  // namespace

int VariantAt(const Plan& plan, const std::vector<int64_t>& units) {
  for (size_t v = 0; v < plan.variants.size(); ++v) {
    const PlanVariant& variant = plan.variants[v];
    bool within = true;
    for (size_t s = 0; s < units.size(); ++s) {
      const DimRange& range = variant.plan->symbols[s];
      within = within && units[s] >= range.least / range.multiple &&
               units[s] <= range.most / range.multiple;
    }
    if (!within) continue;
    const std::optional<int64_t> measure = variant.measure.Evaluate(units);
    if (measure.has_value() && *measure <= variant.most) return static_cast<int>(v);
  }
  return -1;
}

const Plan& VariantOf(const Plan& plan, int variant) {
  return variant < 0 ? plan : *plan.variants[static_cast<size_t>(variant)].plan;
}

const Plan& PlanAt(const Plan& plan, const std::vector<int64_t>& units) {
  return VariantOf(plan, VariantAt(plan, units));
}

int PackedBy(const Plan& plan, const PlanLaunch& launch) {
  int packed = -1;
  for (int t : launch.tensors) {
    const Space space = plan.tensors[static_cast<size_t>(t)].space;
    if (space == Space::kWeight || space == Space::kConstant) continue;
    if (space != Space::kPrepared || packed >= 0) return -1;
    packed = t;
  }
  return packed;
}

bool PackAlike(const Plan& a, const PlanLaunch& of_a, const Plan& b, const PlanLaunch& of_b) {
  auto key = [](const Plan& plan, const PlanLaunch& launch) {
    return plan.kernels[static_cast<size_t>(launch.kernel)].key;
  };
  if (key(a, of_a) != key(b, of_b) || PackedBy(a, of_a) < 0 || PackedBy(b, of_b) < 0) return false;
  return std::equal(of_a.tensors.begin(), of_a.tensors.end(), of_b.tensors.begin(),
                    of_b.tensors.end(), [&](int in_a, int in_b) {
                      const PlanTensor& x = a.tensors[static_cast<size_t>(in_a)];
                      const PlanTensor& y = b.tensors[static_cast<size_t>(in_b)];
                      if (x.space != y.space || x.dtype != y.dtype || x.dims != y.dims ||
                          x.strides != y.strides) {
                        return false;
                      }
                      if (x.space == Space::kWeight) return x.index == y.index;
                      return x.space == Space::kPrepared ||
                             a.constants[static_cast<size_t>(x.index)]->byte_view() ==
                                 b.constants[static_cast<size_t>(y.index)]->byte_view();
                    });
}

namespace {

// A prepared tensor of a variant must either be one that the plan packs alike at the same offset,
// or lie after everything that the plan and earlier variants pack (`end`).
absl::Status CheckPacked(const Plan& plan, const Plan& variant, int64_t end) {
  for (size_t l = 0; l < variant.prepare.size(); ++l) {
    const PlanLaunch& launch = variant.prepare[l];
    const bool behind = std::all_of(launch.tensors.begin(), launch.tensors.end(), [&](int t) {
      const PlanTensor& tensor = variant.tensors[static_cast<size_t>(t)];
      return tensor.space != Space::kPrepared || tensor.offset >= end;
    });
    const bool shared =
        std::any_of(plan.prepare.begin(), plan.prepare.end(), [&](const PlanLaunch& other) {
          return PackAlike(variant, launch, plan, other) &&
                 variant.tensors[static_cast<size_t>(PackedBy(variant, launch))].offset ==
                     plan.tensors[static_cast<size_t>(PackedBy(plan, other))].offset;
        });
    if (behind || shared) continue;
    return InvalidArgument("prepare[", l, "] writes to memory that others have packed");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckVariants(const Plan& plan) {
  if (plan.variants.empty()) return absl::OkStatus();
  if (plan.symbols.empty() || plan.variants.size() > kMaxPlanVariants) {
    return InvalidArgument("plan: ", plan.variants.size(), " variants for ", plan.symbols.size(),
                           " symbols; expected symbols, and at most ", kMaxPlanVariants);
  }
  std::set<Digest> kernels;
  for (const PlanKernel& kernel : plan.kernels) kernels.insert(kernel.key);
  int64_t packed = plan.prepared_bytes;
  for (size_t v = 0; v < plan.variants.size(); ++v) {
    const Plan& variant = *plan.variants[v].plan;
    absl::Status sound = CheckVariant(plan, plan.variants[v], kernels);
    if (sound.ok()) sound = CheckPacked(plan, variant, packed);
    if (!sound.ok()) return Annotate(sound, StrCat("plan variant ", v));
    packed = std::max(packed, variant.prepared_bytes);
  }
  return absl::OkStatus();
}

}  // namespace fusion
