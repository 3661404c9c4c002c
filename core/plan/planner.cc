#include "core/plan/planner.h"

#include "core/plan/assembler.h"
#include "core/plan/grouping.h"

namespace fusion {
namespace {

absl::Status SumBaseline(const Grouping& nodes, GroupEvaluator* evaluator, PlanTotals* out) {
  for (const std::vector<LoopId>& loops : nodes.groups) {
    if (evaluator->AreConstant(loops)) continue;
    ASSIGN_OR_RETURN(const GroupVerdict* choice, evaluator->Evaluate(loops));
    const Estimate& e = choice->estimate;
    out->kernels += 1;
    out->launches += 1;
    out->activation_bytes += e.activation_bytes + e.recompute_bytes;
    out->weight_bytes += e.weight_bytes;
    out->estimated_us += e.time_us;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<PlannedModel> MakePlan(const Graph& graph, const DeviceSpec& device,
                                      const PlanOptions& options, const CancelToken* cancel,
                                      const std::map<NodeId, std::string>& alone) {
  PlannedModel model;
  ASSIGN_OR_RETURN(model.program, BuildProgram(graph));
  GroupEvaluator evaluator(model.program, device, options, cancel);
  ASSIGN_OR_RETURN(Grouping nodes, GroupByNode(graph, &evaluator));
  Grouping chosen = nodes;
  if (options.fusion == FusionMode::kFused) {
    ASSIGN_OR_RETURN(chosen, GrowGroups(nodes, options, alone, &evaluator));
  }
  Plan& plan = model.plan;
  plan.target = device.name;
  plan.isa = std::string(IsaName(device.isa));
  plan.threads = device.threads;
  plan.numerics = options.numerics;
  plan.fusion = options.fusion;
  plan.decisions = std::move(chosen.decisions);
  for (const auto& [node, reason] : alone) plan.fallbacks.push_back({node, reason});
  RETURN_IF_ERROR(Assemble(graph, chosen.groups, &evaluator, &model));
  RETURN_IF_ERROR(SumBaseline(nodes, &evaluator, &plan.op_by_op));
  absl::Status status = Verify(plan);
  if (!status.ok()) return Internal("the planner made an inconsistent plan: ", Message(status));
  return model;
}

}  // namespace fusion
