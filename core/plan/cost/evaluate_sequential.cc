#include <algorithm>

#include "core/plan/cost/evaluator.h"
#include "core/plan/cost/phase_pipelines.h"
#include "core/plan/sets/loop_sets.h"
#include "core/schedule/ir/join.h"

namespace fusion {

absl::StatusOr<const GroupVerdict*> GroupEvaluator::EvaluateSequential(
    const SequentialPhases& sequence) {
  if (sequence.size() == 1) return Evaluate(sequence[0]);
  RETURN_IF_ERROR(CheckCancel());
  ASSIGN_OR_RETURN(const Known* known, FindSequential(sequence));
  return &known->verdict;
}

absl::StatusOr<const GroupChoice*> GroupEvaluator::ChooseSequential(
    const SequentialPhases& sequence) {
  if (sequence.size() == 1) return Choose(sequence[0]);
  ASSIGN_OR_RETURN(const Known* known, FindSequential(sequence));
  FUSION_CHECK(known->choice != nullptr, "a launch of a plan has a schedule");
  return known->choice.get();
}

absl::Status GroupEvaluator::PinSequential(const SequentialPhases& sequence,
                                           const std::vector<LockedPipeline>& pipelines) {
  RETURN_IF_ERROR(CheckCancel());
  const std::vector<LoopId> loops = UnionOf(sequence);
  ASSIGN_OR_RETURN(Known pinned, JoinSequential(loops, sequence, &pipelines));
  if (!pinned.verdict.refusal.empty()) {
    return InvalidArgument("turns: ", pinned.verdict.refusal.ToString());
  }
  const std::vector<PhasePipeline> wanted = pinned.choice->pipelines;
  auto known = sequential_.try_emplace(SequentialKey(loops, sequence), std::move(pinned)).first;
  if (known->second.choice->pipelines == wanted) return absl::OkStatus();
  return InvalidArgument("pipelines: an equal group before it has others");
}

std::vector<int> GroupEvaluator::SequentialKey(const std::vector<LoopId>& loops,
                                               const SequentialPhases& sequence) {
  std::vector<int> key = Key(loops);
  std::vector<int> part_of(loops.size(), 0);
  for (size_t i = 0; i < sequence.size(); ++i) {
    for (LoopId l : sequence[i]) {
      auto at = std::lower_bound(loops.begin(), loops.end(), l);
      part_of[static_cast<size_t>(at - loops.begin())] = static_cast<int>(i);
    }
  }
  key.insert(key.end(), part_of.begin(), part_of.end());
  return key;
}

absl::StatusOr<const GroupEvaluator::Known*> GroupEvaluator::FindSequential(
    const SequentialPhases& sequence) {
  const std::vector<LoopId> loops = UnionOf(sequence);
  if (HasRepeat(program_, loops)) return Find(loops);
  std::vector<int> key = SequentialKey(loops, sequence);
  auto known = sequential_.find(key);
  if (known == sequential_.end()) {
    ASSIGN_OR_RETURN(Known found, JoinSequential(loops, sequence, nullptr));
    known = sequential_.emplace(std::move(key), std::move(found)).first;
  }
  return &known->second;
}

absl::StatusOr<GroupEvaluator::Known> GroupEvaluator::JoinSequential(
    const std::vector<LoopId>& loops, const SequentialPhases& sequence,
    const std::vector<LockedPipeline>* pinned) {
  Known known;
  known.verdict.refusal =
      ReadsReinterpreted(loops) ? reinterpreted_.refusal : rules_.Forbids(loops);
  if (!known.verdict.refusal.empty()) return known;
  auto choice = std::make_shared<GroupChoice>();
  std::vector<Estimate> estimates;
  double apart_us = 0;
  double weighed_us = 0;
  for (const std::vector<LoopId>& part : sequence) {
    // Cached, so that equal sets share one choice wherever they occur.
    ASSIGN_OR_RETURN(const GroupChoice* made, Choose(part));
    ASSIGN_OR_RETURN(const Known* known_part, Find(part));
    FUSION_CHECK(known_part->choice.get() == made, "what was chosen is kept");
    estimates.push_back(known_part->verdict.estimate);
    apart_us += known_part->verdict.estimate.time_us;
    weighed_us += known_part->verdict.weighed_us();
    choice->parts.push_back(known_part->choice);
    choice->sequence.emplace_back();
    for (LoopId l : part) {
      auto at = std::lower_bound(loops.begin(), loops.end(), l);
      choice->sequence.back().push_back(static_cast<int>(at - loops.begin()));
    }
  }
  std::vector<int> kept;
  for (LoopId l : loops) {
    ValueId v = program_.op(l).output;
    if (NeededOutside(v, loops)) kept.push_back(v);
  }
  std::sort(kept.begin(), kept.end());
  Joining joining = NameParams(sequence, choice->parts);
  auto joined = PutInPhases(joining.schedules, joining.names, kept);
  if (!joined.ok()) {
    known.verdict.refusal = RefusalFrom(Message(joined.status()));
    return known;
  }
  choice->source = std::move(joined->source);
  const Estimate estimate = EstimateSequence(estimates, device_);
  Pipelined made;
  if (pinned != nullptr) {
    ASSIGN_OR_RETURN(made, PinPipelines(std::move(joined->schedule), estimate, *pinned, device_));
  } else {
    made = FormPipelines(std::move(joined->schedule), estimate, device_);
  }
  choice->estimate = made.estimate;
  choice->pipelines = std::move(made.pipelines);
  choice->waits = std::move(made.waits);
  choice->lowered.schedule = std::move(made.schedule);
  Complete(loops, sequence, joining.values, choice.get());
  SetTerms(choice->lowered.schedule, choice->estimate, &known.verdict);
  if (apart_us > 0) known.verdict.factor = weighed_us / apart_us;
  known.choice = std::move(choice);
  return known;
}

}  // namespace fusion
