#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/base/refusal.h"
#include "core/base/threads/cancel.h"
#include "core/benefit/estimate.h"
#include "core/bundle/plan.h"
#include "core/bundle/plan_lock.h"
#include "core/graph/program/program.h"
#include "core/plan/rules/registered.h"
#include "core/plan/rules/rule_effects.h"
#include "core/schedule/ir/phase_pipeline.h"
#include "core/schedule/tiles/fit_probe.h"

namespace fusion {

struct PlannedModel;

/// The cost of the best schedule of a set of loop ops, or why there is none.
struct GroupVerdict {
  Estimate estimate;
  int phases = 0;
  int64_t run_bytes = 0;  // memory that a running kernel holds: scratch of all threads, workspace
  Refusal refusal;        // empty: a schedule exists, and no rule forbids it
  double factor = 1;      // the factor that rules put on its time
  /// The registered kernel that was chosen; null: generated code. Valid until
  /// GroupEvaluator::Follow(RegisteredMatches) is called.
  const RegisteredMatch* registered = nullptr;

  /// What searches minimise: the estimated time as rules weigh it.
  double weighed_us() const { return estimate.time_us * factor; }
};

/// The best schedule of a set of loop ops, or of several unconnected sets. Expressed in a program
/// of its own, so that equal sets of a model (its layers) share it.
struct GroupChoice {
  Program program;  // only these ops
  FusionGroup group;
  Lowered lowered;
  LockedTiling tiling;  // meaningless for an opaque op and for parts without tiling.split
  Estimate estimate;
  /// Empty: the set is one part. Otherwise, if `sequence` is set, the parts are sequential phases.
  /// If tiling.split is set, they are the two phases of a split reduction. Else they are
  /// independent sets of ops that run side by side in one launch (horizontal fusion); `group` then
  /// has only outputs and views.
  std::vector<std::shared_ptr<const GroupChoice>> parts;
  /// The ops of each sequential phase ("all-in-one"), as positions in the program.
  std::vector<std::vector<int>> sequence;
  /// With `sequence`: the phases that form pipelines; and for each phase but the last, why the next
  /// one waits at a barrier (empty: both are in one pipeline). Phases are numbered as before
  /// pipelines were formed.
  std::vector<PhasePipeline> pipelines;
  std::vector<Refusal> waits;
  /// With `parts`: for each param, the part that it comes from and the param there.
  std::vector<std::pair<int, BufferId>> source;
  /// A registered kernel; null: generated code. If set, only these fields are meaningful: program,
  /// estimate, the outputs of `group`, and the params and schedule of `lowered`.
  std::shared_ptr<const RegisteredMatch> registered;
  /// For a repeat: the plan of its body. If set, only this and the estimate (of all passes) are
  /// meaningful.
  std::shared_ptr<const PlannedModel> body;

  /// The choice whose lowering created param `p` (this one or, recursively, a part), and the number
  /// of the param there.
  std::pair<const GroupChoice*, size_t> OriginOf(size_t p) const;
};

/// A given choice and its cost.
struct TriedChoice {
  std::shared_ptr<const GroupChoice> choice;
  GroupVerdict verdict;
};

/// Another tiling of a set of loop ops.
struct AlternativeTiling {
  LockedChoice locked;
  TriedChoice tried;
};

/// Sets of loop ops that run as sequential phases, each set ascending.
using SequentialPhases = std::vector<std::vector<LoopId>>;

struct HashOfKey {
  size_t operator()(const std::vector<int>& key) const {
    size_t hash = 0;
    for (int k : key) hash = (hash ^ static_cast<size_t>(k)) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 32;
  }
};

/// Plans the body of a repeat; `lock` null: freely.
using PlanBody = std::function<absl::StatusOr<std::shared_ptr<const PlannedModel>>(
    const LoopOp&, std::shared_ptr<const PlanLock> lock)>;

/// Finds and caches the best schedule of sets of loop ops of one program. Sets are ascending and
/// not empty. A repeat is a set of its own; its schedule is the plan of its body. Unless stated
/// otherwise, functions fail only as the cancel token says, and for a repeat that is not cached as
/// `plan_body` does. Not thread-safe. Constructor arguments must outlive it.
class GroupEvaluator {
 public:
  /// `cancel` may be null: no cancellation. `plan_body` may be null if the program has no repeats.
  GroupEvaluator(const Program& program, const DeviceSpec& device, const PlanOptions& options,
                 const CancelToken* cancel, PlanBody plan_body = nullptr);

