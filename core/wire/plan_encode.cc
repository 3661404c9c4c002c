#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include "core/wire/basics/cost_factors.h"
#include "core/wire/basics/cost_terms.h"
#include "core/wire/basics/scalars.h"
#include "core/wire/basics/sizes.h"
#include "core/wire/options/tile_search.h"
#include "core/wire/plan.h"
#include "fusion/v1/plan.pb.h"

namespace fusion {
namespace {

void EncodeEstimate(const Estimate& e, v1::Estimate* out) {
  out->set_time_us(e.time_us);
  out->set_compute_us(e.compute_us);
  out->set_memory_us(e.memory_us);
  out->set_stall_us(e.stall_us);
  out->set_launch_us(e.launch_us);
  out->set_tiling_loss_us(e.tiling_loss_us);
  out->set_flops(e.flops);
  out->set_activation_bytes(e.activation_bytes);
  out->set_recompute_bytes(e.recompute_bytes);
  out->set_weight_bytes(e.weight_bytes);
  out->set_on_chip_bytes(e.on_chip_bytes);
  out->set_tasks(e.tasks);
  out->set_waves(e.waves);
  out->set_product_us(e.product_us);
  out->set_off_chip_us(e.off_chip_us);
  out->set_local_us(e.local_us);
}

void EncodeTensor(const PlanTensor& t, v1::PlanTensor* out) {
  out->set_data_type(ToWire(t.dtype));
  out->mutable_dims()->Add(t.dims.begin(), t.dims.end());
  out->mutable_strides()->Add(t.strides.begin(), t.strides.end());
  out->set_space(ToWire(t.space));
  out->set_index(t.index);
  out->set_offset(t.offset);
  out->set_bytes(t.bytes);
  for (const SizeExpr& size : t.sizes) EncodeSize(size, out->add_sizes());
}

void EncodeConstant(const HostTensor& constant, v1::PlanConstant* out) {
  out->set_data_type(ToWire(constant.dtype()));
  out->mutable_dims()->Add(constant.dims().begin(), constant.dims().end());
  out->set_data(std::string(constant.byte_view()));
}

void EncodeKernel(const PlanKernel& kernel, v1::PlanKernel* out) {
  out->set_key(DigestToWire(kernel.key));
  out->set_symbol(TextToWire(kernel.symbol));
  out->set_label(TextToWire(kernel.label));
  out->set_backend(TextToWire(kernel.backend));
  out->set_isa(TextToWire(kernel.isa));
  out->set_phases(kernel.phases);
  out->set_scratch_bytes(kernel.scratch_bytes);
  out->set_workspace_bytes(kernel.workspace_bytes);
  for (const SizeExpr& size : kernel.sizes) EncodeSize(size, out->add_sizes());
}

void EncodeGroup(const PlanGroup& group, v1::PlanGroup* out) {
  out->set_kind(ToWire(group.kind));
  out->mutable_nodes()->Add(group.nodes.begin(), group.nodes.end());
  out->set_label(TextToWire(group.label));
  out->set_kernel(group.kernel);
  EncodeEstimate(group.estimate, out->mutable_estimate());
  EncodeTotals(group.op_by_op, out->mutable_op_by_op());
  out->set_bound(TextToWire(group.bound));
  out->set_tiles(TextToWire(group.tiles));
  out->set_structure(TextToWire(group.structure));
  out->set_registered(TextToWire(group.registered));
  if (!group.form.empty()) EncodeTerms(group.terms, out->mutable_terms());
  out->set_form(TextToWire(group.form));
  for (const std::string& line : group.derivation) out->add_derivation(TextToWire(line));
}

void EncodeLaunch(const PlanLaunch& launch, v1::PlanLaunch* out) {
  out->set_group(launch.group);
  out->set_kernel(launch.kernel);
  out->mutable_tensors()->Add(launch.tensors.begin(), launch.tensors.end());
}

void EncodeLoop(const PlanLoop& loop, v1::PlanLoop* out) {
  out->set_first(loop.first);
  out->set_launches(loop.launches);
  out->set_most(loop.most);
  out->set_must_end(loop.must_end);
  out->set_count(loop.count);
  out->set_begins(loop.begins);
  out->set_goes_on(loop.goes_on);
  out->set_pass(loop.pass);
  out->set_passes(loop.passes);
  for (const PlanLoop::Carried& c : loop.carried) {
    v1::PlanLoop::Carried* carried = out->add_carried();
    carried->set_before(c.before);
    carried->set_after(c.after);
    carried->set_initial(c.initial);
    carried->set_last(c.last);
    carried->set_spare(c.spare);
  }
  for (const PlanLoop::Element& e : loop.elements) {
    v1::PlanLoop::Element* element = out->add_elements();
    element->set_place(e.place);
    element->set_whole(e.whole);
    element->set_from_end(e.from_end);
    element->set_written(e.written);
  }
  if (loop.open_most.has_value()) EncodeSize(*loop.open_most, out->mutable_open_most());
}

void EncodePlace(const DecisionPlace& place, v1::DecisionPlace* out) {
  out->mutable_first_nodes()->Add(place.first.begin(), place.first.end());
  out->mutable_second_nodes()->Add(place.second.begin(), place.second.end());
  out->set_first_group(place.first_group);
  out->set_second_group(place.second_group);
  out->mutable_between()->Add(place.between.begin(), place.between.end());
}

void EncodeDecision(const PlanDecision& decision, v1::PlanDecision* out) {
  out->set_subject(ToWire(decision.subject));
  out->set_verdict(ToWire(decision.verdict));
  out->set_code(TextToWire(decision.code));
  out->set_reason(TextToWire(decision.reason));
  if (decision.first.has_value()) EncodeEstimate(*decision.first, out->mutable_first());
  if (decision.second.has_value()) EncodeEstimate(*decision.second, out->mutable_second());
  if (decision.together.has_value()) EncodeEstimate(*decision.together, out->mutable_together());
  out->set_benefit_us(decision.benefit_us);
  for (const WhatIf& what_if : decision.what_ifs) {
    v1::PlanFlip* wire = out->add_flips();
    wire->set_what(TextToWire(what_if.what));
    wire->set_value(what_if.value);
    wire->set_words(TextToWire(what_if.words));
  }
  for (const DecisionPlace& place : decision.places) EncodePlace(place, out->add_places());
  out->set_times(decision.times);
}

void EncodeDevice(const PlanDevice& device, v1::PlanDevice* out) {
  out->set_kind(TextToWire(device.kind));
  out->set_unit(TextToWire(device.unit));
  out->set_explicit_memory(device.explicit_memory);
  out->set_on_chip_level(TextToWire(device.on_chip_level));
  out->set_on_chip_bytes(device.on_chip_bytes);
  for (const PlanLevel& level : device.levels) {
    v1::PlanLevel* wire = out->add_levels();
    wire->set_name(TextToWire(level.name));
    wire->set_shared(level.shared);
    wire->set_bytes(level.bytes);
    wire->set_usable_bytes(level.usable_bytes);
    wire->set_total_bytes_per_s(level.total_bytes_per_s);
  }
}

void EncodePoint(const PlanPoint& point, v1::PlanPoint* out) {
  out->set_name(TextToWire(point.name));
  out->set_latency_us(point.latency_us);
  out->set_peak_bytes(point.peak_bytes);
  out->set_compile_s(point.compile_s);
  out->set_launches(point.launches);
  out->set_kernels(point.kernels);
  out->set_chosen(point.chosen);
  out->set_reason(TextToWire(point.reason));
}

void EncodeWithoutLedger(const Plan& plan, v1::Plan* out) {
  out->set_version(kPlanVersion);
  out->set_target(TextToWire(plan.target));
  out->set_isa(TextToWire(plan.isa));
  out->set_threads(plan.threads);
  out->set_numerics(ToWire(plan.numerics));
  out->set_fusion(ToWire(plan.fusion));
  for (const PlanTensor& tensor : plan.tensors) EncodeTensor(tensor, out->add_tensors());
  for (const auto& constant : plan.constants) EncodeConstant(*constant, out->add_constants());
  for (const PlanKernel& kernel : plan.kernels) EncodeKernel(kernel, out->add_kernels());
  for (const PlanGroup& group : plan.groups) EncodeGroup(group, out->add_groups());
  for (const PlanLaunch& launch : plan.prepare) EncodeLaunch(launch, out->add_prepare());
  for (const PlanLaunch& launch : plan.launches) EncodeLaunch(launch, out->add_launches());
  for (const PlanLoop& loop : plan.loops) EncodeLoop(loop, out->add_loops());
  out->mutable_inputs()->Add(plan.inputs.begin(), plan.inputs.end());
  out->mutable_outputs()->Add(plan.outputs.begin(), plan.outputs.end());
  out->mutable_weights()->Add(plan.weights.begin(), plan.weights.end());
  out->set_arena_bytes(plan.arena_bytes);
  out->set_prepared_bytes(plan.prepared_bytes);
  out->set_nodes(plan.nodes);
  EncodeTotals(plan.totals, out->mutable_totals());
  EncodeTotals(plan.op_by_op, out->mutable_op_by_op());
  for (const SkippedPass& skipped : plan.skipped_passes) {
    v1::SkippedPass* wire = out->add_skipped_passes();
    wire->set_pass(TextToWire(skipped.pass));
    wire->set_reason(TextToWire(skipped.reason));
  }
  for (const PlanFallback& fallback : plan.fallbacks) {
    v1::PlanFallback* wire = out->add_fallbacks();
    wire->set_node(fallback.node);
    wire->set_reason(TextToWire(fallback.reason));
    wire->set_registered(TextToWire(fallback.registered));
  }
  EncodeDevice(plan.device, out->mutable_device());
  for (const PlanPoint& point : plan.frontier) EncodePoint(point, out->add_frontier());
  for (const BoundStrides& bound : plan.bound_strides) {
    v1::BoundStrides* wired = out->add_bound_strides();
    wired->set_output(bound.output);
    wired->set_position(bound.position);
    for (int64_t stride : bound.strides) wired->add_strides(stride);
  }
  for (const SharedBuffer& shared : plan.shared_buffers) {
    v1::SharedBuffer* wired = out->add_shared_buffers();
    wired->set_input(shared.input);
    wired->set_output(shared.output);
    wired->set_dim(shared.dim);
    wired->set_capacity(shared.capacity);
  }
  for (const OutputExtent& extent : plan.output_extents) {
    v1::OutputExtent* wired = out->add_output_extents();
    wired->set_output(extent.output);
    wired->set_dim(extent.dim);
    wired->set_count(extent.count);
  }
  for (const DimRange& symbol : plan.symbols) EncodeRange(symbol, out->add_symbols());
  for (const PlanSample& sample : plan.samples) EncodeSample(sample, out->add_samples());
  for (const PlanVariant& variant : plan.variants) {
    v1::PlanVariant* wired = out->add_variants();
    EncodeSize(variant.measure, wired->mutable_measure());
    wired->set_most(variant.most);
    EncodeWithoutLedger(*variant.plan, wired->mutable_plan());
  }
  if (plan.search.level > 0) EncodeSearchHead(plan.search, out->mutable_search());
  if (plan.calibration.epoch > 0) {
    EncodeCalibration(plan.calibration, out->mutable_calibration());
  }
}

void EncodeLedger(const Plan& plan, v1::Plan* out) {
  for (const PlanDecision& decision : plan.decisions) {
    EncodeDecision(decision, out->add_decisions());
  }
  out->set_candidates(plan.candidates);
  if (!plan.search.kernels.empty()) EncodeSearchKernels(plan.search, out->mutable_search());
}

std::string Serialise(const v1::Plan& wire) {
  std::string bytes;
  bytes.reserve(wire.ByteSizeLong());  // no more: it is kept for long
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  wire.SerializeToCodedStream(&coded);
  coded.Trim();
  return bytes;
}

}  // namespace

void EncodeTotals(const PlanTotals& totals, v1::PlanTotals* out) {
  out->set_kernels(totals.kernels);
  out->set_launches(totals.launches);
  out->set_activation_bytes(totals.activation_bytes);
  out->set_weight_bytes(totals.weight_bytes);
  out->set_estimated_us(totals.estimated_us);
}

void EncodePlan(const Plan& plan, v1::Plan* out) {
  EncodeWithoutLedger(plan, out);
  EncodeLedger(plan, out);
}

std::string PlanToBytes(const Plan& plan) {
  v1::Plan wire;
  EncodeWithoutLedger(plan, &wire);
  return Serialise(wire);
}

std::string LedgerToBytes(const Plan& plan) {
  v1::Plan wire;
  EncodeLedger(plan, &wire);
  return Serialise(wire);
}

}  // namespace fusion
