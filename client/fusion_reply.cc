#include "client/fusion_reply.h"

#include "core/wire/answer.h"
#include "core/wire/basics/scalars.h"
#include "core/wire/options/plan_lock.h"
#include "core/wire/plan.h"
#include "fusion/v1/fusion_service.pb.h"

namespace fusion {
namespace {

absl::Status CheckCount(std::string_view field, size_t count, size_t wanted) {
  if (count == wanted) return absl::OkStatus();
  return InvalidArgument(field, ": ", count, " entries, the plan has ", wanted);
}

absl::Status CheckBinding(const Binding& binding, const Plan& plan) {
  RETURN_IF_ERROR(CheckCount("binding.inputs", binding.inputs.size(), plan.inputs.size()));
  RETURN_IF_ERROR(CheckCount("binding.outputs", binding.outputs.size(),
                             ModelOutputs(plan.outputs.size(), plan.output_extents)));
  RETURN_IF_ERROR(CheckCount("binding.weights", binding.weights.size(), plan.weights.size()));
  return CheckCount("binding.nodes", binding.nodes.size(), static_cast<size_t>(plan.nodes));
}

absl::Status DecodeKernels(const v1::PlanFusionResponse& wire, FusionReply* out) {
  RETURN_IF_ERROR(
      CheckCount("kernels", static_cast<size_t>(wire.kernels_size()), out->plan.kernels.size()));
  for (int i = 0; i < wire.kernels_size(); ++i) {
    std::string field = StrCat("kernels[", i, "]");
    absl::StatusOr<KernelStatus> kernel = DecodeKernelStatus(wire.kernels(i));
    if (!kernel.ok()) return Annotate(kernel.status(), field);
    if (kernel->key != out->plan.kernels[static_cast<size_t>(i)].key) {
      return InvalidArgument(field, ": its key is not that of the plan's kernel");
    }
    out->kernels.push_back(*std::move(kernel));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<FusionReply> DecodeReply(const v1::PlanFusionResponse& wire) {
  FusionReply out;
  ASSIGN_OR_RETURN(out.plan, DecodePlan(wire.plan()));
  ASSIGN_OR_RETURN(out.plan_key, DigestFromWire(wire.plan_key()));
  out.binding = DecodeBinding(wire.binding());
  RETURN_IF_ERROR(CheckBinding(out.binding, out.plan));
  RETURN_IF_ERROR(DecodeKernels(wire, &out));
  out.cache = FromWire(wire.cache());
  for (const v1::StageTime& stage : wire.stages()) out.stages.push_back(DecodeStageTime(stage));
  for (const v1::Dump& dump : wire.dumps()) {
    absl::StatusOr<Dump> text = DecodeDump(dump);
    if (text.ok()) out.dumps.push_back(*std::move(text));  // a kind we did not ask for is no error
  }
  if (wire.has_miss()) {
    absl::StatusOr<MissExplanation> miss = DecodeMiss(wire.miss());
    if (!miss.ok()) return Annotate(miss.status(), "miss");
    out.miss = *std::move(miss);
  }
  if (wire.has_lock()) {
    absl::StatusOr<PlanLock> lock = DecodeLock(wire.lock());
    if (!lock.ok()) return Annotate(lock.status(), "lock");
    out.lock = std::make_shared<const PlanLock>(*std::move(lock));
  }
  out.warnings = {wire.warnings().begin(), wire.warnings().end()};
  return out;
}

}  // namespace fusion
