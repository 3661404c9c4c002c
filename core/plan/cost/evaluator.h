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

/// What the best schedule of a set of loop ops costs, or why there is none.
struct GroupVerdict {
  Estimate estimate;
  int phases = 0;
  int64_t run_bytes = 0;  // held for the kernel while it runs: scratch of all threads, workspace
  Refusal refusal;        // empty: there is a schedule, and no rule forbids it
  double factor = 1;      // by which rules multiply its time
  /// The registered kernel that it is; null: generated code.
  const RegisteredMatch* registered = nullptr;

  /// What a search makes least: the estimated time as rules weigh it.
  double weighed_us() const { return estimate.time_us * factor; }
};

/// The best schedule of a set of loop ops, or of several that are connected by nothing. In terms of
/// a program of its own, so that equal sets of a model (its layers) share one.
struct GroupChoice {
  Program program;  // the ops alone
  FusionGroup group;
  Lowered lowered;
  LockedCut cut;  // how it is cut; means nothing with parts side by side
  Estimate estimate;
  /// What runs side by side in one launch (horizontal fusion): sets of the ops that do not read
  /// from each other; `group` then has outputs and views alone. If cut.split is set: the two phases
  /// of a split reduction. If `turns` is set: what runs one after the other. Empty: all of it is
  /// one part.
  std::vector<std::shared_ptr<const GroupChoice>> parts;
  /// With parts that run in turn, as phases of one launch ("all-in-one"): the ops of each, as
  /// positions in the program.
  std::vector<std::vector<int>> turns;
  /// With turns: neighbouring phases that are one, and for each phase but the last one why the next
  /// waits until it is over (empty: they are of one pipeline). Positions are those before that.
  std::vector<PhasePipeline> pipelines;
  std::vector<Refusal> waits;
  /// With parts: where each param comes from, a part and its param.
  std::vector<std::pair<int, BufferId>> source;
  /// A registered kernel: of all above program, estimate, outputs of the group, and the params and
  /// schedule of `lowered` count. Null: generated code.
  std::shared_ptr<const RegisteredMatch> registered;
  /// Of a repeat: the plan of its body; nothing else but the estimate, of all passes, counts then.
  std::shared_ptr<const PlannedModel> body;

  /// The choice whose lowering made param `p`, this one or what it is joined from, and the param
  /// there.
  std::pair<const GroupChoice*, size_t> OriginOf(size_t p) const;
};

/// A choice that somebody asked for, and what it is worth.
struct TriedChoice {
  std::shared_ptr<const GroupChoice> choice;
  GroupVerdict verdict;
};

/// Another way to cut a set of loop ops.
struct AlternativeTiling {
  LockedChoice locked;
  TriedChoice tried;
};

/// Sets of loop ops that run one after the other, each of them ascending.
using Turns = std::vector<std::vector<LoopId>>;

struct HashOfKey {
  size_t operator()(const std::vector<int>& key) const {
    size_t hash = 0;
    for (int k : key) hash = (hash ^ static_cast<size_t>(k)) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 32;
  }
};

/// Makes the plan of the body of a repeat.
using PlanBody = std::function<absl::StatusOr<std::shared_ptr<const PlannedModel>>(
    const LoopOp&, std::shared_ptr<const PlanLock> lock)>;

/// Finds and remembers the best schedule of sets of loop ops of one program. A repeat is a set of
/// its own; its schedule is the plan of its body. Not thread-safe. What it is made from outlives
/// it.
class GroupEvaluator {
 public:
  /// `cancel` may be null: nothing ends it early. `plan_body` may be where the program repeats
  /// nothing.
  GroupEvaluator(const Program& program, const DeviceSpec& device, const PlanOptions& options,
                 const CancelToken* cancel, PlanBody plan_body = nullptr);

  /// From here on rules decide which sets are allowed and what their times count.
  void Follow(RuleEffects rules) { rules_ = std::move(rules); }
  const RuleEffects& rules() const { return rules_; }
  /// From here on these are weighed wherever a set is exactly what one of them computes. Nothing
  /// that a RegisteredMatch points to was given before.
  void Follow(RegisteredMatches registered) { registered_ = std::move(registered); }
  const RegisteredMatches& registered() const { return registered_; }
  /// True if a rule or a registered kernel keeps the op together with others.
  bool IsForced(LoopId l) const { return rules_.IsForced(l) || registered_.IsForced(l); }
  /// As Evaluate, without registered kernels.
  absl::StatusOr<const GroupVerdict*> EvaluateGenerated(const std::vector<LoopId>& loops);

  /// `loops` ascending. The result lives as long as the evaluator. Fails only as `cancel` says.
  absl::StatusOr<const GroupVerdict*> Evaluate(const std::vector<LoopId>& loops);
  /// The schedule that Evaluate(loops) found; it must have found one. Otherwise the same.
  absl::StatusOr<const GroupChoice*> Choose(const std::vector<LoopId>& loops);
  /// As Evaluate and Choose, for sets that run one after the other as phases of one launch, each of
  /// them as its own Choose says: one kernel, with barriers. Each has a schedule and reads from
  /// those before it only. One set alone is that set.
  absl::StatusOr<const GroupVerdict*> EvaluateInTurn(const Turns& turns);
  absl::StatusOr<const GroupChoice*> ChooseInTurn(const Turns& turns);
  /// Makes these pipelines those of ChooseInTurn(turns) and of all that equal them, whatever is
  /// better. InvalidArgument, naming the field of a LockedChoice, if it cannot be.
  absl::Status PinInTurn(const Turns& turns, const std::vector<LockedPipeline>& pipelines);

