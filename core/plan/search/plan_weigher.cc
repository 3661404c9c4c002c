#include "core/plan/search/plan_weigher.h"

#include <algorithm>

#include "core/benefit/compile_cost.h"
#include "core/plan/assemble/loop_tensors.h"
#include "core/plan/sets/grouping.h"
#include "core/plan/sets/loop_sets.h"
#include "core/plan/sets/planned_model.h"
#include "core/schedule/memory/scratch.h"
#include "core/schedule/tiles/legality.h"

namespace fusion {
namespace {

// Stands for packed weights among the tensors of a launch: they are made before the first run, and
// no tensor of a run can use their memory.
constexpr int kPackedTensor = -1;

}  // namespace

int PlanWeigher::KernelOf(const Schedule& schedule) {
  auto [it, fresh] = kernel_of_.try_emplace(ToString(schedule), static_cast<int>(kernels_.size()));
  if (fresh) {
    const DeviceSpec& device = evaluator_.device();
    Kernel kernel{.workspace_bytes = PlanWorkspace(schedule, device.alignment).bytes,
                  .compile_s = CompileSeconds(it->first)};
    // Explicit memory on chip is not memory of the run.
    if (!device.explicit_memory) kernel.scratch_bytes = NeedOnChip(schedule, device).staged;
    kernels_.push_back(kernel);
  }
  return it->second;
}

const std::vector<int>& PlanWeigher::KernelsOf(const GroupChoice& choice) {
  auto [it, fresh] = kernels_of_.try_emplace(&choice);
  std::vector<int>& kernels = it->second;
  if (!fresh) return kernels;
  if (choice.body != nullptr) {
    for (const PlannedKernel& kernel : choice.body->kernels) {
      kernels.push_back(KernelOf(kernel.schedule));
    }
    return kernels;
  }
  kernels.push_back(KernelOf(choice.lowered.schedule));
  for (size_t p = 0; p < choice.lowered.params.size(); ++p) {
    if (!choice.lowered.params[p].packed) continue;
    auto [of, param] = choice.OriginOf(p);
    kernels.push_back(KernelOf(PackSchedule(of->group, of->lowered, param)));
  }
  return kernels;
}

absl::Status PlanWeigher::AddLoop(LoopId loop, const GroupVerdict& verdict,
                                  const GroupChoice& choice, Weighing* weighing) {
  const Plan& body = choice.body->plan;
  // The numbers of places make no difference.
  ASSIGN_OR_RETURN(LoopTensors tensors,
                   AddLoopTensors(evaluator_.program().op(loop), body, /*first_place=*/0,
                                  evaluator_, &weighing->tensors));
  weighing->tensors.AddLaunch(/*prepare=*/false, tensors.used);
  weighing->point.latency_us += verdict.weighed_us();
  weighing->point.launches += static_cast<int64_t>(body.launches.size());
  UseKernels(choice, weighing);
  return absl::OkStatus();
}

void PlanWeigher::UseKernels(const GroupChoice& choice, Weighing* weighing) {
  for (int kernel : KernelsOf(choice)) {
    weighing->used.resize(kernels_.size(), false);
    weighing->used[static_cast<size_t>(kernel)] = true;
  }
}

void PlanWeigher::AddLaunch(const std::vector<LoopId>& loops, const GroupVerdict& verdict,
                            const GroupChoice& choice, Weighing* weighing) {
  const std::vector<ValueId> values = evaluator_.Values(loops);
  std::vector<int> passed;
  for (const LoweredParam& param : choice.lowered.params) {
    passed.push_back(param.packed ? kPackedTensor
                                  : weighing->tensors.Of(values[static_cast<size_t>(param.value)]));
  }
  const bool prepare = evaluator_.AreConstant(loops);
  if (!prepare) {
    weighing->point.latency_us += verdict.weighed_us();
    weighing->point.launches += 1;
    weighing->tensors.NoteInPlace(choice.lowered.schedule, passed);
  }
  weighing->tensors.AddLaunch(prepare, passed);
  UseKernels(choice, weighing);
}

absl::StatusOr<PlanPoint> PlanWeigher::Weigh(const std::vector<std::vector<LoopId>>& groups,
                                             const std::vector<bool>& follows) {
  Plan plan;
  Weighing weighing{.point = {},
                    .tensors = TensorTable(evaluator_.program(), evaluator_, &plan),
                    .used = std::vector<bool>(kernels_.size(), false)};
  for (size_t g = 0; g < groups.size();) {
    const size_t end = EndOfLaunch(follows, g, groups.size());
    if (end == g + 1) {
      ASSIGN_OR_RETURN(const GroupVerdict* verdict, evaluator_.Evaluate(groups[g]));
      ASSIGN_OR_RETURN(const GroupChoice* choice, evaluator_.Choose(groups[g]));
      if (choice->body != nullptr) {
        RETURN_IF_ERROR(AddLoop(groups[g][0], *verdict, *choice, &weighing));
      } else {
        AddLaunch(groups[g], *verdict, *choice, &weighing);
      }
    } else {
      SequentialPhases sequence(groups.begin() + static_cast<int64_t>(g),
                                groups.begin() + static_cast<int64_t>(end));
      ASSIGN_OR_RETURN(const GroupVerdict* verdict, evaluator_.EvaluateSequential(sequence));
      ASSIGN_OR_RETURN(const GroupChoice* choice, evaluator_.ChooseSequential(sequence));
      AddLaunch(UnionOf(sequence), *verdict, *choice, &weighing);
    }
    g = end;
  }
  PlanPoint& point = weighing.point;
  weighing.tensors.Place();
  Kernel most;
  for (size_t k = 0; k < weighing.used.size(); ++k) {
    if (!weighing.used[k]) continue;
    point.kernels += 1;
    point.compile_s += kernels_[k].compile_s;
    most.scratch_bytes = std::max(most.scratch_bytes, kernels_[k].scratch_bytes);
    most.workspace_bytes = std::max(most.workspace_bytes, kernels_[k].workspace_bytes);
  }
  point.peak_bytes =
      plan.arena_bytes + evaluator_.threads() * most.scratch_bytes + most.workspace_bytes;
  return point;
}

}  // namespace fusion
