#include "core/wire/options/options.h"

#include "core/tensor/shape.h"
#include "core/wire/basics/limits.h"
#include "core/wire/basics/scalars.h"
#include "core/wire/basics/sizes.h"
#include "core/wire/options/plan_lock.h"
#include "core/wire/options/rules.h"
#include "fusion/v1/fusion_service.pb.h"

namespace fusion {
namespace {

absl::StatusOr<double> Pressure(std::string_view field, double value) {
  // Written so that NaN fails too.
  if (value >= 0 && value <= 1) return value;
  return InvalidArgument("hints.", field, ": ", value, "; expected 0..1");
}

}  // namespace

void EncodeOptions(const PlanOptions& options, v1::PlanOptions* out, v1::Hints* hints) {
  out->set_fusion(ToWire(options.fusion));
  out->set_numerics(ToWire(options.numerics));
  out->clear_dim_bindings();
  for (const auto& [name, value] : options.dim_bindings) {
    (*out->mutable_dim_bindings())[TextToWire(name)] = value;
  }
  out->clear_dim_ranges();
  for (const auto& [name, range] : options.dim_ranges) {
    EncodeRange(range, &(*out->mutable_dim_ranges())[TextToWire(name)]);
  }
  out->clear_keep_outputs();
  for (const std::string& name : options.keep_outputs) out->add_keep_outputs(TextToWire(name));
  out->clear_shared_buffers();
  for (const SharedNames& shared : options.shared_buffers) {
    v1::SharedNames* wired = out->add_shared_buffers();
    wired->set_input(TextToWire(shared.input));
    wired->set_output(TextToWire(shared.output));
    wired->set_capacity(shared.capacity);
  }
  out->clear_bound_strides();
  for (const NamedStrides& bound : options.bound_strides) {
    v1::NamedStrides* wired = out->add_bound_strides();
    wired->set_tensor(TextToWire(bound.tensor));
    for (int64_t stride : bound.strides) wired->add_strides(stride);
  }
  out->clear_rules();
  if (!options.rules.empty()) EncodeRules(options.rules, out->mutable_rules());
  out->clear_lock();
  if (options.lock != nullptr) EncodeLock(*options.lock, out->mutable_lock());
  out->set_frontier(options.frontier);
  out->set_debug(options.debug);
  out->set_guard(options.guard);
  out->set_opt_level(options.opt_level);
  out->set_custom_ops(TextToWire(options.custom_ops));
  hints->set_memory_pressure(options.hints.memory_pressure);
  hints->set_compute_pressure(options.hints.compute_pressure);
  hints->set_batch_size(options.hints.batch_size);
  hints->set_low_latency(options.hints.low_latency);
}

absl::StatusOr<PlanOptions> DecodeOptions(const v1::PlanOptions& wire, const v1::Hints& hints) {
  PlanOptions options;
  absl::StatusOr<FusionMode> fusion = FromWire(wire.fusion());
  if (!fusion.ok()) return Annotate(fusion.status(), "options.fusion");
  options.fusion = *fusion;
  absl::StatusOr<Numerics> numerics = FromWire(wire.numerics());
  if (!numerics.ok()) return Annotate(numerics.status(), "options.numerics");
  options.numerics = *numerics;

  if (wire.dim_bindings_size() > kMaxDimBindings) {
    return InvalidArgument("options.dim_bindings: ", wire.dim_bindings_size(), " entries; at most ",
                           kMaxDimBindings);
  }
  for (const auto& [name, value] : wire.dim_bindings()) {
    if (value < 0 || value > kMaxExtent) {
      return InvalidArgument("options.dim_bindings[", Quote(name), "]: ", value, "; expected 0..",
                             kMaxExtent);
    }
    options.dim_bindings[name] = value;
  }
  if (static_cast<size_t>(wire.dim_ranges_size()) > kMaxPlanSymbols) {
    return InvalidArgument("options.dim_ranges: ", wire.dim_ranges_size(), " entries; at most ",
                           kMaxPlanSymbols);
  }
  for (const auto& [name, wired] : wire.dim_ranges()) {
    absl::StatusOr<DimRange> range = DecodeRange(wired);
    if (!range.ok()) {
      return Annotate(range.status(), StrCat("options.dim_ranges[", Quote(name), "]"));
    }
    options.dim_ranges[name] = *range;
  }
  if (wire.keep_outputs_size() > kMaxKeptOutputs) {
    return InvalidArgument("options.keep_outputs: ", wire.keep_outputs_size(), " entries; at most ",
                           kMaxKeptOutputs);
  }
  options.keep_outputs.assign(wire.keep_outputs().begin(), wire.keep_outputs().end());
  if (wire.shared_buffers_size() > kMaxSharedBuffers) {
    return InvalidArgument("options.shared_buffers: ", wire.shared_buffers_size(),
                           " entries; at most ", kMaxSharedBuffers);
  }
  for (int i = 0; i < wire.shared_buffers_size(); ++i) {
    const v1::SharedNames& shared = wire.shared_buffers(i);
    if (shared.capacity() < 0 || shared.capacity() > kMaxExtent) {
      return InvalidArgument("options.shared_buffers[", i, "].capacity: ", shared.capacity(),
                             "; expected 0..", kMaxExtent);
    }
    options.shared_buffers.push_back({shared.input(), shared.output(), shared.capacity()});
  }
  if (wire.bound_strides_size() > kMaxBoundStrides) {
    return InvalidArgument("options.bound_strides: ", wire.bound_strides_size(),
                           " entries; at most ", kMaxBoundStrides);
  }
  for (int i = 0; i < wire.bound_strides_size(); ++i) {
    const v1::NamedStrides& bound = wire.bound_strides(i);
    if (bound.strides_size() > kMaxTensorRank) {
      return InvalidArgument("options.bound_strides[", i, "].strides: ", bound.strides_size(),
                             " entries; at most ", kMaxTensorRank);
    }
    options.bound_strides.push_back(
        {bound.tensor(), Dims(bound.strides().begin(), bound.strides().end())});
  }
  absl::StatusOr<Rules> rules = DecodeRules(wire.rules());
  if (!rules.ok()) return Annotate(rules.status(), "options.rules");
  options.rules = *std::move(rules);
  if (wire.opt_level() < 0 || wire.opt_level() > kMaxOptLevel) {
    return InvalidArgument("options.opt_level: ", wire.opt_level(), "; expected 0..", kMaxOptLevel);
  }
  options.opt_level = wire.opt_level();
  options.frontier = wire.frontier();
  options.debug = wire.debug();
  options.guard = wire.guard();
  options.custom_ops = wire.custom_ops();

  if (wire.has_lock()) {
    absl::StatusOr<PlanLock> lock = DecodeLock(wire.lock());
    if (!lock.ok())
      return absl::Status(lock.status().code(), StrCat("lock.", Message(lock.status())));
    options.lock = std::make_shared<const PlanLock>(*std::move(lock));
  }

  ASSIGN_OR_RETURN(options.hints.memory_pressure,
                   Pressure("memory_pressure", hints.memory_pressure()));
  ASSIGN_OR_RETURN(options.hints.compute_pressure,
                   Pressure("compute_pressure", hints.compute_pressure()));
  if (hints.batch_size() < 0 || hints.batch_size() > kMaxExtent) {
    return InvalidArgument("hints.batch_size: ", hints.batch_size(), "; expected 0..", kMaxExtent);
  }
  options.hints.batch_size = hints.batch_size();
  options.hints.low_latency = hints.low_latency();
  return options;
}

}  // namespace fusion
