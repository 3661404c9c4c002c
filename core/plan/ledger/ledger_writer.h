#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/plan/cost/evaluator.h"
#include "core/plan/ledger/ledger.h"
#include "core/plan/ledger/what_if.h"
#include "core/plan/sets/considered.h"
#include "core/plan/sets/group_edges.h"
#include "core/plan/sets/planned_model.h"

namespace fusion {

/// Writes the entries of one plan. Internal to ledger.cc. Call AddGroups first and Finish last; all
/// arguments must outlive it. The Add functions fail only as the evaluator does.
class LedgerWriter {
 public:
  using Loops = std::vector<LoopId>;

  LedgerWriter(const std::vector<Loops>& by_node, const std::vector<Considered>& considered,
               const PlanOptions& options, const std::map<NodeId, std::string>& unfused_nodes,
               GroupEvaluator* evaluator, PlannedModel* model)
      : by_node_(by_node),
        considered_(considered),
        options_(options),
        pressed_(IsHighPressure(options.hints.memory_pressure) &&
                 options.fusion == FusionMode::kFused && options.lock == nullptr),
        unfused_nodes_(unfused_nodes),
        evaluator_(*evaluator),
        what_ifs_(evaluator),
        program_(evaluator->program()),
        groups_(model->groups),
        inner_(model->inner),
        plan_(model->plan),
        inner_candidates_(model->inner_candidates) {
    for (size_t g = 0; g < groups_.size(); ++g) {
      const int choice = model->choice_of[g];
      const Schedule& schedule = model->kernels[Index(plan_.groups[g].kernel)].schedule;
      phases_.push_back(CountPhases(schedule));
      sequential_kernels_.push_back(choice < 0 ? 0 : model->choices[Index(choice)].turns.size());
      pipelines_.push_back(choice < 0 ? "" : PipelinesText(model->choices[Index(choice)]));
    }
    for (size_t i = 0; i < considered.size(); ++i) {
      if (!considered[i].refusal.empty()) continue;
      for (const Loops* side : {&considered[i].first, &considered[i].second}) {
        winner_of_.try_emplace(*side, i);
      }
    }
  }

  absl::Status AddGroups();

  absl::Status AddPairs(const GroupEdges& order);

  // Pairs that only a view connects: a view belongs to the group of one of its readers, but other
  // groups read through it too.
  absl::Status AddViews(const Graph& graph, const std::vector<std::pair<int, int>>& edges);

  // Groups that read the same value and could run side by side. Pairs with a path between them are
  // left to the entries on that path.
  absl::Status AddSiblings(const GroupEdges& order);

  absl::Status AddCandidates();

  // Moves all entries to the plan. `inner`: entries of loop bodies.
  void Finish(std::vector<PlanDecision> inner);

 private:
  // Equal keys are equal entries: the ops, their connections, the side of each, and the reason.
  using EntryKey = std::pair<std::vector<int>, std::string>;
  struct HashOfEntry {
    size_t operator()(const EntryKey& key) const {
      return HashOfKey()(key.first) ^ std::hash<std::string>()(key.second);
    }
  };

  static size_t Index(int g) { return static_cast<size_t>(g); }

  std::vector<PlanDecision>& EntriesOf(DecisionSubject subject);

  EntryKey KeyOf(DecisionSubject subject, const Loops& first, const Loops& second, std::string why);

  // The entry with that key, created if there is none; null: there are too many entries.
  PlanDecision* Entry(DecisionSubject subject, EntryKey key);

  static void SetRefusal(const Refusal& refusal, PlanDecision* entry);

  // ---- groups ----

  // By group: the sets of by_node_ that share ops with it.
  std::vector<std::vector<size_t>> PartsOfGroups() const;

  absl::Status AddGroup(size_t g, const std::vector<size_t>& parts);

  // The effect of rules on a group, and the registered kernels for it, as text.
  absl::StatusOr<std::string> About(size_t g);

  // "phases 1 to 2 are a pipeline of slices of 64 of s0_m; "
  static std::string PipelinesText(const LockedChoice& choice);

  // Adds to an entry why kernels are phases of one launch.
  void SaySequence(size_t g, PlanDecision* entry) const;

  // ---- pairs ----

  // By value that is no weight: the groups that read it, ascending.
  std::map<ValueId, std::vector<int>> ReadersOfValues() const;

  // A new entry of two groups, with its refusal; null if the entry existed: `place` is then added
  // to it.
  PlanDecision* PairEntry(DecisionSubject subject, EntryKey key, const Refusal& refusal,
                          DecisionPlace place);

  // Adds why two groups are two.
  absl::Status AddPair(DecisionSubject subject, int a, int b, std::vector<int> between);

  // Why a group is not in the same launch as sequential phases.
  Refusal SequenceRefusal(int a, int b, size_t between) const;

  int PhasesOf(int g) const { return phases_[Index(g)]; }

  // Why two groups cannot be joined, whatever their schedules; empty if they can.
  Refusal BeforeSchedules(const Loops& first, const Loops& second, size_t between) const;

  static Refusal Cyclic(size_t between);

  // Why two groups cannot be in one launch; empty if they can.
  Refusal BeforeLaunches(const Loops& first, const Loops& second) const;

  absl::StatusOr<Refusal> AfterSchedules(const Loops& first, const Loops& second,
                                         const GroupVerdict& together);

  // Whether one kernel was chosen for the memory that it saves, although it costs time.
  bool IsForMemory(const PlanDecision& entry) const { return pressed_ && entry.benefit_us < 0; }
  static std::vector<WhatIf> WithoutPressure();

  // Whether high compute pressure forbids a group with these times.
  bool IsTooSlow(double apart_us, double together_us) const;

  absl::Status AddView(int first, int second);

  // ---- candidates ----

  absl::Status AddCandidate(const Considered& c);

  // ---- terms and changes ----

  // `together` null: no kernel can hold both.
  absl::Status SetTerms(const Loops& first, const Loops& second, const GroupVerdict* together,
                        PlanDecision* entry);

  absl::Status SetWhatIfs(const Loops& first, const Loops& second, const Refusal& refusal,
                          PlanDecision* entry);

  // Adds how much a candidate would have to gain to come before the one that took one of its sides.
  absl::Status AddWinnerWhatIfs(const Loops& first, const Loops& second, PlanDecision* entry);

  const std::vector<Loops>& by_node_;
  const std::vector<Considered>& considered_;
  const PlanOptions& options_;
  const bool pressed_;  // memory pressure decided
  const std::map<NodeId, std::string>& unfused_nodes_;
  GroupEvaluator& evaluator_;
  WhatIfFinder what_ifs_;
  const Program& program_;
  const std::vector<Loops>& groups_;
  const std::vector<bool>& inner_;   // by group: whether it is of a loop body
  std::vector<Estimate> estimates_;  // by group; for a group that stands for a loop, of all passes
  Plan& plan_;
  const int64_t inner_candidates_;  // of loop bodies
  std::vector<int> phases_;         // by group: phases of its kernel
  std::vector<size_t>
      sequential_kernels_;  // by group: kernels that run in it as sequential phases; 0: one
  std::vector<std::string> pipelines_;    // by group: the phases that run without barriers, as text
  std::vector<PlanDecision> entries_[4];  // groups, pairs, siblings, candidates
  std::unordered_map<EntryKey, size_t, HashOfEntry> entry_of_;
  std::map<Loops, size_t> winner_of_;  // by the ops of a side: the candidate that took it
};

}  // namespace fusion
