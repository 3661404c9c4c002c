#include <cmath>

#include "core/bundle/plan_variants.h"
#include "core/device/target.h"
#include "core/wire/basics/cost_factors.h"
#include "core/wire/basics/cost_terms.h"
#include "core/wire/basics/decode_each.h"
#include "core/wire/basics/scalars.h"
#include "core/wire/basics/sizes.h"
#include "core/wire/options/tile_search.h"
#include "core/wire/plan.h"
#include "fusion/v1/plan.pb.h"

namespace fusion {
namespace {

// Scratch or workspace of a kernel, at most, so that their sum over threads stays a number.
constexpr int64_t kMaxKernelBytes = int64_t{1} << 36;

constexpr int kMaxPhases = 4096;

// A name of ours that ends up as an argument of dlsym.
absl::Status CheckSymbol(std::string_view symbol) {
  bool ok = !symbol.empty() && symbol.size() <= kMaxNameBytes;
  for (char c : symbol) {
    ok = ok &&
         ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_');
  }
  return ok ? absl::OkStatus()
            : InvalidArgument("symbol: ", Quote(symbol.substr(0, kMaxNameBytes)),
                              "; expected letters, digits and '_'");
}

absl::Status CheckFinite(std::initializer_list<std::pair<const char*, double>> values) {
  for (const auto& [field, value] : values) {
    if (!std::isfinite(value)) return InvalidArgument(field, ": ", value, " is not finite");
  }
  return absl::OkStatus();
}

absl::Status CheckNotNegative(std::initializer_list<std::pair<const char*, int64_t>> values) {
  for (const auto& [field, value] : values) {
    if (value < 0) return InvalidArgument(field, ": ", value, " is negative");
  }
  return absl::OkStatus();
}

absl::StatusOr<Estimate> DecodeEstimate(const v1::Estimate& wire) {
  RETURN_IF_ERROR(CheckFinite({{"time_us", wire.time_us()},
                               {"compute_us", wire.compute_us()},
                               {"memory_us", wire.memory_us()},
                               {"stall_us", wire.stall_us()},
                               {"launch_us", wire.launch_us()},
                               {"tiling_loss_us", wire.tiling_loss_us()},
                               {"flops", wire.flops()},
                               {"product_us", wire.product_us()},
                               {"off_chip_us", wire.off_chip_us()},
                               {"local_us", wire.local_us()},
                               {"waves", wire.waves()}}));
  RETURN_IF_ERROR(CheckNotNegative({{"activation_bytes", wire.activation_bytes()},
                                    {"recompute_bytes", wire.recompute_bytes()},
                                    {"weight_bytes", wire.weight_bytes()},
                                    {"on_chip_bytes", wire.on_chip_bytes()},
                                    {"tasks", wire.tasks()}}));
  Estimate e;
  e.time_us = wire.time_us();
  e.compute_us = wire.compute_us();
  e.memory_us = wire.memory_us();
  e.stall_us = wire.stall_us();
  e.launch_us = wire.launch_us();
  e.tiling_loss_us = wire.tiling_loss_us();
  e.flops = wire.flops();
  e.activation_bytes = wire.activation_bytes();
  e.recompute_bytes = wire.recompute_bytes();
  e.weight_bytes = wire.weight_bytes();
  e.on_chip_bytes = wire.on_chip_bytes();
  e.tasks = wire.tasks();
  e.waves = wire.waves();
  e.product_us = wire.product_us();
  e.off_chip_us = wire.off_chip_us();
  e.local_us = wire.local_us();
  return e;
}

absl::StatusOr<PlanTensor> DecodeTensor(const v1::PlanTensor& wire) {
  PlanTensor t;
  absl::StatusOr<DType> dtype = FromWire(wire.data_type());
  if (!dtype.ok()) return Annotate(dtype.status(), "data_type");
  t.dtype = *dtype;
  if (wire.dims_size() > kMaxTensorRank || wire.strides_size() > kMaxTensorRank) {
    return InvalidArgument("dims: rank ", wire.dims_size(), " with ", wire.strides_size(),
                           " strides; at most ", kMaxTensorRank);
  }
  t.dims.assign(wire.dims().begin(), wire.dims().end());
  t.strides.assign(wire.strides().begin(), wire.strides().end());
  absl::StatusOr<Space> space = FromWire(wire.space());
  if (!space.ok()) return Annotate(space.status(), "space");
  t.space = *space;
  t.index = wire.index();
  t.offset = wire.offset();
  t.bytes = wire.bytes();
  RETURN_IF_ERROR(DecodeEach("sizes", wire.sizes(), DecodeSize, &t.sizes));
  return t;
}

absl::StatusOr<std::shared_ptr<const HostTensor>> DecodeConstant(const v1::PlanConstant& wire) {
  absl::StatusOr<DType> dtype = FromWire(wire.data_type());
  if (!dtype.ok()) return Annotate(dtype.status(), "data_type");
  if (wire.dims_size() > kMaxTensorRank) {
    return InvalidArgument("dims: rank ", wire.dims_size(), "; at most ", kMaxTensorRank);
  }
  Dims dims(wire.dims().begin(), wire.dims().end());
  ASSIGN_OR_RETURN(HostTensor tensor, HostTensor::FromBytes(*dtype, std::move(dims), wire.data()));
  return std::make_shared<const HostTensor>(std::move(tensor));
}

absl::StatusOr<PlanKernel> DecodeKernel(const v1::PlanKernel& wire) {
  PlanKernel kernel;
  absl::StatusOr<Digest> key = DigestFromWire(wire.key());
  if (!key.ok()) return Annotate(key.status(), "key");
  kernel.key = *key;
  RETURN_IF_ERROR(CheckSymbol(wire.symbol()));
  kernel.symbol = wire.symbol();
  kernel.label = wire.label();
  RETURN_IF_ERROR(CheckName("backend", wire.backend()));
  kernel.backend = wire.backend();
  RETURN_IF_ERROR(CheckName("isa", wire.isa()));
  kernel.isa = wire.isa();
  if (wire.phases() < 1 || wire.phases() > kMaxPhases) {
    return InvalidArgument("phases: ", wire.phases(), "; expected 1..", kMaxPhases);
  }
  kernel.phases = wire.phases();
  for (const auto& [field, bytes] : {std::pair("scratch_bytes", wire.scratch_bytes()),
                                     std::pair("workspace_bytes", wire.workspace_bytes())}) {
    if (bytes >= 0 && bytes <= kMaxKernelBytes) continue;
    return InvalidArgument(field, ": ", bytes, "; expected 0..", kMaxKernelBytes);
  }
  kernel.scratch_bytes = wire.scratch_bytes();
  kernel.workspace_bytes = wire.workspace_bytes();
  RETURN_IF_ERROR(DecodeEach("sizes", wire.sizes(), DecodeSize, &kernel.sizes));
  return kernel;
}

absl::StatusOr<PlanGroup> DecodeGroup(const v1::PlanGroup& wire) {
  PlanGroup group;
  absl::StatusOr<GroupKind> kind = FromWire(wire.kind());
  if (!kind.ok()) return Annotate(kind.status(), "kind");
  group.kind = *kind;
  group.nodes.assign(wire.nodes().begin(), wire.nodes().end());
  group.label = wire.label();
  group.kernel = wire.kernel();
  absl::StatusOr<Estimate> estimate = DecodeEstimate(wire.estimate());
  if (!estimate.ok()) return Annotate(estimate.status(), "estimate");
  group.estimate = *estimate;
  absl::StatusOr<PlanTotals> op_by_op = DecodeTotals(wire.op_by_op());
  if (!op_by_op.ok()) return Annotate(op_by_op.status(), "op_by_op");
  group.op_by_op = *op_by_op;
  RETURN_IF_ERROR(CheckName("bound", wire.bound()));
  group.bound = wire.bound();
  group.tiles = wire.tiles();
  RETURN_IF_ERROR(CheckName("structure", wire.structure()));
  group.structure = wire.structure();
  RETURN_IF_ERROR(CheckName("registered", wire.registered()));
  group.registered = wire.registered();
  RETURN_IF_ERROR(CheckName("form", wire.form()));
  group.form = wire.form();
  absl::StatusOr<CostTerms> terms = DecodeTerms(wire.terms());
  if (!terms.ok()) return Annotate(terms.status(), "terms");
  if (!group.form.empty()) group.terms = *std::move(terms);
  group.derivation.assign(wire.derivation().begin(), wire.derivation().end());
  return group;
}

absl::StatusOr<PlanLaunch> DecodeLaunch(const v1::PlanLaunch& wire) {
  PlanLaunch launch;
  launch.group = wire.group();
  launch.kernel = wire.kernel();
  launch.tensors.assign(wire.tensors().begin(), wire.tensors().end());
  return launch;
}

// Checked by Verify.
absl::StatusOr<PlanLoop> DecodeLoop(const v1::PlanLoop& wire) {
  PlanLoop loop{.first = wire.first(),
                .launches = wire.launches(),
                .most = wire.most(),
                .must_end = wire.must_end(),
                .count = wire.count(),
                .begins = wire.begins(),
                .goes_on = wire.goes_on(),
                .pass = wire.pass(),
                .passes = wire.passes()};
  for (const v1::PlanLoop::Carried& c : wire.carried()) {
    loop.carried.push_back({.before = c.before(),
                            .after = c.after(),
                            .initial = c.initial(),
                            .last = c.last(),
                            .spare = c.spare()});
  }
  for (const v1::PlanLoop::Element& e : wire.elements()) {
    loop.elements.push_back(
        {.place = e.place(), .whole = e.whole(), .from_end = e.from_end(), .written = e.written()});
  }
  if (wire.has_open_most()) {
    ASSIGN_OR_RETURN(loop.open_most, DecodeSize(wire.open_most()));
  }
  return loop;
}

// A word of ours that programs compare; a newer server may know words that this build does not.
absl::Status CheckWord(std::string_view field, std::string_view word) {
  bool ok = word.size() <= kMaxNameBytes &&
            word.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == std::string::npos;
  return ok ? absl::OkStatus()
            : InvalidArgument(field, ": ", QuoteShort(word),
                              "; expected lower case letters, digits and '-'");
}

absl::StatusOr<WhatIf> DecodeFlip(const v1::PlanFlip& wire) {
  RETURN_IF_ERROR(CheckWord("what", wire.what()));
  RETURN_IF_ERROR(CheckFinite({{"value", wire.value()}}));
  return WhatIf{wire.what(), wire.value(), wire.words()};
}

absl::StatusOr<DecisionPlace> DecodePlace(const v1::DecisionPlace& wire) {
  DecisionPlace place;
  place.first.assign(wire.first_nodes().begin(), wire.first_nodes().end());
  place.second.assign(wire.second_nodes().begin(), wire.second_nodes().end());
  place.first_group = wire.first_group();
  place.second_group = wire.second_group();
  place.between.assign(wire.between().begin(), wire.between().end());
  return place;
}

absl::Status DecodeTerms(std::string_view field, bool given, const v1::Estimate& wire,
                         std::optional<Estimate>* out) {
  if (!given) return absl::OkStatus();
  absl::StatusOr<Estimate> estimate = DecodeEstimate(wire);
  if (!estimate.ok()) return Annotate(estimate.status(), field);
  *out = *estimate;
  return absl::OkStatus();
}

absl::StatusOr<SkippedPass> DecodeSkippedPass(const v1::SkippedPass& wire) {
  RETURN_IF_ERROR(CheckName("pass", wire.pass()));
  return SkippedPass{wire.pass(), wire.reason()};
}

absl::StatusOr<PlanFallback> DecodeFallback(const v1::PlanFallback& wire) {
  PlanFallback fallback;
  fallback.node = wire.node();
  fallback.reason = wire.reason();
  RETURN_IF_ERROR(CheckName("registered", wire.registered()));
  fallback.registered = wire.registered();
  return fallback;
}

absl::StatusOr<PlanLevel> DecodeLevel(const v1::PlanLevel& wire) {
  RETURN_IF_ERROR(CheckName("name", wire.name()));
  RETURN_IF_ERROR(
      CheckNotNegative({{"bytes", wire.bytes()}, {"usable_bytes", wire.usable_bytes()}}));
  RETURN_IF_ERROR(CheckFinite({{"total_bytes_per_s", wire.total_bytes_per_s()}}));
  return PlanLevel{wire.name(), wire.shared(), wire.bytes(), wire.usable_bytes(),
                   wire.total_bytes_per_s()};
}

absl::StatusOr<PlanPoint> DecodePoint(const v1::PlanPoint& wire) {
  RETURN_IF_ERROR(CheckName("name", wire.name()));
  RETURN_IF_ERROR(
      CheckFinite({{"latency_us", wire.latency_us()}, {"compile_s", wire.compile_s()}}));
  RETURN_IF_ERROR(CheckNotNegative({{"peak_bytes", wire.peak_bytes()},
                                    {"launches", wire.launches()},
                                    {"kernels", wire.kernels()}}));
  return PlanPoint{.name = wire.name(),
                   .latency_us = wire.latency_us(),
                   .peak_bytes = wire.peak_bytes(),
                   .compile_s = wire.compile_s(),
                   .launches = wire.launches(),
                   .kernels = wire.kernels(),
                   .chosen = wire.chosen(),
                   .reason = wire.reason()};
}

absl::StatusOr<PlanDecision> DecodeDecision(const v1::PlanDecision& wire) {
  PlanDecision decision;
  absl::StatusOr<DecisionSubject> subject = FromWire(wire.subject());
  if (!subject.ok()) return Annotate(subject.status(), "subject");
  decision.subject = *subject;
  absl::StatusOr<Verdict> verdict = FromWire(wire.verdict());
  if (!verdict.ok()) return Annotate(verdict.status(), "verdict");
  decision.verdict = *verdict;
  RETURN_IF_ERROR(CheckWord("code", wire.code()));
  decision.code = wire.code();
  decision.reason = wire.reason();
  RETURN_IF_ERROR(DecodeTerms("first", wire.has_first(), wire.first(), &decision.first));
  RETURN_IF_ERROR(DecodeTerms("second", wire.has_second(), wire.second(), &decision.second));
  RETURN_IF_ERROR(
      DecodeTerms("together", wire.has_together(), wire.together(), &decision.together));
  RETURN_IF_ERROR(CheckFinite({{"benefit_us", wire.benefit_us()}}));
  decision.benefit_us = wire.benefit_us();
  RETURN_IF_ERROR(DecodeEach("flips", wire.flips(), DecodeFlip, &decision.what_ifs));
  RETURN_IF_ERROR(DecodeEach("places", wire.places(), DecodePlace, &decision.places));
  if (decision.places.empty()) return InvalidArgument("places: none; expected at least one");
  RETURN_IF_ERROR(CheckNotNegative({{"times", wire.times()}}));
  decision.times = wire.times();
  return decision;
}

// Of decision `d` its place `p`.
absl::Status CheckPlace(const Plan& plan, size_t d, size_t p) {
  const PlanDecision& decision = plan.decisions[d];
  const DecisionPlace& place = decision.places[p];
  auto within = [d, p](std::string_view name, int64_t value, int64_t least, int64_t count) {
    if (value >= least && value < count) return absl::OkStatus();
    return InvalidArgument("plan.decisions[", d, "].places[", p, "].", name, ": ", value,
                           "; expected ", least, "..", count - 1);
  };
  for (int node : place.first) RETURN_IF_ERROR(within("first_nodes", node, 0, plan.nodes));
  for (int node : place.second) RETURN_IF_ERROR(within("second_nodes", node, 0, plan.nodes));
  const auto groups = static_cast<int64_t>(plan.groups.size());
  const bool two =
      decision.subject == DecisionSubject::kPair || decision.subject == DecisionSubject::kSiblings;
  const bool one = two || decision.subject == DecisionSubject::kGroup;
  RETURN_IF_ERROR(within("first_group", place.first_group, one ? 0 : -1, groups));
  RETURN_IF_ERROR(within("second_group", place.second_group, two ? 0 : -1, groups));
  for (int group : place.between) RETURN_IF_ERROR(within("between", group, 0, groups));
  return absl::OkStatus();
}

absl::Status CheckPositions(const Plan& plan) {
  for (size_t f = 0; f < plan.fallbacks.size(); ++f) {
    const int node = plan.fallbacks[f].node;
    if (node >= 0 && node < plan.nodes) continue;
    const bool family = !plan.symbols.empty() && plan.fallbacks[f].registered.empty();
    if (node == kNoVariant && family) continue;
    return InvalidArgument("plan.fallbacks[", f, "].node: ", node, "; expected 0..",
                           plan.nodes - 1);
  }
  for (size_t d = 0; d < plan.decisions.size(); ++d) {
    for (size_t p = 0; p < plan.decisions[d].places.size(); ++p) {
      RETURN_IF_ERROR(CheckPlace(plan, d, p));
    }
  }
  for (size_t k = 0; k < plan.search.kernels.size(); ++k) {
    const int group = plan.search.kernels[k].group;
    if (group < static_cast<int>(plan.groups.size())) continue;
    return InvalidArgument("plan.search.kernels[", k, "].group: ", group, "; expected -1..",
                           plan.groups.size() - 1);
  }
  return absl::OkStatus();
}

absl::Status DecodeDevice(const v1::PlanDevice& wire, PlanDevice* device) {
  for (const auto& [field, text] :
       {std::pair{"plan.device.kind", &wire.kind()}, std::pair{"plan.device.unit", &wire.unit()},
        std::pair{"plan.device.on_chip_level", &wire.on_chip_level()}}) {
    RETURN_IF_ERROR(CheckName(field, *text));
  }
  RETURN_IF_ERROR(CheckNotNegative({{"plan.device.on_chip_bytes", wire.on_chip_bytes()}}));
  device->kind = wire.kind();
  device->unit = wire.unit();
  device->explicit_memory = wire.explicit_memory();
  device->on_chip_level = wire.on_chip_level();
  device->on_chip_bytes = wire.on_chip_bytes();
  return DecodeEach("plan.device.levels", wire.levels(), DecodeLevel, &device->levels);
}

// Everything but the repeated messages.
absl::Status DecodeHead(const v1::Plan& wire, Plan* plan) {
  if (wire.version() != kPlanVersion) {
    return Unimplemented("plan.version: ", wire.version(), "; this build reads ", kPlanVersion);
  }
  RETURN_IF_ERROR(CheckName("plan.target", wire.target()));
  plan->target = wire.target();
  // Not one of ours for a device that this client cannot run plans of.
  if (wire.isa().empty()) return InvalidArgument("plan.isa: empty");
  RETURN_IF_ERROR(CheckName("plan.isa", wire.isa()));
  plan->isa = wire.isa();
  if (wire.threads() < 1 || wire.threads() > kMaxTargetThreads) {
    return InvalidArgument("plan.threads: ", wire.threads(), "; expected 1..", kMaxTargetThreads);
  }
  plan->threads = wire.threads();
  absl::StatusOr<Numerics> numerics = FromWire(wire.numerics());
  if (!numerics.ok()) return Annotate(numerics.status(), "plan.numerics");
  plan->numerics = *numerics;
  absl::StatusOr<FusionMode> fusion = FromWire(wire.fusion());
  if (!fusion.ok()) return Annotate(fusion.status(), "plan.fusion");
  plan->fusion = *fusion;
  plan->inputs.assign(wire.inputs().begin(), wire.inputs().end());
  plan->outputs.assign(wire.outputs().begin(), wire.outputs().end());
  for (const v1::BoundStrides& bound : wire.bound_strides()) {
    plan->bound_strides.push_back(
        {bound.output(), bound.position(), Dims(bound.strides().begin(), bound.strides().end())});
  }
  for (const v1::SharedBuffer& shared : wire.shared_buffers()) {
    plan->shared_buffers.push_back(
        {shared.input(), shared.output(), shared.dim(), shared.capacity()});
  }
  for (const v1::OutputExtent& extent : wire.output_extents()) {
    plan->output_extents.push_back({extent.output(), extent.dim(), extent.count()});
  }
  plan->weights.assign(wire.weights().begin(), wire.weights().end());
  plan->arena_bytes = wire.arena_bytes();
  plan->prepared_bytes = wire.prepared_bytes();
  RETURN_IF_ERROR(
      CheckNotNegative({{"plan.nodes", wire.nodes()}, {"plan.candidates", wire.candidates()}}));
  plan->nodes = wire.nodes();
  plan->candidates = wire.candidates();
  absl::StatusOr<PlanTotals> totals = DecodeTotals(wire.totals());
  if (!totals.ok()) return Annotate(totals.status(), "plan.totals");
  plan->totals = *totals;
  absl::StatusOr<PlanTotals> op_by_op = DecodeTotals(wire.op_by_op());
  if (!op_by_op.ok()) return Annotate(op_by_op.status(), "plan.op_by_op");
  plan->op_by_op = *op_by_op;
  return absl::OkStatus();
}

absl::StatusOr<PlanVariant> DecodeVariant(const v1::PlanVariant& wire) {
  if (wire.plan().variants_size() > 0) return InvalidArgument("plan.variants: of a variant");
  PlanVariant variant{.measure = {}, .most = wire.most(), .plan = nullptr};
  ASSIGN_OR_RETURN(variant.measure, DecodeSize(wire.measure()));
  ASSIGN_OR_RETURN(Plan plan, DecodePlan(wire.plan()));
  variant.plan = std::make_shared<const Plan>(std::move(plan));
  return variant;
}

}  // namespace

absl::StatusOr<PlanTotals> DecodeTotals(const v1::PlanTotals& wire) {
  RETURN_IF_ERROR(CheckFinite({{"estimated_us", wire.estimated_us()}}));
  RETURN_IF_ERROR(CheckNotNegative({{"kernels", wire.kernels()},
                                    {"launches", wire.launches()},
                                    {"activation_bytes", wire.activation_bytes()},
                                    {"weight_bytes", wire.weight_bytes()}}));
  PlanTotals totals;
  totals.kernels = wire.kernels();
  totals.launches = wire.launches();
  totals.activation_bytes = wire.activation_bytes();
  totals.weight_bytes = wire.weight_bytes();
  totals.estimated_us = wire.estimated_us();
  return totals;
}

absl::StatusOr<Plan> DecodePlan(const v1::Plan& wire) {
  Plan plan;
  RETURN_IF_ERROR(DecodeHead(wire, &plan));
  RETURN_IF_ERROR(
      CheckCount("plan.variants", wire.variants_size(), 0, static_cast<int>(kMaxPlanVariants)));
  RETURN_IF_ERROR(DecodeEach("plan.variants", wire.variants(), DecodeVariant, &plan.variants));
  RETURN_IF_ERROR(DecodeEach("plan.tensors", wire.tensors(), DecodeTensor, &plan.tensors));
  RETURN_IF_ERROR(DecodeEach("plan.constants", wire.constants(), DecodeConstant, &plan.constants));
  RETURN_IF_ERROR(DecodeEach("plan.kernels", wire.kernels(), DecodeKernel, &plan.kernels));
  RETURN_IF_ERROR(DecodeEach("plan.groups", wire.groups(), DecodeGroup, &plan.groups));
  RETURN_IF_ERROR(DecodeEach("plan.prepare", wire.prepare(), DecodeLaunch, &plan.prepare));
  RETURN_IF_ERROR(DecodeEach("plan.launches", wire.launches(), DecodeLaunch, &plan.launches));
  RETURN_IF_ERROR(DecodeEach("plan.loops", wire.loops(), DecodeLoop, &plan.loops));
  RETURN_IF_ERROR(DecodeEach("plan.skipped_passes", wire.skipped_passes(), DecodeSkippedPass,
                             &plan.skipped_passes));
  RETURN_IF_ERROR(DecodeEach("plan.fallbacks", wire.fallbacks(), DecodeFallback, &plan.fallbacks));
  RETURN_IF_ERROR(DecodeEach("plan.decisions", wire.decisions(), DecodeDecision, &plan.decisions));
  RETURN_IF_ERROR(DecodeDevice(wire.device(), &plan.device));
  RETURN_IF_ERROR(DecodeEach("plan.frontier", wire.frontier(), DecodePoint, &plan.frontier));
  RETURN_IF_ERROR(DecodeEach("plan.symbols", wire.symbols(), DecodeRange, &plan.symbols));
  RETURN_IF_ERROR(DecodeEach("plan.samples", wire.samples(), DecodeSample, &plan.samples));
  absl::StatusOr<TileSearch> search = DecodeSearch(wire.search());
  if (!search.ok()) return InvalidArgument("plan.search.", Message(search.status()));
  plan.search = *std::move(search);
  if (wire.has_calibration()) {
    absl::StatusOr<PlanCalibration> calibration = DecodeCalibration(wire.calibration());
    if (!calibration.ok())
      return InvalidArgument("plan.calibration.", Message(calibration.status()));
    plan.calibration = *std::move(calibration);
  }
  RETURN_IF_ERROR(CheckPositions(plan));
  RETURN_IF_ERROR(Verify(plan));
  return plan;
}

absl::StatusOr<Plan> PlanFromBytes(std::string_view bytes) {
  v1::Plan wire;
  if (bytes.size() > INT32_MAX ||
      !wire.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return InvalidArgument("plan: ", bytes.size(), " bytes that are not a fusion.v1.Plan");
  }
  return DecodePlan(wire);
}

}  // namespace fusion