  /// For each value of Choose(loops).program the value of the whole program it stands for.
  std::vector<ValueId> Values(const std::vector<LoopId>& loops);

  /// Makes `choice`, which nobody vouches for, the choice of `loops` and all that equal them,
  /// whatever is better. InvalidArgument, naming what is wrong with it, if it does not fit.
  absl::Status Pin(const std::vector<LoopId>& loops, const LockedChoice& choice);
  /// What Pin(loops, choice) would make the choice of `loops`; nothing is remembered.
  absl::StatusOr<TriedChoice> Try(const std::vector<LoopId>& loops, const LockedChoice& choice);
  /// Other ways to cut what is cut as `choice` says: of each part in turn those that are enumerated
  /// and those near its own, of a part that is not split also the splits that are tried. Those
  /// whose estimate is at most `most_us` and which hold no more than `most_bytes` for a run, as
  /// different from each other as can be first, then by estimate; no two with one schedule. None of
  /// what runs in turn. Fails only as the cancel token says.
  absl::StatusOr<std::vector<AlternativeTiling>> AlternativeTilings(
      const std::vector<LoopId>& loops, const LockedChoice& choice, double most_us,
      int64_t most_bytes);
  /// The same for a repeat, of whose body `lock` is.
  absl::Status PinRepeat(LoopId repeat, std::shared_ptr<const PlanLock> lock);

  /// As Evaluate, if `unneeded`, which these ops compute, were neither returned nor read outside of
  /// them (kNoValue: all is as it is), and if there were no rules. Nothing is remembered.
  absl::StatusOr<GroupVerdict> EvaluateWithout(const std::vector<LoopId>& loops, ValueId unneeded);
  /// What ops without a place on the device lack of one; nothing where that is not why they have no
  /// schedule.
  std::optional<FitProbe> Probe(const std::vector<LoopId>& loops) const;

  /// True if the program returns `v` or an op outside of `loops` (ascending) reads it.
  bool NeededOutside(ValueId v, const std::vector<LoopId>& loops) const;
  /// Bytes of what these ops (ascending) leave in memory between kernels: values that ops outside
  /// of them read, and that neither the caller nor the prepared weights hold.
  int64_t KeptBytes(const std::vector<LoopId>& loops) const;
  bool IsReturned(ValueId v) const { return returned_[static_cast<size_t>(v)]; }

  /// True if Evaluate(loops) would make no schedule.
  bool IsKnown(const std::vector<LoopId>& loops);
  /// Loop ops of all sets that schedules were made for: what evaluating has cost so far.
  int64_t scheduled_ops() const { return scheduled_ops_; }
  /// OK, or as the cancel token says; for what takes long without evaluating.
  absl::Status CheckCancel() const {
    return cancel_ == nullptr ? absl::OkStatus() : cancel_->Check();
  }

  const Program& program() const { return program_; }
  const DeviceSpec& device() const { return device_; }
  int threads() const { return device_.threads; }
  /// True for values that depend on weights and constants only.
  bool IsConstant(ValueId v) const { return constant_[static_cast<size_t>(v)]; }
  /// True if all values that these ops compute are.
  bool AreConstant(const std::vector<LoopId>& loops) const;

  /// What decides the choice for `loops` and for sets of them: the classes of the ops, how they are
  /// connected, what is needed outside, what rules say. Equal keys have equal choices. The
  /// result is valid until the next call of a function that is not const.
  const std::vector<int>& Key(const std::vector<LoopId>& loops);

  /// True if an op reads, reinterpreted, what another one writes: in memory only, so not within one
  /// kernel.
  bool ReadsReinterpreted(const std::vector<LoopId>& loops) const;

 private:
  // Sets that run side by side in one launch.
  static constexpr size_t kMostBeside = 16;

