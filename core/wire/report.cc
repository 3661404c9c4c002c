#include "core/wire/report.h"

#include <set>

#include "core/device/target.h"
#include "core/wire/basics/scalars.h"
#include "core/wire/plan.h"
#include "core/wire/report_origin.h"
#include "fusion/v1/fusion_service.pb.h"

namespace fusion {
namespace {

using Doubles = google::protobuf::RepeatedField<double>;

absl::Status CheckSamples(const Doubles& samples, std::string_view field) {
  if (samples.size() > kMaxReportSamples) {
    return InvalidArgument(field, ": ", samples.size(), " entries; expected at most ",
                           kMaxReportSamples);
  }
  for (int i = 0; i < samples.size(); ++i) {
    // Written so that NaN fails too.
    if (samples[i] > 0 && samples[i] <= kMaxLatencyUs) continue;
    return InvalidArgument(field, "[", i, "]: ", samples[i],
                           "; expected microseconds, more than 0, at most ", kMaxLatencyUs);
  }
  return absl::OkStatus();
}

absl::Status CheckCalls(int64_t calls, int64_t samples, std::string_view field) {
  if (calls == 0 || (calls >= samples && calls <= kMaxReportCalls)) return absl::OkStatus();
  return InvalidArgument(field, ": ", calls, "; expected 0, or ", samples, " (the samples) to ",
                         kMaxReportCalls);
}

// The times of a launch or of whole runs.
struct ReportedTimes {
  std::vector<double> samples_us;
  int64_t calls = 0;
};

// `summary` (may be null) stands in place of `samples`; `calls_field` counts either.
absl::StatusOr<ReportedTimes> DecodeReported(const Doubles& samples,
                                             const v1::TimesSummary* summary, int64_t calls,
                                             std::string_view samples_field,
                                             std::string_view summary_field,
                                             std::string_view calls_field) {
  if (summary == nullptr) {
    RETURN_IF_ERROR(CheckSamples(samples, samples_field));
    RETURN_IF_ERROR(CheckCalls(calls, samples.size(), calls_field));
    return ReportedTimes{.samples_us = {samples.begin(), samples.end()}, .calls = calls};
  }
  if (!samples.empty()) {
    return InvalidArgument(summary_field, ": given beside ", samples_field,
                           "; expected one of them");
  }
  ASSIGN_OR_RETURN(TimesSummary times, DecodeTimesSummary(*summary, summary_field));
  RETURN_IF_ERROR(CheckCalls(calls, times.n, calls_field));
  return ReportedTimes{.samples_us = SamplesOf(times, kMaxLatencyUs),
                       .calls = calls == 0 ? times.n : calls};
}

absl::StatusOr<LaunchLatency> DecodeLaunch(const v1::LaunchLatency& wire, std::string_view field) {
  if (wire.launch() < 0) {
    return InvalidArgument(field, ".launch: ", wire.launch(), "; expected 0 or more");
  }
  const v1::TimesSummary* summary = wire.has_summary() ? &wire.summary() : nullptr;
  if (wire.samples_us().empty() && summary == nullptr) {
    return InvalidArgument(field, ".samples_us: none; expected at least one, or a summary");
  }
  ASSIGN_OR_RETURN(
      ReportedTimes times,
      DecodeReported(wire.samples_us(), summary, wire.calls(), StrCat(field, ".samples_us"),
                     StrCat(field, ".summary"), StrCat(field, ".calls")));
  return LaunchLatency{
      .launch = wire.launch(), .samples_us = std::move(times.samples_us), .calls = times.calls};
}

void EncodeSummary(const LatencySummary& summary, v1::LatencySummary* out) {
  out->set_calls(summary.calls);
  out->set_samples(summary.samples);
  out->set_median_us(summary.median_us);
  out->set_p10_us(summary.p10_us);
  out->set_p90_us(summary.p90_us);
  out->set_min_us(summary.min_us);
}

absl::StatusOr<LatencySummary> DecodeSummary(const v1::LatencySummary& wire) {
  RETURN_IF_ERROR(CheckCounted("calls", wire.calls()));
  RETURN_IF_ERROR(CheckCounted("samples", wire.samples()));
  RETURN_IF_ERROR(CheckMeasured("median_us", wire.median_us()));
  RETURN_IF_ERROR(CheckMeasured("p10_us", wire.p10_us()));
  RETURN_IF_ERROR(CheckMeasured("p90_us", wire.p90_us()));
  RETURN_IF_ERROR(CheckMeasured("min_us", wire.min_us()));
  return LatencySummary{.calls = wire.calls(),
                        .samples = wire.samples(),
                        .median_us = wire.median_us(),
                        .p10_us = wire.p10_us(),
                        .p90_us = wire.p90_us(),
                        .min_us = wire.min_us()};
}

void EncodeKernelReport(const KernelReport& report, v1::KernelReport* out) {
  out->set_kernel_key(DigestToWire(report.kernel_key));
  out->set_label(TextToWire(report.label));
  out->set_launches(report.launches);
  out->set_nodes(report.nodes);
  EncodeSummary(report.measured, out->mutable_measured());
  out->set_estimated_us(report.estimated_us);
  out->set_op_by_op_us(report.op_by_op_us);
  out->set_activation_bytes(report.activation_bytes);
  out->set_op_by_op_activation_bytes(report.op_by_op_activation_bytes);
  out->set_op_by_op_measured_us(report.op_by_op_measured_us);
  out->set_sections(report.sections);
}

// A later server may know more sections.
SectionSet DecodeSections(uint32_t sections) {
  return static_cast<SectionSet>(sections & kEverySection);
}

absl::StatusOr<KernelReport> DecodeKernelReport(const v1::KernelReport& wire) {
  KernelReport out;
  ASSIGN_OR_RETURN(out.kernel_key, DigestFromWire(wire.kernel_key()));
  RETURN_IF_ERROR(CheckCounted("launches", wire.launches()));
  RETURN_IF_ERROR(CheckCounted("nodes", wire.nodes()));
  RETURN_IF_ERROR(CheckMeasured("estimated_us", wire.estimated_us()));
  RETURN_IF_ERROR(CheckMeasured("op_by_op_us", wire.op_by_op_us()));
  RETURN_IF_ERROR(CheckCounted("activation_bytes", wire.activation_bytes()));
  RETURN_IF_ERROR(CheckCounted("op_by_op_activation_bytes", wire.op_by_op_activation_bytes()));
  RETURN_IF_ERROR(CheckMeasured("op_by_op_measured_us", wire.op_by_op_measured_us()));
  ASSIGN_OR_RETURN(out.measured, DecodeSummary(wire.measured()));
  out.op_by_op_measured_us = wire.op_by_op_measured_us();
  out.sections = DecodeSections(wire.sections());
  out.label = wire.label();
  out.launches = wire.launches();
  out.nodes = wire.nodes();
  out.estimated_us = wire.estimated_us();
  out.op_by_op_us = wire.op_by_op_us();
  out.activation_bytes = wire.activation_bytes();
  out.op_by_op_activation_bytes = wire.op_by_op_activation_bytes();
  return out;
}

void EncodeSectionReport(const SectionReport& report, v1::SectionReport* out) {
  out->set_sections(report.sections);
  out->set_launches(report.launches);
  out->set_measured_us(report.measured_us);
  out->set_estimated_us(report.estimated_us);
  out->set_activation_bytes(report.activation_bytes);
  out->set_op_by_op_kernels(report.op_by_op_kernels);
  out->set_op_by_op_measured_us(report.op_by_op_measured_us);
  out->set_op_by_op_us(report.op_by_op_us);
  out->set_op_by_op_activation_bytes(report.op_by_op_activation_bytes);
}

absl::StatusOr<SectionReport> DecodeSectionReport(const v1::SectionReport& wire) {
  RETURN_IF_ERROR(CheckCounted("launches", wire.launches()));
  RETURN_IF_ERROR(CheckMeasured("measured_us", wire.measured_us()));
  RETURN_IF_ERROR(CheckMeasured("estimated_us", wire.estimated_us()));
  RETURN_IF_ERROR(CheckCounted("activation_bytes", wire.activation_bytes()));
  RETURN_IF_ERROR(CheckCounted("op_by_op_kernels", wire.op_by_op_kernels()));
  RETURN_IF_ERROR(CheckMeasured("op_by_op_measured_us", wire.op_by_op_measured_us()));
  RETURN_IF_ERROR(CheckMeasured("op_by_op_us", wire.op_by_op_us()));
  RETURN_IF_ERROR(CheckCounted("op_by_op_activation_bytes", wire.op_by_op_activation_bytes()));
  return SectionReport{.sections = DecodeSections(wire.sections()),
                       .launches = wire.launches(),
                       .measured_us = wire.measured_us(),
                       .estimated_us = wire.estimated_us(),
                       .activation_bytes = wire.activation_bytes(),
                       .op_by_op_kernels = wire.op_by_op_kernels(),
                       .op_by_op_measured_us = wire.op_by_op_measured_us(),
                       .op_by_op_us = wire.op_by_op_us(),
                       .op_by_op_activation_bytes = wire.op_by_op_activation_bytes()};
}

}  // namespace

void EncodeLatencyReport(const LatencyReport& report, v1::ReportLatencyRequest* out) {
  out->set_plan_key(DigestToWire(report.plan_key));
  if (report.kernels != Digest()) out->set_kernels_sha256(DigestToWire(report.kernels));
  for (const LaunchLatency& launch : report.launches) {
    v1::LaunchLatency* wire = out->add_launches();
    wire->set_launch(launch.launch);
    wire->mutable_samples_us()->Add(launch.samples_us.begin(), launch.samples_us.end());
    wire->set_calls(launch.calls);
  }
  out->mutable_run_samples_us()->Add(report.run_samples_us.begin(), report.run_samples_us.end());
  out->set_runs(report.runs);
  out->set_threads(report.threads);
  out->set_device(Beginning(TextToWire(report.device), kMaxDeviceNameBytes));
}

absl::StatusOr<LatencyReport> DecodeLatencyReport(const v1::ReportLatencyRequest& wire) {
  LatencyReport out;
  absl::StatusOr<Digest> key = DigestFromWire(wire.plan_key());
  if (!key.ok()) return Annotate(key.status(), "plan_key");
  out.plan_key = *key;
  if (!wire.kernels_sha256().empty()) {
    absl::StatusOr<Digest> kernels = DigestFromWire(wire.kernels_sha256());
    if (!kernels.ok()) return Annotate(kernels.status(), "kernels_sha256");
    out.kernels = *kernels;
  }
  std::set<int> seen;
  for (int i = 0; i < wire.launches_size(); ++i) {
    std::string field = StrCat("launches[", i, "]");
    ASSIGN_OR_RETURN(LaunchLatency launch, DecodeLaunch(wire.launches(i), field));
    if (!seen.insert(launch.launch).second) {
      return InvalidArgument(field, ".launch: ", launch.launch,
                             " for the second time; expected one entry per launch");
    }
    out.launches.push_back(std::move(launch));
  }
  ASSIGN_OR_RETURN(
      ReportedTimes runs,
      DecodeReported(wire.run_samples_us(), wire.has_run_summary() ? &wire.run_summary() : nullptr,
                     wire.runs(), "run_samples_us", "run_summary", "runs"));
  out.run_samples_us = std::move(runs.samples_us);
  out.runs = runs.calls;
  if (wire.threads() < 1 || wire.threads() > kMaxTargetThreads) {
    return InvalidArgument("threads: ", wire.threads(), "; expected 1..", kMaxTargetThreads);
  }
  out.threads = wire.threads();
  out.device = Beginning(wire.device(), kMaxDeviceNameBytes);
  if (out.launches.empty() && out.run_samples_us.empty() && out.runs == 0) {
    return InvalidArgument("launches: none, and no runs either; expected at least one measurement");
  }
  return out;
}

absl::StatusOr<int> DecodePageSize(std::string_view field, int wanted) {
  if (wanted < 0 || wanted > kMaxListedPlans) {
    return InvalidArgument(field, ": ", wanted, "; expected 1..", kMaxListedPlans, ", or 0 for ",
                           kDefaultListedPlans);
  }
  return wanted == 0 ? kDefaultListedPlans : wanted;
}

void EncodeReportQuery(const ReportQuery& query, v1::GetReportRequest* out) {
  if (query.plan.has_value()) out->set_plan_key(DigestToWire(*query.plan));
  out->set_limit(query.limit);
}

absl::StatusOr<ReportQuery> DecodeReportQuery(const v1::GetReportRequest& wire) {
  ReportQuery out;
  if (!wire.plan_key().empty()) {
    absl::StatusOr<Digest> key = DigestFromWire(wire.plan_key());
    if (!key.ok()) return Annotate(key.status(), "plan_key");
    out.plan = *key;
  }
  ASSIGN_OR_RETURN(out.limit, DecodePageSize("limit", wire.limit()));
  return out;
}

void EncodePlanReport(const PlanReport& report, v1::PlanReport* out) {
  out->set_plan_key(DigestToWire(report.plan_key));
  out->set_model_name(TextToWire(report.model_name));
  out->set_target(TextToWire(report.target));
  out->set_threads(report.threads);
  for (const std::string& device : report.devices) out->add_devices(TextToWire(device));
  out->set_last_report_unix_ms(report.last_report_unix_ms);
  EncodeSummary(report.runs, out->mutable_runs());
  EncodeTotals(report.totals, out->mutable_totals());
  EncodeTotals(report.op_by_op, out->mutable_op_by_op());
  for (const KernelReport& kernel : report.kernels) EncodeKernelReport(kernel, out->add_kernels());
  out->set_fusion(ToWire(report.fusion));
  out->set_peak_bytes(report.peak_bytes);
  out->set_op_by_op_peak_bytes(report.op_by_op_peak_bytes);
  if (report.op_by_op_plan != Digest()) {
    out->set_op_by_op_plan(DigestToWire(report.op_by_op_plan));
    EncodeSummary(report.op_by_op_runs, out->mutable_op_by_op_runs());
  }
  for (const SectionReport& section : report.sections) {
    EncodeSectionReport(section, out->add_sections());
  }
}

absl::StatusOr<PlanReport> DecodePlanReport(const v1::PlanReport& wire) {
  PlanReport out;
  ASSIGN_OR_RETURN(out.plan_key, DigestFromWire(wire.plan_key()));
  ASSIGN_OR_RETURN(out.runs, DecodeSummary(wire.runs()));
  ASSIGN_OR_RETURN(out.totals, DecodeTotals(wire.totals()));
  ASSIGN_OR_RETURN(out.op_by_op, DecodeTotals(wire.op_by_op()));
  out.model_name = wire.model_name();
  out.target = wire.target();
  out.threads = wire.threads();
  out.devices.assign(wire.devices().begin(), wire.devices().end());
  out.last_report_unix_ms = wire.last_report_unix_ms();
  for (int k = 0; k < wire.kernels_size(); ++k) {
    absl::StatusOr<KernelReport> kernel = DecodeKernelReport(wire.kernels(k));
    if (!kernel.ok()) return Annotate(kernel.status(), StrCat("kernels[", k, "]"));
    out.kernels.push_back(*std::move(kernel));
  }
  ASSIGN_OR_RETURN(out.fusion, FromWire(wire.fusion()));
  RETURN_IF_ERROR(CheckCounted("peak_bytes", wire.peak_bytes()));
  RETURN_IF_ERROR(CheckCounted("op_by_op_peak_bytes", wire.op_by_op_peak_bytes()));
  out.peak_bytes = wire.peak_bytes();
  out.op_by_op_peak_bytes = wire.op_by_op_peak_bytes();
  if (!wire.op_by_op_plan().empty()) {
    ASSIGN_OR_RETURN(out.op_by_op_plan, DigestFromWire(wire.op_by_op_plan()));
    ASSIGN_OR_RETURN(out.op_by_op_runs, DecodeSummary(wire.op_by_op_runs()));
  }
  for (int s = 0; s < wire.sections_size(); ++s) {
    absl::StatusOr<SectionReport> section = DecodeSectionReport(wire.sections(s));
    if (!section.ok()) return Annotate(section.status(), StrCat("sections[", s, "]"));
    out.sections.push_back(*section);
  }
  return out;
}

void EncodePlanSummary(const PlanSummary& summary, v1::PlanSummary* out) {
  out->set_plan_key(DigestToWire(summary.plan_key));
  out->set_created_unix_ms(summary.created_unix_ms);
  out->set_target(TextToWire(summary.target));
  out->set_threads(summary.threads);
  out->set_fusion(ToWire(summary.fusion));
  out->set_numerics(ToWire(summary.numerics));
  out->set_nodes(summary.nodes);
  EncodeTotals(summary.totals, out->mutable_totals());
  EncodeTotals(summary.op_by_op, out->mutable_op_by_op());
  out->set_fallbacks(summary.fallbacks);
  out->set_bytes(summary.bytes);
  out->set_distinct_kernels(summary.distinct_kernels);
  out->set_compiled_kernels(summary.compiled_kernels);
  out->set_pinned(summary.pinned);
  out->set_tenant(TextToWire(summary.tenant));
  out->set_model_name(TextToWire(summary.model_name));
}

absl::StatusOr<PlanSummary> DecodePlanSummary(const v1::PlanSummary& wire) {
  PlanSummary out;
  ASSIGN_OR_RETURN(out.plan_key, DigestFromWire(wire.plan_key()));
  ASSIGN_OR_RETURN(out.fusion, FromWire(wire.fusion()));
  ASSIGN_OR_RETURN(out.numerics, FromWire(wire.numerics()));
  ASSIGN_OR_RETURN(out.totals, DecodeTotals(wire.totals()));
  ASSIGN_OR_RETURN(out.op_by_op, DecodeTotals(wire.op_by_op()));
  RETURN_IF_ERROR(CheckCounted("nodes", wire.nodes()));
  RETURN_IF_ERROR(CheckCounted("fallbacks", wire.fallbacks()));
  RETURN_IF_ERROR(CheckCounted("bytes", wire.bytes()));
  RETURN_IF_ERROR(CheckCounted("distinct_kernels", wire.distinct_kernels()));
  RETURN_IF_ERROR(CheckCounted("compiled_kernels", wire.compiled_kernels()));
  out.created_unix_ms = wire.created_unix_ms();
  out.target = wire.target();
  out.threads = wire.threads();
  out.nodes = wire.nodes();
  out.fallbacks = wire.fallbacks();
  out.bytes = wire.bytes();
  out.distinct_kernels = wire.distinct_kernels();
  out.compiled_kernels = wire.compiled_kernels();
  out.pinned = wire.pinned();
  out.tenant = wire.tenant();
  out.model_name = wire.model_name();
  return out;
}

void EncodePlanProgress(const PlanProgress& progress, v1::PlanProgress* out) {
  out->set_stage(TextToWire(progress.stage));
  out->set_elapsed_ms(ToMilliseconds(progress.elapsed));
  out->set_done(progress.done);
  out->set_total(progress.total);
}

PlanProgress DecodePlanProgress(const v1::PlanProgress& wire) {
  constexpr double kDay = 24 * 3600 * 1e3;
  double ms = wire.elapsed_ms();
  bool sane = ms >= 0 && ms <= kDay;
  PlanProgress out{.stage = wire.stage(),
                   .elapsed = Nanoseconds(sane ? static_cast<int64_t>(ms * 1e6 + 0.5) : 0)};
  if (wire.done() >= 0 && wire.done() <= wire.total()) {
    out.done = wire.done();
    out.total = wire.total();
  }
  return out;
}

void EncodeCapabilities(const Capabilities& capabilities, v1::GetCapabilitiesResponse* out) {
  out->set_version(TextToWire(capabilities.version));
  out->set_plan_version(capabilities.plan_version);
  out->set_kernel_abi_version(capabilities.kernel_abi_version);
  out->set_compiler(TextToWire(capabilities.compiler));
  out->set_workers(capabilities.workers);
  out->set_durable_store(capabilities.durable_store);
  for (const DeviceCapability& device : capabilities.devices) {
    v1::DeviceCapability* wire = out->add_devices();
    wire->set_name(TextToWire(device.name));
    wire->set_description(TextToWire(device.description));
    wire->set_backend(TextToWire(device.backend));
    wire->set_isa(TextToWire(device.isa));
  }
  for (const OpCapability& op : capabilities.ops) {
    v1::OpCapability* wire = out->add_ops();
    wire->set_name(TextToWire(op.name));
    wire->set_min_opset(op.min_opset);
    wire->set_max_opset(op.max_opset);
  }
  for (const ServiceLimit& limit : capabilities.limits) {
    v1::Limit* wire = out->add_limits();
    wire->set_name(TextToWire(limit.name));
    wire->set_value(limit.value);
    wire->set_unit(TextToWire(limit.unit));
    wire->set_option(TextToWire(limit.option));
  }
  out->set_sandbox(TextToWire(capabilities.sandbox));
  for (const RegisteredCapability& kernel : capabilities.registered) {
    v1::RegisteredKernelCapability* wire = out->add_registered_kernels();
    wire->set_name(TextToWire(kernel.name));
    wire->set_pattern(TextToWire(kernel.pattern));
    wire->set_source_sha256(DigestToWire(kernel.source));
    wire->set_force(kernel.force);
    wire->set_state(ToWire(kernel.state));
    wire->set_reason(TextToWire(kernel.reason));
  }
  out->set_authentication(TextToWire(capabilities.authentication));
  out->set_tenant(TextToWire(capabilities.tenant));
  for (const std::string& role : capabilities.roles) out->add_roles(TextToWire(role));
  for (const std::string& key : capabilities.signing_keys) out->add_signing_keys(TextToWire(key));
}

Capabilities DecodeCapabilities(const v1::GetCapabilitiesResponse& wire) {
  Capabilities out{.version = wire.version(),
                   .plan_version = wire.plan_version(),
                   .kernel_abi_version = wire.kernel_abi_version(),
                   .compiler = wire.compiler(),
                   .workers = std::max(wire.workers(), 0),
                   .durable_store = wire.durable_store(),
                   .devices = {},
                   .ops = {},
                   .limits = {},
                   .sandbox = wire.sandbox()};
  for (const v1::DeviceCapability& device : wire.devices()) {
    out.devices.push_back({device.name(), device.description(), device.backend(), device.isa()});
  }
  for (const v1::OpCapability& op : wire.ops()) {
    out.ops.push_back({op.name(), op.min_opset(), op.max_opset()});
  }
  for (const v1::Limit& limit : wire.limits()) {
    out.limits.push_back({limit.name(), limit.value(), limit.unit(), limit.option()});
  }
  for (const v1::RegisteredKernelCapability& kernel : wire.registered_kernels()) {
    out.registered.push_back({.name = kernel.name(),
                              .pattern = kernel.pattern(),
                              .source = DigestFromWire(kernel.source_sha256()).value_or(Digest{}),
                              .force = kernel.force(),
                              .state = FromWire(kernel.state()).value_or(RegisteredState::kUnused),
                              .reason = kernel.reason()});
  }
  out.authentication = wire.authentication();
  out.tenant = wire.tenant();
  out.roles = {wire.roles().begin(), wire.roles().end()};
  out.signing_keys = {wire.signing_keys().begin(), wire.signing_keys().end()};
  return out;
}

}  // namespace fusion