  /// From now on rules decide which sets are allowed and how their times count. Cached results stay
  /// valid, because Key contains the effect of rules.
  void Follow(RuleEffects rules) { rules_ = std::move(rules); }
  const RuleEffects& rules() const { return rules_; }
  /// From now on registered kernels compete for the sets that they compute exactly. Call it before
  /// any result with a RegisteredMatch was returned: such pointers become invalid.
  void Follow(RegisteredMatches registered) { registered_ = std::move(registered); }
  const RegisteredMatches& registered() const { return registered_; }
  /// True if a rule or a registered kernel forces the op into one group with others.
  bool IsForced(LoopId l) const { return rules_.IsForced(l) || registered_.IsForced(l); }
  /// As Evaluate, ignoring registered kernels.
  absl::StatusOr<const GroupVerdict*> EvaluateGenerated(const std::vector<LoopId>& loops);

  /// The best schedule's verdict, or a refusal in it. Valid as long as the evaluator.
  absl::StatusOr<const GroupVerdict*> Evaluate(const std::vector<LoopId>& loops);
  /// The schedule that Evaluate(loops) found. Aborts if that is a refusal. Valid as long as the
  /// evaluator, unless Pin replaces it.
  absl::StatusOr<const GroupChoice*> Choose(const std::vector<LoopId>& loops);
  /// As Evaluate and Choose, for sets that run as sequential phases of one launch (one kernel with
  /// barriers), each with the schedule of its own Choose. Each set must have a schedule and may
  /// read only from earlier sets. The sets are disjoint. A single set is evaluated as itself.
  absl::StatusOr<const GroupVerdict*> EvaluateSequential(const SequentialPhases& sequence);
  absl::StatusOr<const GroupChoice*> ChooseSequential(const SequentialPhases& sequence);
  /// Fixes the pipelines of ChooseSequential(sequence), and of all equal phases, regardless of
  /// estimates. Call it after Pin of each set. InvalidArgument, naming the field of a LockedChoice,
  /// if they are impossible, or if equal phases already have other pipelines.
  absl::Status PinSequential(const SequentialPhases& sequence,
                             const std::vector<LockedPipeline>& pipelines);

  /// By value of Choose(loops)->program: the value of the whole program.
  std::vector<ValueId> Values(const std::vector<LoopId>& loops);

  /// Fixes the choice of `loops`, and of all equal sets, to an untrusted `choice`, regardless of
  /// estimates. Verdicts that Evaluate returned for these sets change, and choices that Choose
  /// returned become invalid. InvalidArgument, naming the field, if it does not fit. Not for
  /// repeats (PinRepeat).
  absl::Status Pin(const std::vector<LoopId>& loops, const LockedChoice& choice);
  /// The choice that Pin(loops, choice) would set, and its verdict; caches nothing. Fails as Pin.
  absl::StatusOr<TriedChoice> Try(const std::vector<LoopId>& loops, const LockedChoice& choice);
  /// Other tilings of a set that is tiled as `choice`. Each differs in one part: an enumerated
  /// tiling, one near the part's own, or a split that SplitChoices tries. Returns those with an
  /// estimate of at most `most_us` microseconds that hold at most `most_bytes` during a run; no two
  /// have equal schedules. Order: the best of each different form first, then the second best of
  /// each, by estimate. Empty for sequential phases.
  absl::StatusOr<std::vector<AlternativeTiling>> AlternativeTilings(
      const std::vector<LoopId>& loops, const LockedChoice& choice, double most_us,
      int64_t most_bytes);
  /// As Pin, for a repeat whose body follows `lock`.
  absl::Status PinRepeat(LoopId repeat, std::shared_ptr<const PlanLock> lock);

  /// As Evaluate, but without rules, and as if `unneeded` (a value that these ops compute) were
  /// neither returned nor read by other ops; kNoValue: no such value. Caches nothing. A repeat is
  /// evaluated as it is.
  absl::StatusOr<GroupVerdict> EvaluateWithout(const std::vector<LoopId>& loops, ValueId unneeded);
  /// For explicit memory: by how much a set without a schedule exceeds the on-chip memory. nullopt
  /// if that is not why it has none.
  std::optional<FitProbe> Probe(const std::vector<LoopId>& loops) const;

