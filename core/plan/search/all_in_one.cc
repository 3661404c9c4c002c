#include "core/plan/search/all_in_one.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <tuple>

#include "core/benefit/compile_cost.h"
#include "core/plan/sets/loop_sets.h"

namespace fusion {
namespace {

using Loops = std::vector<LoopId>;

// Joins the launches of one grouping to whole layers.
class SequenceJoiner {
 public:
  SequenceJoiner(Grouping grouping, const std::map<NodeId, std::string>& unfused_nodes,
                 GroupEvaluator* evaluator)
      : out_(std::move(grouping)), unfused_nodes_(unfused_nodes), evaluator_(*evaluator) {}

  absl::StatusOr<Grouping> Run() {
    const DeviceSpec& device = evaluator_.device();
    if (device.barrier_s >= device.launch_s || !unfused_nodes_.empty()) return std::move(out_);
    std::stable_partition(out_.groups.begin(), out_.groups.end(),
                          [&](const Loops& loops) { return evaluator_.AreConstant(loops); });
    out_.follows.assign(out_.groups.size(), false);
    for (size_t begin = 0; begin < out_.groups.size();) {
      size_t end = begin;
      while (end < out_.groups.size() && MayJoin(out_.groups[end])) ++end;
      RETURN_IF_ERROR(JoinStretch(begin, end));
      begin = end + 1;
    }
    return std::move(out_);
  }

 private:
  // A registered kernel or an opaque op is a launch of its own.
  bool MayJoin(const Loops& loops) const {
    return !evaluator_.AreConstant(loops) && evaluator_.registered().Of(loops) == nullptr &&
           !HasOpaque(evaluator_.program(), loops);
  }

  absl::StatusOr<int> PhasesOf(const Loops& loops) {
    ASSIGN_OR_RETURN(const GroupVerdict* verdict, evaluator_.Evaluate(loops));
    return verdict->phases;
  }

  // Joins groups [begin, end), which could be one launch apart from its limits.
  absl::Status JoinStretch(size_t begin, size_t end) {
    std::vector<int> phases;
    for (size_t g = begin; g < end; ++g) {
      ASSIGN_OR_RETURN(int more, PhasesOf(out_.groups[g]));
      phases.push_back(more);
    }
    bool fits = std::accumulate(phases.begin(), phases.end(), int64_t{0}) <= kMostSequencePhases;
    std::vector<bool> starts = fits ? std::vector<bool>(phases.size()) : LayersOf(begin, phases);
    SequentialPhases sequence;
    for (size_t g = begin; g < end; ++g) {
      SequentialPhases longer = sequence;
      longer.push_back(out_.groups[g]);
      bool joins = false;
      if (!sequence.empty() && !starts[g - begin]) {
        ASSIGN_OR_RETURN(joins, IsOneLaunch(longer));
      }
      if (joins) {
        out_.follows[g] = true;
        sequence = std::move(longer);
        continue;
      }
      if (!sequence.empty()) RETURN_IF_ERROR(ConsiderPipelines(sequence));
      sequence = {out_.groups[g]};
    }
    return sequence.empty() ? absl::OkStatus() : ConsiderPipelines(sequence);
  }

  // By group from `begin`: whether a layer starts there. All groups equal to one chosen group are
  // starts. Candidates are groups that occur at least twice and leave no piece longer than a
  // launch. The one that occurs least often is chosen, since half a layer may look like the other
  // half; of several, the first.
  std::vector<bool> LayersOf(size_t begin, const std::vector<int>& phases) {
    std::map<std::vector<int>, std::vector<size_t>> places;
    for (size_t g = 0; g < phases.size(); ++g) {
      places[evaluator_.Key(out_.groups[begin + g])].push_back(g);
    }
    auto rank = [&](const std::vector<size_t>& at) {
      return std::tuple(LongestBetween(at, phases) > kMostSequencePhases, at.size(), at[0]);
    };
    const std::vector<size_t>* best = nullptr;
    for (const auto& [key, at] : places) {
      if (at.size() > 1 && (best == nullptr || rank(at) < rank(*best))) best = &at;
    }
    std::vector<bool> starts(phases.size(), false);
    for (size_t g : best != nullptr ? *best : std::vector<size_t>()) starts[g] = true;
    return starts;
  }

  // Phases of the longest piece if every one of these groups starts a new piece.
  static int64_t LongestBetween(const std::vector<size_t>& starts, const std::vector<int>& phases) {
    int64_t longest = 0;
    int64_t piece = 0;
    for (size_t g = 0; g < phases.size(); ++g) {
      if (std::binary_search(starts.begin(), starts.end(), g)) piece = 0;
      piece += phases[g];
      longest = std::max(longest, piece);
    }
    return longest;
  }

  absl::StatusOr<bool> IsOneLaunch(const SequentialPhases& sequence) {
    int phases = 0;
    for (const Loops& part : sequence) {
      ASSIGN_OR_RETURN(int more, PhasesOf(part));
      phases += more;
    }
    if (phases > kMostSequencePhases) return false;
    if (!TooWide(evaluator_.program(), UnionOf(sequence)).empty()) return false;
    ASSIGN_OR_RETURN(const GroupVerdict* verdict, evaluator_.EvaluateSequential(sequence));
    if (!verdict->refusal.empty()) return false;
    ASSIGN_OR_RETURN(const GroupChoice* choice, evaluator_.ChooseSequential(sequence));
    return CompileSeconds(ToString(choice->lowered.schedule)) <= kMostSequenceCompileSeconds;
  }

  // Records why parts of a launch that read from the part before them wait at a barrier.
  absl::Status ConsiderPipelines(const SequentialPhases& sequence) {
    if (sequence.size() == 1) return absl::OkStatus();
    ASSIGN_OR_RETURN(const GroupChoice* choice, evaluator_.ChooseSequential(sequence));
    size_t last = 0;  // phase of the part
    for (size_t i = 0; i + 1 < sequence.size(); ++i) {
      last += choice->parts[i]->lowered.schedule.phases.size();
      const Refusal& refusal = choice->waits[last - 1];
      if (refusal.empty() || !Reads(sequence[i + 1], sequence[i])) continue;
      out_.considered.push_back({sequence[i], sequence[i + 1], refusal});
    }
    return absl::OkStatus();
  }

  bool Reads(const Loops& reader, const Loops& writer) const {
    const Program& program = evaluator_.program();
    return std::any_of(reader.begin(), reader.end(), [&](LoopId l) {
      const std::vector<ValueId>& in = program.op(l).inputs;
      return std::any_of(in.begin(), in.end(), [&](ValueId v) {
        LoopId from = program.value(v).producer;
        return from != kNoLoop && std::binary_search(writer.begin(), writer.end(), from);
      });
    });
  }

  Grouping out_;
  const std::map<NodeId, std::string>& unfused_nodes_;
  GroupEvaluator& evaluator_;
};

}  // namespace

absl::StatusOr<Grouping> JoinSequential(Grouping grouping,
                                        const std::map<NodeId, std::string>& unfused_nodes,
                                        GroupEvaluator* evaluator) {
  return SequenceJoiner(std::move(grouping), unfused_nodes, evaluator).Run();
}

}  // namespace fusion
