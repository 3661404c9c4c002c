#include "client/fusion_reply.h"

#include <cmath>

#include "core/wire/kernel.h"
#include "core/wire/plan.h"
#include "core/wire/scalars.h"
#include "fusion/v1/fusion_service.pb.h"

namespace fusion {
namespace {

std::vector<std::string> Names(const google::protobuf::RepeatedPtrField<std::string>& names) {
  return {names.begin(), names.end()};
}

absl::Status CheckCount(std::string_view field, size_t count, size_t wanted) {
  if (count == wanted) return absl::OkStatus();
  return InvalidArgument(field, ": ", count, " entries, the plan has ", wanted);
}

absl::StatusOr<FusionReply::Binding> DecodeBinding(const v1::Binding& wire, const Plan& plan) {
  FusionReply::Binding out{Names(wire.inputs()), Names(wire.outputs()), Names(wire.weights()),
                           Names(wire.nodes())};
  RETURN_IF_ERROR(CheckCount("binding.inputs", out.inputs.size(), plan.inputs.size()));
  RETURN_IF_ERROR(CheckCount("binding.outputs", out.outputs.size(), plan.outputs.size()));
  RETURN_IF_ERROR(CheckCount("binding.weights", out.weights.size(), plan.weights.size()));
  RETURN_IF_ERROR(CheckCount("binding.nodes", out.nodes.size(), static_cast<size_t>(plan.nodes)));
  return out;
}

absl::StatusOr<FusionReply::Kernel> DecodeKernelStatus(const v1::KernelStatus& wire) {
  FusionReply::Kernel out;
  ASSIGN_OR_RETURN(out.key, DigestFromWire(wire.key()));
  ASSIGN_OR_RETURN(out.state, FromWire(wire.state()));
  out.cached = wire.cached();
  out.compile_ms = wire.compile_ms();
  if (!std::isfinite(out.compile_ms) || wire.bytes() < 0) {
    return InvalidArgument("bytes and times below zero");
  }
  if (out.state != KernelState::kReady) return out;
  ASSIGN_OR_RETURN(out.content, DigestFromWire(wire.content_sha256()));
  out.bytes = wire.bytes();
  ASSIGN_OR_RETURN(out.check, DecodeCheckReport(wire.check()));
  return out;
}

absl::Status DecodeKernels(const v1::PlanFusionResponse& wire, FusionReply* out) {
  RETURN_IF_ERROR(
      CheckCount("kernels", static_cast<size_t>(wire.kernels_size()), out->plan.kernels.size()));
  for (int i = 0; i < wire.kernels_size(); ++i) {
    std::string field = StrCat("kernels[", i, "]");
    absl::StatusOr<FusionReply::Kernel> kernel = DecodeKernelStatus(wire.kernels(i));
    if (!kernel.ok()) return Annotate(kernel.status(), field);
    if (kernel->key != out->plan.kernels[static_cast<size_t>(i)].key) {
      return InvalidArgument(field, ": its key is not that of the plan's kernel");
    }
    out->kernels.push_back(*std::move(kernel));
  }
  return absl::OkStatus();
}

FusionReply::Cache DecodeCache(v1::CacheOutcome outcome) {
  switch (outcome) {
    case v1::CACHE_OUTCOME_HIT_MEMORY:
      return FusionReply::Cache::kHitMemory;
    case v1::CACHE_OUTCOME_HIT_STORE:
      return FusionReply::Cache::kHitStore;
    case v1::CACHE_OUTCOME_SHARED_FLIGHT:
      return FusionReply::Cache::kSharedFlight;
    default:
      return FusionReply::Cache::kMiss;
  }
}

}  // namespace

std::string_view CacheName(FusionReply::Cache cache) {
  switch (cache) {
    case FusionReply::Cache::kMiss:
      return "planned";
    case FusionReply::Cache::kHitMemory:
      return "memory";
    case FusionReply::Cache::kHitStore:
      return "store";
    case FusionReply::Cache::kSharedFlight:
      return "shared";
  }
  return "";
}

absl::StatusOr<FusionReply> DecodeReply(const v1::PlanFusionResponse& wire) {
  FusionReply out;
  ASSIGN_OR_RETURN(out.plan, DecodePlan(wire.plan()));
  ASSIGN_OR_RETURN(out.plan_key, DigestFromWire(wire.plan_key()));
  ASSIGN_OR_RETURN(out.binding, DecodeBinding(wire.binding(), out.plan));
  RETURN_IF_ERROR(DecodeKernels(wire, &out));
  out.cache = DecodeCache(wire.cache());
  for (const v1::StageTime& stage : wire.stages()) {
    out.stages.push_back({stage.stage(), stage.milliseconds()});
  }
  for (const v1::Dump& dump : wire.dumps()) {
    if (dump.kind() < v1::DUMP_KIND_GRAPH || dump.kind() > v1::DUMP_KIND_SOURCE) continue;
    out.texts.push_back(
        {static_cast<PlanText>(dump.kind() - v1::DUMP_KIND_GRAPH), dump.name(), dump.text()});
  }
  out.warnings = Names(wire.warnings());
  return out;
}

}  // namespace fusion