  /// True if the program returns `v` or an op outside of `loops` (ascending) reads it.
  bool NeededOutside(ValueId v, const std::vector<LoopId>& loops) const;
  /// Bytes that these ops (ascending) leave in the arena between kernels: values that other ops
  /// read, except outputs and prepared values.
  int64_t KeptBytes(const std::vector<LoopId>& loops) const;
  bool IsReturned(ValueId v) const { return returned_[static_cast<size_t>(v)]; }

  /// True if Evaluate(loops) would use a cached result and make no schedule.
  bool IsKnown(const std::vector<LoopId>& loops);
  /// Total number of loop ops in all sets that schedules were made for: the cost of evaluation so
  /// far.
  int64_t scheduled_ops() const { return scheduled_ops_; }
  /// OK, or as the cancel token says. For long work that evaluates nothing.
  absl::Status CheckCancel() const {
    return cancel_ == nullptr ? absl::OkStatus() : cancel_->Check();
  }

  const Program& program() const { return program_; }
  const DeviceSpec& device() const { return device_; }
  int threads() const { return device_.threads; }
  /// True for values that depend only on weights and constants.
  bool IsConstant(ValueId v) const { return constant_[static_cast<size_t>(v)]; }
  /// True if all values that these ops compute are constant.
  bool AreConstant(const std::vector<LoopId>& loops) const;

  /// A key of everything that decides the choice for `loops`: the classes of the ops, their
  /// connections, which values are needed outside, and rules. Equal keys have equal choices. Valid
  /// until the next call of a non-const function.
  const std::vector<int>& Key(const std::vector<LoopId>& loops);

  /// True if an op reads the result of another one through a reinterpretation. That needs memory,
  /// so one kernel cannot hold both.
  bool ReadsReinterpreted(const std::vector<LoopId>& loops) const;

 private:
  // The largest number of sets that run side by side in one launch.
  static constexpr size_t kMostBeside = 16;