  struct Known {
    GroupVerdict verdict;
    std::shared_ptr<const GroupChoice> choice;  // null: not kept
    /// Where registered kernels fit: what generated code would be.
    std::shared_ptr<const GroupVerdict> generated = nullptr;
  };
  /// Puts the best registered kernel for `loops` in the place of what `known` has, if it is forced
  /// or no slower.
  void WeighRegistered(const std::vector<LoopId>& loops,
                       const std::vector<RegisteredMatch>& matches, Known* known) const;
  std::shared_ptr<const GroupChoice> ChoiceOfRegistered(const RegisteredMatch& match,
                                                        const Estimate& estimate) const;
  /// The ops in sets that no value connects.
  std::vector<std::vector<LoopId>> Parts(const std::vector<LoopId>& loops);
  /// The kernel of an opaque op.
  absl::StatusOr<std::shared_ptr<GroupChoice>> ChoiceOfOpaque(LoopId opaque) const;
  /// What is known about a set that holds one.
  absl::StatusOr<Known> FindOpaque(const std::vector<LoopId>& loops);
  /// What is known about a set, found out now if nothing was; not for ReadsReinterpreted.
  absl::StatusOr<Known*> Find(const std::vector<LoopId>& loops);
  /// The same for a set that holds a repeat.
  absl::StatusOr<Known> FindRepeat(const std::vector<LoopId>& loops);
  /// And for one alone, its body planned by `lock`, or freely without.
  absl::StatusOr<Known> RepeatBy(LoopId repeat, std::shared_ptr<const PlanLock> lock);
  absl::StatusOr<std::shared_ptr<const GroupChoice>> ChoiceOf(const std::vector<LoopId>& loops,
                                                              const Known& known);
  /// `whole`: with the choice, else it may be left out where it is easily made again.
  /// `without`: as EvaluateWithout says of it; not set: as it is.
  absl::StatusOr<Known> Search(const std::vector<LoopId>& loops, bool whole,
                               std::optional<ValueId> without = std::nullopt);
  absl::StatusOr<Known> SearchWhole(const std::vector<LoopId>& loops, ValueId unneeded);
  /// The ops as a program of their own: `values` are its values in the whole one, `outside` says
  /// which of them others need (not `unneeded`). Returns those of its ops that do something.
  std::vector<LoopId> ProgramOf(const std::vector<LoopId>& loops, ValueId unneeded,
                                std::vector<ValueId>* values, std::vector<bool>* outside,
                                Program* program) const;
  /// Drops roundings that nobody outside sees, as far as the numerics allow; returns the ops of
  /// `program` that do something then.
  std::vector<LoopId> Rounded(const std::vector<bool>& outside, Program* program) const;
  /// The ops as a group of a program of their own, in `out`.
  Refusal Extract(const std::vector<LoopId>& loops, ValueId unneeded, GroupChoice* out) const;
  CandidateOptions Candidates() const;
  absl::StatusOr<Known> SearchSideBySide(const std::vector<LoopId>& loops,
                                         const std::vector<std::vector<LoopId>>& parts, bool whole,
                                         std::optional<ValueId> without);
  using Choices = std::vector<std::shared_ptr<const GroupChoice>>;
  /// What joining schedules takes: of every part its schedule, names of its params, and for each
  /// value of its program that of the whole one.
  struct Joining {
    std::vector<const Schedule*> schedules;
    std::vector<std::vector<int>> names;
    std::vector<std::vector<ValueId>> values;
  };
  Joining NameParams(const std::vector<std::vector<LoopId>>& parts, const Choices& made);
  /// `made[i]`, the choice of part i, side by side.
  Known Join(const std::vector<LoopId>& loops, const std::vector<std::vector<LoopId>>& parts,
             Choices made, bool whole);
  absl::StatusOr<const Known*> FindInTurn(const Turns& turns);
  std::vector<int> KeyInTurn(const std::vector<LoopId>& loops, const Turns& turns);
  /// `pinned` null: with the pipelines that gain.
  absl::StatusOr<Known> JoinInTurn(const std::vector<LoopId>& loops, const Turns& turns,
                                   const std::vector<LockedPipeline>* pinned);
  /// What Try makes of parts that are made.
  absl::StatusOr<TriedChoice> TryBeside(const std::vector<LoopId>& loops,
                                        const std::vector<std::vector<LoopId>>& parts,
                                        Choices made);
  absl::StatusOr<std::shared_ptr<const GroupChoice>> MakePinned(const std::vector<LoopId>& loops,
                                                                const LockedCut& cut);
  /// Cuts of a part of a group beside `cut`, in no order that means anything.
  absl::StatusOr<std::vector<LockedCut>> CutsBeside(const std::vector<LoopId>& part,
                                                    const LockedCut& cut);
  absl::Status CutAs(const LockedCut& cut, GroupChoice* made) const;
  /// The program and params of a choice whose parts and joined schedule are known.
  void Complete(const std::vector<LoopId>& loops, const Turns& parts,
                const std::vector<std::vector<ValueId>>& values_of_parts,
                GroupChoice* choice) const;
  /// What a verdict says of a schedule.
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
  std::vector<bool> reads_reinterpreted_;     // by op: an input of it
  std::vector<int> part_;                     // of Parts, by op; -1 but while it runs
  std::vector<int> set_;                      // by op: last set that Key had it in
  int sets_ = 0;
  std::vector<int> number_;        // of Key, by value; -1 but while it runs
  std::vector<int> key_;           // what Key gave last
  std::vector<ValueId> numbered_;  // of Key
  std::unordered_map<std::vector<int>, Known, HashOfKey> known_;
  // By the key of all ops, and the turn of each.
  std::unordered_map<std::vector<int>, Known, HashOfKey> in_turn_;
  int64_t scheduled_ops_ = 0;
  size_t kept_ops_ = 0;         // of the choices kept
  GroupVerdict reinterpreted_;  // the refusal of sets that ReadsReinterpreted
};

}  // namespace fusion
