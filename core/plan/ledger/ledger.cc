#include "core/plan/ledger/ledger.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <unordered_map>

#include "core/bundle/text.h"
#include "core/bundle/what_if_words.h"
#include "core/plan/cost/gain.h"
#include "core/plan/ledger/ledger_writer.h"
#include "core/plan/ledger/what_if.h"
#include "core/plan/search/all_in_one.h"
#include "core/plan/sets/group_edges.h"
#include "core/plan/sets/grouping.h"
#include "core/plan/sets/loop_sets.h"
#include "core/plan/sets/planned_model.h"

namespace fusion {
namespace {

// Groups on paths between two groups that a DecisionPlace lists at most.
constexpr size_t kMostSetsBetween = 8;
// For the groups that read a value: how many later ones each is paired with, and how many groups
// apart these may be.
constexpr size_t kMostSiblings = 8;
constexpr int kMostApart = 64;

using Loops = LedgerWriter::Loops;

// For accepted joins: a rule or memory pressure may want one that loses time.
std::string GainText(double benefit_us) {
  return benefit_us < 0 ? StrCat("loses ", MicrosecondsText(-benefit_us))
                        : StrCat("gains ", MicrosecondsText(benefit_us));
}

// For differences in launches only: rounded to a nanosecond.
std::string LaunchText(double us) { return StrCat(Rounded(us, 1000), " us"); }

// The bytes that memory pressure weighs.
std::string KeptText(int64_t saved_bytes) {
  return StrCat("; leaves ", saved_bytes, " B less in memory between kernels");
}

int64_t Traffic(const Estimate& e) { return e.activation_bytes + e.recompute_bytes; }

}  // namespace

absl::Status LedgerWriter::AddGroups() {
  std::vector<std::vector<size_t>> parts = PartsOfGroups();
  for (size_t g = 0; g < groups_.size(); ++g) {
    estimates_.push_back(plan_.groups[g].estimate);
    if (!inner_[g]) {
      RETURN_IF_ERROR(AddGroup(g, parts[g]));
    } else if (!groups_[g].empty()) {
      // The group stands for the loop; the body's ledger has its entry.
      ASSIGN_OR_RETURN(const GroupVerdict* loop, evaluator_.Evaluate(groups_[g]));
      estimates_.back() = loop->estimate;
    }
  }
  return absl::OkStatus();
}

absl::Status LedgerWriter::AddPairs(const GroupEdges& order) {
  std::vector<std::vector<int>> between = order.Between(kMostSetsBetween);
  for (size_t e = 0; e < order.edges().size(); ++e) {
    auto [writer, reader] = order.edges()[e];
    RETURN_IF_ERROR(AddPair(DecisionSubject::kPair, writer, reader, std::move(between[e])));
  }
  return absl::OkStatus();
}

absl::Status LedgerWriter::AddViews(const Graph& graph,
                                    const std::vector<std::pair<int, int>>& edges) {
  std::vector<std::vector<int>> groups_of(graph.nodes().size());
  for (size_t g = 0; g < plan_.groups.size(); ++g) {
    if (groups_[g].empty()) continue;
    for (int n : plan_.groups[g].nodes) groups_of[Index(n)].push_back(static_cast<int>(g));
  }
  std::set<std::pair<int, int>> known(edges.begin(), edges.end());
  for (size_t n = 0; n < graph.nodes().size(); ++n) {
    for (TensorId t : graph.nodes()[n].inputs) {
      NodeId from = t == kNoTensor ? kNoNode : graph.tensor(t).producer;
      if (from == kNoNode) continue;
      for (int a : groups_of[Index(from)]) {
        for (int b : groups_of[n]) {
          if (a != b && known.insert({a, b}).second) RETURN_IF_ERROR(AddView(a, b));
        }
      }
    }
  }
  return absl::OkStatus();
}

absl::Status LedgerWriter::AddSiblings(const GroupEdges& order) {
  std::set<std::pair<int, int>> met;
  for (const auto& [value, readers] : ReadersOfValues()) {
    for (size_t i = 0; i < readers.size(); ++i) {
      size_t end = std::min(readers.size(), i + 1 + kMostSiblings);
      for (size_t j = i + 1; j < end && readers[j] - readers[i] <= kMostApart; ++j) {
        if (met.insert({readers[i], readers[j]}).second && !order.HasPath(readers[i], readers[j]))
          RETURN_IF_ERROR(AddPair(DecisionSubject::kSiblings, readers[i], readers[j], {}));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status LedgerWriter::AddCandidates() {
  plan_.candidates = static_cast<int64_t>(considered_.size()) + inner_candidates_;
  for (const Considered& c : considered_) RETURN_IF_ERROR(AddCandidate(c));
  return absl::OkStatus();
}

void LedgerWriter::Finish(std::vector<PlanDecision> inner) {
  for (PlanDecision& decision : inner) {
    EntriesOf(decision.subject).push_back(std::move(decision));
  }
  for (std::vector<PlanDecision>& part : entries_) {
    std::move(part.begin(), part.end(), std::back_inserter(plan_.decisions));
  }
}

std::vector<PlanDecision>& LedgerWriter::EntriesOf(DecisionSubject subject) {
  constexpr size_t kOrder[] = {3, 0, 1, 2};  // as Plan::decisions says
  return entries_[kOrder[static_cast<size_t>(subject)]];
}

LedgerWriter::EntryKey LedgerWriter::KeyOf(DecisionSubject subject, const Loops& first,
                                           const Loops& second, std::string why) {
  Loops both = Union(first, second);
  std::vector<int> key = evaluator_.Key(both);
  key.push_back(static_cast<int>(subject));
  size_t b = 0;
  for (LoopId l : both) {
    bool in_second = b < second.size() && second[b] == l;
    b += in_second ? 1 : 0;
    key.push_back(in_second ? 1 : 0);
  }
  return {std::move(key), std::move(why)};
}

PlanDecision* LedgerWriter::Entry(DecisionSubject subject, EntryKey key) {
  std::vector<PlanDecision>& entries = EntriesOf(subject);
  bool full = subject == DecisionSubject::kCandidate && entries.size() >= kMaxCandidateEntries;
  auto known = entry_of_.find(key);
  if (known == entry_of_.end()) {
    if (full) return nullptr;
    known = entry_of_.emplace(std::move(key), entries.size()).first;
    entries.push_back({.subject = subject});
  }
  PlanDecision& entry = entries[known->second];
  ++entry.times;
  return &entry;
}

void LedgerWriter::SetRefusal(const Refusal& refusal, PlanDecision* entry) {
  entry->verdict = refusal.verdict();
  if (refusal.empty()) return;
  entry->code = RefusalRow(refusal.code).word;
  entry->reason = refusal.words;
}

std::vector<std::vector<size_t>> LedgerWriter::PartsOfGroups() const {
  std::vector<int> part_of(program_.ops.size(), -1);
  for (size_t p = 0; p < by_node_.size(); ++p) {
    for (LoopId l : by_node_[p]) part_of[Index(l)] = static_cast<int>(p);
  }
  std::vector<std::vector<size_t>> out(groups_.size());
  for (size_t g = 0; g < groups_.size(); ++g) {
    std::set<int> parts;
    for (LoopId l : groups_[g]) parts.insert(part_of[Index(l)]);
    parts.erase(-1);
    out[g].assign(parts.begin(), parts.end());
  }
  return out;
}

absl::Status LedgerWriter::AddGroup(size_t g, const std::vector<size_t>& parts) {
  const Loops& loops = groups_[g];
  const Estimate& whole = plan_.groups[g].estimate;
  ASSIGN_OR_RETURN(const std::string rules, About(g));
  // A group that only packs a weight has no ops; its label distinguishes it.
  EntryKey key = loops.empty() ? EntryKey{{}, plan_.groups[g].label}
                               : KeyOf(DecisionSubject::kGroup, loops, {}, rules);
  PlanDecision* entry = Entry(DecisionSubject::kGroup, std::move(key));
  entry->places.push_back({.first_group = static_cast<int>(g)});
  if (entry->places.size() > 1) return absl::OkStatus();
  if (loops.empty()) {
    entry->reason =
        "lays a weight out as the kernels that read it want it, once per set of weights";
    return absl::OkStatus();
  }
  Estimate apart;
  double weighed_us = 0;
  int64_t kept_bytes = 0;
  for (size_t p : parts) {
    Loops inside;
    std::set_intersection(loops.begin(), loops.end(), by_node_[p].begin(), by_node_[p].end(),
                          std::back_inserter(inside));
    ASSIGN_OR_RETURN(const GroupVerdict* part, evaluator_.EvaluateGenerated(inside));
    apart = Sum(apart, part->estimate);
    weighed_us += part->weighed_us();
    kept_bytes += evaluator_.KeptBytes(inside);
  }
  entry->first = apart;
  entry->together = whole;
  entry->benefit_us = apart.time_us - whole.time_us;
  if (sequential_kernels_[g] > 0) {
    SaySequence(g, entry);
    return absl::OkStatus();
  }
  if (parts.size() < 2) {
    entry->reason = StrCat("one node, ", MicrosecondsText(whole.time_us),
                           ": none of its neighbours joins it, as the pairs say",
                           rules.empty() ? "" : "; ", rules);
    return absl::OkStatus();
  }
  entry->reason = StrCat(GainText(entry->benefit_us), " of ", MicrosecondsText(apart.time_us), ": ",
                         parts.size() - 1, parts.size() == 2 ? " launch and " : " launches and ",
                         Traffic(apart) - Traffic(whole), " B off chip less than one kernel a node",
                         pressed_ ? KeptText(kept_bytes - evaluator_.KeptBytes(loops)) : "",
                         rules.empty() ? "" : "; ", rules);
  if (std::any_of(loops.begin(), loops.end(), [&](LoopId l) { return evaluator_.IsForced(l); })) {
    entry->what_ifs = {{kWhatIfRules, 0,
                        plan_.groups[g].registered.empty()
                            ? "may be several kernels without the rule that forces it"
                            : "may be several kernels if the registered kernel were not forced"}};
  } else if (IsForMemory(*entry)) {
    entry->what_ifs = WithoutPressure();
  } else {
    ASSIGN_OR_RETURN(const GroupVerdict* verdict, evaluator_.Evaluate(loops));
    entry->what_ifs = SlackWhatIfs(whole.time_us, weighed_us / verdict->factor);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> LedgerWriter::About(size_t g) {
  const Loops& loops = groups_[g];
  std::string text = evaluator_.rules().About(loops);
  const std::vector<RegisteredMatch>* matches = evaluator_.registered().Of(loops);
  if (matches == nullptr) return text;
  ASSIGN_OR_RETURN(const GroupVerdict* code, evaluator_.EvaluateGenerated(loops));
  const std::string& runs = plan_.groups[g].registered;
  for (const RegisteredMatch& match : *matches) {
    const std::string& name = match.kernel->name();
    StrAppend(&text, text.empty() ? "" : "; ");
    if (name != runs) {
      StrAppend(&text, StrCat("registered kernel ", Quote(name), " is estimated to be slower"));
      continue;
    }
    StrAppend(&text, StrCat("runs the registered kernel ", Quote(name),
                            match.kernel->force ? ", which is forced" : ""));
    if (!code->refusal.empty()) continue;
    StrAppend(&text,
              StrCat("; generated code would take ", MicrosecondsText(code->estimate.time_us)));
  }
  return text;
}

std::string LedgerWriter::PipelinesText(const LockedChoice& choice) {
  std::string text;
  for (const LockedPipeline& p : choice.pipelines) {
    text += StrCat(
        "phases ", p.first, " to ", p.first + p.phases - 1, " are a pipeline of slices of ",
        StrJoin(p.slices, " x ", [](const LockedTile& s) { return StrCat(s.tile, " of ", s.dim); }),
        "; ");
  }
  return text;
}

void LedgerWriter::SaySequence(size_t g, PlanDecision* entry) const {
  const DeviceSpec& device = evaluator_.device();
  entry->reason =
      StrCat(KindName(plan_.groups[g].kind), ": ", sequential_kernels_[g], " kernels as ",
             phases_[g], " phases of one launch, which gains ",
             LaunchText(SavedBySequence(sequential_kernels_[g], device)), " over a launch each; ",
             pipelines_[g], GainText(entry->benefit_us), " of ",
             MicrosecondsText(entry->first->time_us), " with one kernel a node");
  const double barrier_us = device.barrier_s * 1e6;
  entry->what_ifs = {
      {kWhatIfLaunchUs, barrier_us,
       StrCat("several launches if one cost no more than a barrier, ", LaunchText(barrier_us),
              " (it costs ", LaunchText(device.launch_s * 1e6), ")")}};
  if (options_.lock != nullptr) {
    entry->what_ifs = {
        {kWhatIfLockTurns, 0, "several launches if the lock had them in several groups"}};
  }
}

std::map<ValueId, std::vector<int>> LedgerWriter::ReadersOfValues() const {
  std::map<ValueId, std::vector<int>> out;
  for (size_t g = 0; g < groups_.size(); ++g) {
    for (LoopId l : groups_[g]) {
      for (ValueId v : program_.op(l).inputs) {
        LoopId from = program_.value(v).producer;
        for (; from != kNoLoop && program_.op(from).IsAlias(); from = program_.value(v).producer) {
          v = program_.op(from).inputs[0];
        }
        if (evaluator_.IsConstant(v)) continue;
        std::vector<int>& readers = out[v];
        auto reader = static_cast<int>(g);
        bool own =
            from != kNoLoop && std::binary_search(groups_[g].begin(), groups_[g].end(), from);
        if (!own && (readers.empty() || readers.back() != reader)) readers.push_back(reader);
      }
    }
  }
  return out;
}

PlanDecision* LedgerWriter::PairEntry(DecisionSubject subject, EntryKey key, const Refusal& refusal,
                                      DecisionPlace place) {
  PlanDecision* entry = Entry(subject, std::move(key));
  entry->places.push_back(std::move(place));
  if (entry->places.size() > 1) return nullptr;
  SetRefusal(refusal, entry);
  entry->first = estimates_[Index(entry->places[0].first_group)];
  entry->second = estimates_[Index(entry->places[0].second_group)];
  return entry;
}

absl::Status LedgerWriter::AddPair(DecisionSubject subject, int a, int b,
                                   std::vector<int> between) {
  const Loops& first = groups_[Index(a)];
  const Loops& second = groups_[Index(b)];
  const bool sequential = sequential_kernels_[Index(a)] > 0 || sequential_kernels_[Index(b)] > 0;
  const GroupVerdict* together = nullptr;
  Refusal refusal;
  if (sequential) {
    refusal = SequenceRefusal(a, b, between.size());
  } else {
    refusal = BeforeSchedules(first, second, between.size());
    if (refusal.empty()) {
      ASSIGN_OR_RETURN(together, evaluator_.Evaluate(Union(first, second)));
      ASSIGN_OR_RETURN(refusal, AfterSchedules(first, second, *together));
    }
  }
  PlanDecision* entry =
      PairEntry(subject, KeyOf(subject, first, second, refusal.ToString()), refusal,
                {.first_group = a, .second_group = b, .between = std::move(between)});
  if (entry == nullptr) return absl::OkStatus();
  if (sequential && refusal.code == RefusalCode::kPhases) {
    const int phases = PhasesOf(a) + PhasesOf(b);
    entry->what_ifs = {
        {kWhatIfPhases, static_cast<double>(phases),
         StrCat("one launch if it might have ", phases, " phases, whatever layers they are of")}};
    return absl::OkStatus();
  }
  if (sequential) return what_ifs_.SetKnown(first, second, refusal, entry);
  RETURN_IF_ERROR(SetTerms(first, second, together, entry));
  RETURN_IF_ERROR(SetWhatIfs(first, second, refusal, entry));
  return subject == DecisionSubject::kPair ? what_ifs_.AddTried(first, second, refusal, entry)
                                           : absl::OkStatus();
}

Refusal LedgerWriter::SequenceRefusal(int a, int b, size_t between) const {
  Refusal refusal = BeforeLaunches(groups_[Index(a)], groups_[Index(b)]);
  if (!refusal.empty()) return refusal;
  if (between > 0) return Cyclic(between);
  const double saved_us = SavedBySequence(2, evaluator_.device());
  if (options_.lock != nullptr) {
    return Refuse(RefusalCode::kLocked, "one launch would save ", LaunchText(saved_us),
                  "; the lock keeps them apart");
  }
  return Refuse(RefusalCode::kPhases, "one launch of ", PhasesOf(a) + PhasesOf(b),
                " phases would save ", LaunchText(saved_us), "; a launch is one layer, of at most ",
                kMostSequencePhases, " phases and ", kMostSequenceCompileSeconds,
                " s of compiling, and reads nothing under a shape of other factors that it "
                "writes");
}

Refusal LedgerWriter::BeforeSchedules(const Loops& first, const Loops& second,
                                      size_t between) const {
  Refusal refusal = BeforeLaunches(first, second);
  if (!refusal.empty()) return refusal;
  if (first.size() + second.size() > kMostOps) {
    return Refuse(RefusalCode::kLarge, first.size() + second.size(),
                  " loop ops; one kernel has at most ", kMostOps);
  }
  std::string wide = TooWide(program_, Union(first, second));
  if (!wide.empty()) return Refuse(RefusalCode::kWide, wide);
  return between > 0 ? Cyclic(between) : Refusal();
}

Refusal LedgerWriter::Cyclic(size_t between) {
  return Refuse(RefusalCode::kCyclic, between == kMostSetsBetween ? "at least " : "", between,
                between == 1 ? " group lies" : " groups lie", " between the two");
}

Refusal LedgerWriter::BeforeLaunches(const Loops& first, const Loops& second) const {
  if (options_.fusion == FusionMode::kOpByOp) {
    return Refuse(RefusalCode::kOpByOp, "the request asked for one kernel a node");
  }
  if (evaluator_.AreConstant(first) != evaluator_.AreConstant(second)) {
    return Refuse(RefusalCode::kPrepare, "the first is computed from weights alone, once");
  }
  for (const Loops* side : {&first, &second}) {
    for (LoopId l : *side) {
      auto failed = unfused_nodes_.find(program_.op(l).origin);
      if (failed == unfused_nodes_.end()) continue;
      return Refuse(RefusalCode::kAlone, "a kernel of a node failed: ", failed->second);
    }
  }
  return {};
}

absl::StatusOr<Refusal> LedgerWriter::AfterSchedules(const Loops& first, const Loops& second,
                                                     const GroupVerdict& together) {
  if (!together.refusal.empty()) return together.refusal;
  ASSIGN_OR_RETURN(const GroupVerdict* a, evaluator_.Evaluate(first));
  ASSIGN_OR_RETURN(const GroupVerdict* b, evaluator_.Evaluate(second));
  Refusal loss = WithoutGain(*a, *b, together);
  std::string memory;
  if (pressed_) {
    int64_t apart_bytes = evaluator_.KeptBytes(first) + evaluator_.KeptBytes(second);
    memory =
        StrCat(KeptText(apart_bytes - evaluator_.KeptBytes(Union(first, second))), ", holds ",
               together.run_bytes, " B for itself, and no plan of a lower peak was found with it");
  }
  loss.words += loss.empty() ? "" : memory;
  if (!loss.empty()) return loss;
  double apart_us = a->estimate.time_us + b->estimate.time_us;
  double together_us = together.estimate.time_us;
  double gain_us = a->weighed_us() + b->weighed_us() - together.weighed_us();
  if (IsTooSlow(apart_us, together_us)) {
    return Refuse(RefusalCode::kPressure, SpeedupText(apart_us / together_us));
  }
  bool weighed = std::abs(gain_us - (apart_us - together_us)) > 1e-9;
  std::string gain =
      StrCat("would gain ", MicrosecondsText(gain_us), weighed ? " as rules weigh it" : "");
  if (options_.lock != nullptr) {
    return Refuse(RefusalCode::kLocked, gain, "; the lock keeps them apart");
  }
  if (pressed_) return Refuse(RefusalCode::kPressure, gain, memory);
  return Refuse(RefusalCode::kSuperseded, gain,
                "; the plan as a whole was found with other merges");
}

std::vector<WhatIf> LedgerWriter::WithoutPressure() {
  return {{kWhatIfMemoryPressure, 0.8, "weighed by time at a memory pressure of 0.8 or less"}};
}

bool LedgerWriter::IsTooSlow(double apart_us, double together_us) const {
  return IsHighPressure(options_.hints.compute_pressure) &&
         apart_us <= kPressureSpeedup * together_us;
}

absl::Status LedgerWriter::AddView(int first, int second) {
  const Loops& a = groups_[Index(first)];
  const Loops& b = groups_[Index(second)];
  Refusal refusal = Refuse(RefusalCode::kView,
                           "0 B pass between the two: what the first looks at through a view, "
                           "the second looks at itself");
  EntryKey key{evaluator_.Key(a), refusal.ToString()};
  for (int k : evaluator_.Key(b)) key.first.push_back(k);
  PairEntry(DecisionSubject::kPair, std::move(key), refusal,
            {.first_group = first, .second_group = second});
  return absl::OkStatus();
}

absl::Status LedgerWriter::AddCandidate(const Considered& c) {
  PlanDecision* entry =
      Entry(DecisionSubject::kCandidate,
            KeyOf(DecisionSubject::kCandidate, c.first, c.second, c.refusal.ToString()));
  if (entry == nullptr) return absl::OkStatus();
  bool fresh = entry->places.empty();
  if (entry->places.size() < kMaxCandidatePlaces) {
    entry->places.push_back(
        {.first = NodesOf(program_, c.first), .second = NodesOf(program_, c.second)});
  }
  if (!fresh) return absl::OkStatus();
  SetRefusal(c.refusal, entry);
  const GroupVerdict* together = nullptr;
  bool possible = c.refusal.code != RefusalCode::kLarge && c.refusal.code != RefusalCode::kWide &&
                  c.refusal.code != RefusalCode::kAlone && c.refusal.code != RefusalCode::kCyclic &&
                  c.refusal.code != RefusalCode::kPipeline;
  if (possible) {
    ASSIGN_OR_RETURN(together, evaluator_.Evaluate(Union(c.first, c.second)));
  }
  if (c.second.empty()) {  // a group that was taken apart again
    entry->together = together->estimate;
    return SetWhatIfs(c.first, c.second, c.refusal, entry);
  }
  RETURN_IF_ERROR(SetTerms(c.first, c.second, together, entry));
  if (c.refusal.empty()) {
    std::string rules = evaluator_.rules().About(Union(c.first, c.second));
    entry->reason = StrCat(GainText(entry->benefit_us), rules.empty() ? "" : "; ", rules);
  }
  return SetWhatIfs(c.first, c.second, c.refusal, entry);
}

absl::Status LedgerWriter::SetTerms(const Loops& first, const Loops& second,
                                    const GroupVerdict* together, PlanDecision* entry) {
  ASSIGN_OR_RETURN(const GroupVerdict* a, evaluator_.Evaluate(first));
  ASSIGN_OR_RETURN(const GroupVerdict* b, evaluator_.Evaluate(second));
  entry->first = a->estimate;
  entry->second = b->estimate;
  if (together == nullptr || !together->refusal.empty()) return absl::OkStatus();
  entry->together = together->estimate;
  entry->benefit_us = a->estimate.time_us + b->estimate.time_us - together->estimate.time_us;
  return absl::OkStatus();
}

absl::Status LedgerWriter::SetWhatIfs(const Loops& first, const Loops& second,
                                      const Refusal& refusal, PlanDecision* entry) {
  if (refusal.code == RefusalCode::kSuperseded) return AddWinnerWhatIfs(first, second, entry);
  bool kept_apart =
      refusal.code == RefusalCode::kPressure && pressed_ && !second.empty() &&
      !IsTooSlow(entry->first->time_us + entry->second->time_us, entry->together->time_us);
  if (kept_apart || (refusal.empty() && IsForMemory(*entry))) {
    entry->what_ifs = WithoutPressure();
    return absl::OkStatus();
  }
  return what_ifs_.SetKnown(first, second, refusal, entry);
}

absl::Status LedgerWriter::AddWinnerWhatIfs(const Loops& first, const Loops& second,
                                            PlanDecision* entry) {
  size_t earliest = considered_.size();
  for (const Loops* side : {&first, &second}) {
    auto winner = winner_of_.find(*side);
    if (winner != winner_of_.end()) earliest = std::min(earliest, winner->second);
  }
  if (earliest == considered_.size()) return absl::OkStatus();
  const Considered& c = considered_[earliest];
  ASSIGN_OR_RETURN(const GroupVerdict* a, evaluator_.Evaluate(c.first));
  ASSIGN_OR_RETURN(const GroupVerdict* b, evaluator_.Evaluate(c.second));
  ASSIGN_OR_RETURN(const GroupVerdict* both, evaluator_.Evaluate(Union(c.first, c.second)));
  double gain_us = a->estimate.time_us + b->estimate.time_us - both->estimate.time_us;
  entry->what_ifs.push_back(
      {kWhatIfGainUs, gain_us,
       StrCat("weighed first if it gained more than the merge that took a side of it, ",
              MicrosecondsText(gain_us), " (it would gain ", MicrosecondsText(entry->benefit_us),
              ")")});
  return absl::OkStatus();
}

absl::Status WriteLedger(const Graph& graph, ProgramOf of,
                         const std::vector<std::vector<LoopId>>& by_node,
                         const std::vector<Considered>& considered, const PlanOptions& options,
                         const std::map<NodeId, std::string>& unfused_nodes,
                         GroupEvaluator* evaluator, PlannedModel* model) {
  LedgerWriter ledger(by_node, considered, options, unfused_nodes, evaluator, model);
  RETURN_IF_ERROR(ledger.AddGroups());
  GroupEdges order(model->program, model->groups);
  RETURN_IF_ERROR(ledger.AddPairs(order));
  if (of == ProgramOf::kGraph) RETURN_IF_ERROR(ledger.AddViews(graph, order.edges()));
  RETURN_IF_ERROR(ledger.AddSiblings(order));
  RETURN_IF_ERROR(ledger.AddCandidates());
  ledger.Finish(std::move(model->inner_decisions));
  return absl::OkStatus();
}

}  // namespace fusion