  struct Known {
    GroupVerdict verdict;
    std::shared_ptr<const GroupChoice> choice;  // null: not kept
    /// If registered kernels fit: the verdict of generated code.
    std::shared_ptr<const GroupVerdict> generated = nullptr;
  };
  /// Replaces `known` by the best registered kernel for `loops` if that is forced or no slower.
  void WeighRegistered(const std::vector<LoopId>& loops,
                       const std::vector<RegisteredMatch>& matches, Known* known) const;
  std::shared_ptr<const GroupChoice> ChoiceOfRegistered(const RegisteredMatch& match,
                                                        const Estimate& estimate) const;
  /// The connected components of the ops.
  std::vector<std::vector<LoopId>> Parts(const std::vector<LoopId>& loops);
  /// The kernel of an opaque op.
  absl::StatusOr<std::shared_ptr<GroupChoice>> ChoiceOfOpaque(LoopId opaque) const;
  /// The result for a set that holds an opaque op.
  absl::StatusOr<Known> FindOpaque(const std::vector<LoopId>& loops);
  /// The result for a set, computed if it is not cached. Not for sets that ReadsReinterpreted.
  absl::StatusOr<Known*> Find(const std::vector<LoopId>& loops);
  /// The result for a set that holds a repeat.
  absl::StatusOr<Known> FindRepeat(const std::vector<LoopId>& loops);
  /// The result for a repeat alone, its body planned by `lock`; null: freely.
  absl::StatusOr<Known> RepeatBy(LoopId repeat, std::shared_ptr<const PlanLock> lock);
  absl::StatusOr<std::shared_ptr<const GroupChoice>> ChoiceOf(const std::vector<LoopId>& loops,
                                                              const Known& known);
  /// `whole`: with the choice; otherwise the choice may be omitted if it is cheap to make again.
  /// `without`: as EvaluateWithout; unset: the set as it is.
  absl::StatusOr<Known> Search(const std::vector<LoopId>& loops, bool whole,
                               std::optional<ValueId> without = std::nullopt);
  absl::StatusOr<Known> SearchWhole(const std::vector<LoopId>& loops, ValueId unneeded);
  /// Extracts the ops to a program. `values`: by value of it, the value of the whole program.
  /// `outside`: by value of it, whether other ops need it (false for `unneeded`). Returns its ops
  /// that compute something.
  std::vector<LoopId> ProgramOf(const std::vector<LoopId>& loops, ValueId unneeded,
                                std::vector<ValueId>* values, std::vector<bool>* outside,
                                Program* program) const;
  /// Drops roundings that are not visible outside, where the numerics allow it. Returns the ops of
  /// `program` that still compute something.
  std::vector<LoopId> Rounded(const std::vector<bool>& outside, Program* program) const;
  /// Extracts the ops to a group of a program of its own, in `out`.
  Refusal Extract(const std::vector<LoopId>& loops, ValueId unneeded, GroupChoice* out) const;
  CandidateOptions Candidates() const;
  absl::StatusOr<Known> SearchSideBySide(const std::vector<LoopId>& loops,
                                         const std::vector<std::vector<LoopId>>& parts, bool whole,
                                         std::optional<ValueId> without);
  using Choices = std::vector<std::shared_ptr<const GroupChoice>>;
  /// The input for joining schedules, by part: its schedule, the names of its params, and by value
  /// of its program the value of the whole one.
  struct Joining {
    std::vector<const Schedule*> schedules;
    std::vector<std::vector<int>> names;
    std::vector<std::vector<ValueId>> values;
  };
  Joining NameParams(const std::vector<std::vector<LoopId>>& parts, const Choices& made);
  /// Joins made[i], the choice of part i, side by side.
  Known Join(const std::vector<LoopId>& loops, const std::vector<std::vector<LoopId>>& parts,
             Choices made, bool whole);
  absl::StatusOr<const Known*> FindSequential(const SequentialPhases& sequence);
  std::vector<int> SequentialKey(const std::vector<LoopId>& loops,
                                 const SequentialPhases& sequence);
  /// `pinned` null: forms the pipelines that gain.
  absl::StatusOr<Known> JoinSequential(const std::vector<LoopId>& loops,
                                       const SequentialPhases& sequence,
                                       const std::vector<LockedPipeline>* pinned);
  /// Implements Try, given the choice of each part.
  absl::StatusOr<TriedChoice> TryBeside(const std::vector<LoopId>& loops,
                                        const std::vector<std::vector<LoopId>>& parts,
                                        Choices made);
  absl::StatusOr<std::shared_ptr<const GroupChoice>> MakePinned(const std::vector<LoopId>& loops,
                                                                const LockedTiling& tiling);
  /// Alternative tilings of a part of a group that is tiled as `tiling`, in no particular order.
  absl::StatusOr<std::vector<LockedTiling>> TilingsBeside(const std::vector<LoopId>& part,
                                                          const LockedTiling& tiling);
  absl::Status ApplyTiling(const LockedTiling& tiling, GroupChoice* made) const;
  /// Sets program and params of a choice whose parts and joined schedule are set.
  void Complete(const std::vector<LoopId>& loops, const SequentialPhases& parts,
                const std::vector<std::vector<ValueId>>& values_of_parts,
                GroupChoice* choice) const;
  /// Fills the fields of a verdict that follow from a schedule.
  void SetTerms(const Schedule& schedule, const Estimate& estimate, GroupVerdict* verdict) const;
  void ClassifyOps();

  const Program& program_;
  const DeviceSpec& device_;
  const PlanOptions& options_;
  const CancelToken* cancel_;
  PlanBody plan_body_;
  RuleEffects rules_;
  RegisteredMatches registered_;
  std::vector<bool> constant_;
  std::vector<bool> returned_;
  std::vector<int64_t> bytes_;                // by value
  std::vector<std::vector<LoopId>> readers_;  // by value
  std::vector<int> class_of_op_;              // equal for ops with equal bodies and operand types
  std::vector<bool> reads_reinterpreted_;     // by op: it reads an input through a reinterpretation
  std::vector<int> part_;                     // scratch of Parts, by op; -1 outside of it
  std::vector<int> set_;                      // by op: the last set of Key that held it
  int sets_ = 0;
  std::vector<int> number_;        // scratch of Key, by value; -1 outside of it
  std::vector<int> key_;           // the last result of Key
  std::vector<ValueId> numbered_;  // scratch of Key
  std::unordered_map<std::vector<int>, Known, HashOfKey> known_;
  // By the key of all ops, and the phase of each.
  std::unordered_map<std::vector<int>, Known, HashOfKey> sequential_;
  int64_t scheduled_ops_ = 0;
  size_t kept_ops_ = 0;         // total ops of the choices that are cached
  GroupVerdict reinterpreted_;  // the refusal of sets that ReadsReinterpreted
};

}  // namespace fusion
