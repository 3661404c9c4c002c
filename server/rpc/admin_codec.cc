#include "server/rpc/admin_codec.h"

#include "core/wire/basics/limits.h"
#include "core/wire/basics/scalars.h"
#include "fusion/v1/fusion_admin.pb.h"
#include "server/rpc/parse_request.h"

namespace fusion {
namespace {

absl::StatusOr<std::vector<Digest>> Keys(
    const google::protobuf::RepeatedPtrField<std::string>& wire, std::string_view field) {
  if (wire.size() > kMaxKernelKeys) {
    return InvalidArgument(field, ": ", wire.size(), " of them; at most ", kMaxKernelKeys);
  }
  std::vector<Digest> out;
  for (int i = 0; i < wire.size(); ++i) {
    absl::StatusOr<Digest> key = DigestFromWire(wire[i]);
    if (!key.ok()) return Annotate(key.status(), StrCat(field, "[", i, "]"));
    out.push_back(*key);
  }
  return out;
}

template <typename Message>
absl::Status Check(std::string_view bytes) {
  Message wire;
  return ParseRequest(bytes, &wire);
}

void Encode(const std::vector<StoreDamage>& damage,
            google::protobuf::RepeatedPtrField<v1::StoreDamage>* out) {
  for (const StoreDamage& one : damage) {
    v1::StoreDamage* wire = out->Add();
    wire->set_kind(one.kind);
    wire->set_name(TextToWire(one.name));
    wire->set_reason(TextToWire(one.reason));
  }
}

void EncodeWorkers(const ServerStatus& status, v1::CompileWorkers* out) {
  const WorkerPoolStats& stats = status.workers;
  out->set_limit(status.worker_limit);
  out->set_alive(stats.workers);
  out->set_running(stats.running);
  out->set_queued(stats.queued);
  out->set_queue_limit(status.compile_queue_limit);
  out->set_done(stats.done);
  out->set_failed(stats.failed);
  out->set_timed_out(stats.timed_out);
  out->set_out_of_memory(stats.out_of_memory);
  out->set_crashed(stats.crashed);
  out->set_cancelled(stats.cancelled);
  out->set_rejected(stats.rejected);
  out->set_restarts(stats.restarts);
  out->set_quarantined(status.quarantined);
  out->set_failures(status.failures);
}

void EncodeUse(const PlanUse& use, v1::MeasuredPlan* out) {
  out->set_plan_key(DigestToWire(use.plan_key));
  out->set_model_name(TextToWire(use.model_name));
  out->set_target(TextToWire(use.target));
  out->set_threads(use.threads);
  out->set_calls(use.calls);
  out->set_median_us(use.median_us);
  out->set_estimated_us(use.estimated_us);
  out->set_kernels(use.launches);
}

}  // namespace

absl::Status CheckStoreStatsRequest(std::string_view bytes) {
  return Check<v1::GetStoreStatsRequest>(bytes);
}
absl::Status CheckVerifyRequest(std::string_view bytes) {
  return Check<v1::VerifyStoreRequest>(bytes);
}
absl::Status CheckCompactRequest(std::string_view bytes) {
  return Check<v1::CompactStoreRequest>(bytes);
}

absl::StatusOr<PinQuery> DecodePinQuery(std::string_view bytes) {
  v1::SetPinnedRequest wire;
  RETURN_IF_ERROR(ParseRequest(bytes, &wire));
  PinQuery query{.plans = {}, .pinned = wire.pinned()};
  ASSIGN_OR_RETURN(query.plans, Keys(wire.plan_keys(), "plan_keys"));
  if (query.plans.empty()) return InvalidArgument("plan_keys: none is given; expected at least 1");
  return query;
}

absl::StatusOr<InvalidateQuery> DecodeInvalidateQuery(std::string_view bytes) {
  v1::InvalidateRequest wire;
  RETURN_IF_ERROR(ParseRequest(bytes, &wire));
  InvalidateQuery query;
  query.what.all = wire.all();
  query.reason = wire.reason();
  ASSIGN_OR_RETURN(query.what.plans, Keys(wire.plan_keys(), "plan_keys"));
  ASSIGN_OR_RETURN(query.what.kernels, Keys(wire.kernel_keys(), "kernel_keys"));
  const bool keys = !query.what.plans.empty() || !query.what.kernels.empty();
  if (keys == wire.all()) {
    return InvalidArgument("expected either plan_keys and kernel_keys, or all; got ",
                           keys ? "both" : "neither");
  }
  return query;
}

absl::StatusOr<SteerQuery> DecodeSteerQuery(std::string_view bytes) {
  constexpr size_t kMaxReasonBytes = 1024;
  v1::SteerEpochsRequest wire;
  RETURN_IF_ERROR(ParseRequest(bytes, &wire));
  if (wire.roll_back() < 0) {
    return InvalidArgument("roll_back: ", wire.roll_back(), "; expected the number of an epoch");
  }
  if (wire.train() == (wire.roll_back() > 0)) {
    return InvalidArgument("expected either train or roll_back; got ",
                           wire.train() ? "both" : "neither");
  }
  return SteerQuery{wire.train(), wire.roll_back(), wire.reason().substr(0, kMaxReasonBytes)};
}

absl::StatusOr<std::vector<Digest>> DecodeExportQuery(std::string_view bytes) {
  v1::ExportStoreRequest wire;
  RETURN_IF_ERROR(ParseRequest(bytes, &wire));
  return Keys(wire.plan_keys(), "plan_keys");
}

absl::StatusOr<std::string> DecodeChunk(std::string_view bytes) {
  v1::StoreChunk wire;
  RETURN_IF_ERROR(ParseRequest(bytes, &wire));
  if (wire.data().size() <= kMaxArchiveChunk) return std::move(*wire.mutable_data());
  return InvalidArgument("data: ", wire.data().size(), " bytes; at most ", kMaxArchiveChunk);
}

std::string EncodeChunk(std::string_view data) {
  v1::StoreChunk wire;
  wire.set_data(data.data(), data.size());
  return wire.SerializeAsString();
}

void EncodeTier(const StoreStats& tier, v1::StoreTier* out) {
  const std::string_view name = TierName(tier.tier);
  out->set_name(name.data(), name.size());
  out->set_plans(tier.plans);
  out->set_kernels(tier.kernels);
  out->set_bytes(tier.bytes);
  out->set_limit_bytes(tier.limit_bytes);
  out->set_disk_bytes(tier.disk_bytes);
  out->set_pinned_plans(tier.pinned_plans);
  out->set_pinned_bytes(tier.pinned_bytes);
  out->set_evicted(tier.evicted);
  out->set_dropped(tier.dropped);
  out->set_write_failures(tier.write_failures);
  out->set_unwritten_plans(tier.unwritten_plans);
  out->set_writable(tier.writable);
  out->set_not_writable(TextToWire(tier.not_writable));
}

std::string EncodeStoreStats(const std::vector<StoreStats>& tiers, const DiskFacts& disk,
                             const std::map<std::string, int64_t>& tenants) {
  v1::GetStoreStatsResponse wire;
  for (const StoreStats& tier : tiers) EncodeTier(tier, wire.add_tiers());
  wire.set_directory(TextToWire(disk.dir));
  wire.set_free_bytes(disk.free_bytes);
  wire.set_min_free_bytes(disk.min_free_bytes);
  wire.set_schema_version(static_cast<uint32_t>(disk.schema_version));
  wire.set_started_empty(disk.started_empty);
  wire.set_set_aside(TextToWire(disk.set_aside));
  wire.set_set_aside_bytes(disk.set_aside_bytes);
  for (const auto& [tenant, bytes] : tenants) {
    (*wire.mutable_tenant_bytes())[TextToWire(tenant)] += bytes;
  }
  return wire.SerializeAsString();
}

std::string EncodeCheck(const StoreCheck& check) {
  v1::VerifyStoreResponse wire;
  wire.set_plans(check.plans);
  wire.set_kernels(check.kernels);
  wire.set_bytes(check.bytes);
  wire.set_files(check.files);
  Encode(check.damage, wire.mutable_damage());
  wire.set_damaged(check.damaged);
  wire.set_missing_kernels(check.missing_kernels);
  return wire.SerializeAsString();
}

std::string EncodeCompaction(const StoreCompaction& sizes) {
  v1::CompactStoreResponse wire;
  wire.set_disk_bytes_before(sizes.bytes_before);
  wire.set_disk_bytes_after(sizes.bytes_after);
  return wire.SerializeAsString();
}

std::string EncodePinOutcome(const PinOutcome& outcome) {
  v1::SetPinnedResponse wire;
  wire.set_changed(outcome.changed);
  wire.set_pinned_plans(outcome.pinned_plans);
  wire.set_pinned_bytes(outcome.pinned_bytes);
  wire.set_missing_kernels(outcome.missing_kernels);
  wire.set_not_written(TextToWire(outcome.not_written));
  return wire.SerializeAsString();
}

std::string EncodeForgotten(const Forgotten& gone, int64_t failures) {
  v1::InvalidateResponse wire;
  wire.set_plans(gone.plans);
  wire.set_kernels(gone.kernels);
  wire.set_failures(failures);
  return wire.SerializeAsString();
}

std::string EncodeOutcomes(const std::vector<std::string>& outcomes) {
  v1::SteerEpochsResponse wire;
  for (const std::string& outcome : outcomes) wire.add_outcomes(TextToWire(outcome));
  return wire.SerializeAsString();
}

std::string EncodeImport(const ImportOutcome& outcome) {
  v1::ImportStoreResponse wire;
  wire.set_plans(outcome.plans);
  wire.set_kernels(outcome.kernels);
  wire.set_known(outcome.known);
  wire.set_remade(outcome.remade);
  Encode(outcome.refused, wire.mutable_refused());
  wire.set_refused_plans(outcome.refused_plans);
  return wire.SerializeAsString();
}

absl::Status CheckServerStatusRequest(std::string_view bytes) {
  return Check<v1::GetServerStatusRequest>(bytes);
}

std::string EncodeServerStatus(const ServerStatus& status) {
  v1::GetServerStatusResponse wire;
  wire.set_version(TextToWire(status.version));
  wire.set_uptime_seconds(ToMilliseconds(status.uptime) / 1e3);
  wire.set_ready(status.ready);
  wire.set_unix_ms(status.unix_ms);
  for (const MethodCounts& method : status.methods) {
    v1::MethodCalls* out = wire.add_methods();
    out->set_method(method.method);
    out->set_started(method.started);
    out->set_seconds(method.seconds);
    for (const auto& [code, count] : method.finished) (*out->mutable_finished())[code] = count;
  }
  for (const auto& [from, count] : status.plans) (*wire.mutable_plans())[from] = count;
  wire.set_warm_hits(status.warm_hits);
  wire.set_warm_misses(status.warm_misses);
  wire.set_calls(status.calls);
  wire.set_call_limit(status.call_limit);
  wire.set_calls_queued(status.calls_queued);
  wire.set_bytes(status.bytes);
  wire.set_limit_bytes(status.limit_bytes);
  for (const auto& [reason, count] : status.refused) (*wire.mutable_refused())[reason] = count;
  wire.set_connections(status.connections);
  wire.set_connection_limit(status.connection_limit);
  EncodeWorkers(status, wire.mutable_workers());
  for (const StoreStats& tier : status.tiers) EncodeTier(tier, wire.add_tiers());
  wire.set_measured_plans(status.measured_plans);
  for (const PlanUse& use : status.top_plans) EncodeUse(use, wire.add_top_plans());
  return wire.SerializeAsString();
}

}  // namespace fusion
