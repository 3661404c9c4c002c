#include <algorithm>
#include <map>
#include <numeric>

#include "core/plan/cost/evaluator.h"
#include "core/plan/sets/planned_model.h"

namespace fusion {

absl::StatusOr<const GroupVerdict*> GroupEvaluator::EvaluateGenerated(
    const std::vector<LoopId>& loops) {
  if (registered_.Of(loops) == nullptr) return Evaluate(loops);
  RETURN_IF_ERROR(CheckCancel());
  ASSIGN_OR_RETURN(const Known* known, Find(loops));
  return known->generated == nullptr ? &known->verdict : known->generated.get();
}

void GroupEvaluator::WeighRegistered(const std::vector<LoopId>& loops,
                                     const std::vector<RegisteredMatch>& matches,
                                     Known* known) const {
  known->generated = std::make_shared<const GroupVerdict>(known->verdict);
  const bool generated = known->verdict.refusal.empty();
  const Estimate of_code = known->verdict.estimate;
  const RegisteredMatch* best = nullptr;
  Estimate least;
  for (const RegisteredMatch& match : matches) {
    const Estimate estimate =
        EstimateRegistered(match, program_, constant_, generated ? &of_code : nullptr, device_);
    const bool forced = match.kernel->force;
    const bool over = best != nullptr && best->kernel->force;
    const bool worth = forced || !generated || estimate.time_us <= of_code.time_us;
    const bool better =
        best == nullptr || forced > over || (forced == over && estimate.time_us < least.time_us);
    if (!worth || !better) continue;
    best = &match;
    least = estimate;
  }
  if (best == nullptr) return;
  known->choice = ChoiceOfRegistered(*best, least);
  known->verdict = {.registered = best};
  known->verdict.factor = rules_.Factor(loops);
  SetTerms(known->choice->lowered.schedule, least, &known->verdict);
}

std::shared_ptr<const GroupChoice> GroupEvaluator::ChoiceOfRegistered(
    const RegisteredMatch& match, const Estimate& estimate) const {
  auto choice = std::make_shared<GroupChoice>();
  std::vector<ValueId> values;
  std::vector<bool> outside;
  ProgramOf(match.loops, kNoValue, &values, &outside, &choice->program);
  std::map<ValueId, ValueId> local;  // of the whole program's value
  for (size_t v = 0; v < values.size(); ++v) {
    local[values[v]] = static_cast<ValueId>(v);
    if (outside[v] && choice->program.values[v].producer != kNoLoop) {
      choice->group.outputs.push_back(static_cast<ValueId>(v));
    }
  }
  std::vector<Buffer> buffers;
  buffers.reserve(match.params.size());
  for (const RegisteredMatch::Param& param : match.params) {
    const TensorType& type = program_.value(param.value).type;
    const Dims dims = type.shape.ToDims();
    const ParamKind kind = param.output              ? ParamKind::kOutput
                           : IsConstant(param.value) ? ParamKind::kWeight
                                                     : ParamKind::kInput;
    buffers.push_back({.name = StrCat("p", buffers.size()),
                       .level = Level::kGlobal,
                       .dtype = type.dtype,
                       .kind = kind,
                       .shape = dims,
                       .layout = {.strides = RowMajorStrides(dims)}});
    choice->lowered.params.push_back({.value = local.at(param.value), .output = param.output});
  }
  std::string label;
  for (LoopId l : match.loops)
    StrAppend(&label, StrCat(label.empty() ? "" : "+", program_.op(l).label));
  choice->lowered.schedule = RegisteredSchedule(match, std::move(buffers), std::move(label));
  choice->estimate = estimate;
  choice->registered = std::make_shared<const RegisteredMatch>(match);
  return choice;
}

}  // namespace fusion
