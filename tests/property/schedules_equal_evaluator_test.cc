// Random graphs: what their plans compute, fused and one kernel a node, is what the evaluator
// computes; so is what every kernel of a plan computes in every way that the planner would weigh to
// cut it, streamed in short tiles and side by side too. All on the schedule interpreter, on random
// inputs and on inputs with NaN, infinities, -0 and subnormals. FUSION_RANDOM_GRAPHS says how many
// graphs; see tests/README.md.
#include <gtest/gtest.h>

#include <charconv>
#include <cstdio>
#include <cstdlib>

#include "core/check/reference_checker.h"
#include "core/graph/build/canonical.h"
#include "core/graph/build/text.h"
#include "core/plan/planner.h"
#include "core/schedule/lower/reference.h"
#include "core/schedule/lower/streamed_group.h"
#include "core/tensor/compare.h"
#include "tests/support/group_choices.h"
#include "tests/support/interpreted_kernel.h"
#include "tests/support/plan_interpreter.h"
#include "tests/support/random_graph.h"
#include "tests/support/random_scatters.h"
#include "tests/support/random_windows.h"
#include "tests/support/whole_program.h"

namespace fusion {
namespace {

constexpr uint64_t kGraphs = 300;
// Graphs of one test; every one of them has schedules of every kind.
constexpr uint64_t kBatch = 50;

// Each graph on one of them in turn: caches of two vector widths, memories of two units.
constexpr const char* kDevices[] = {"generic-avx2", "h100", "intel-skylake-server", "ascend_910b"};

uint64_t Batches() {
  const char* word = std::getenv("FUSION_RANDOM_GRAPHS");
  uint64_t graphs = kGraphs;
  if (word != nullptr) {
    std::string_view text = word;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), graphs);
    bool good = error == std::errc() && end == text.data() + text.size() && graphs > 0;
    FUSION_CHECK(good, "FUSION_RANDOM_GRAPHS is a number of graphs, at least 1");
  }
  return (graphs + kBatch - 1) / kBatch;
}

// The form in which a kernel streams a dim; null: it streams none.
std::shared_ptr<const StreamedGroup> FormOf(const GroupChoice& choice) {
  if (!choice.tiling.streamed.has_value()) return nullptr;
  const Smg& smg = choice.group.smg;
  for (DimId d = 0; d < static_cast<DimId>(smg.dims.size()); ++d) {
    if (smg.dim(d).name == choice.tiling.streamed->dim) return StreamGroup(choice.group, d);
  }
  return nullptr;
}

/// Schedules that were compared, by what they do.
struct Tally {
  int schedules = 0;
  int streamed = 0;   // a dim, tile by tile
  int rewritten = 0;  // of these: in another form than the ops'
  int masked = 0;     // of these: tiles that masks leave empty are left out
  int halos = 0;      // blocks compute what windows reach
  int side_by_side = 0;
  int packed = 0;    // with weights laid out before
  int two_sums = 0;  // several reductions or products in one kernel
  int placed = 0;    // reductions at places that are read

  void Add(const GroupChoice& choice) {
    ++schedules;
    const Schedule& schedule = choice.lowered.schedule;
    bool streams = choice.tiling.streamed.has_value();
    bool other_form = IsRewritten(choice);
    for (const auto& part : choice.parts) {
      streams |= part->tiling.streamed.has_value();
      other_form |= IsRewritten(*part);
    }
    streamed += streams ? 1 : 0;
    rewritten += other_form ? 1 : 0;
    masked += schedule.SkipsMasked() ? 1 : 0;
    for (const Segment& segment : schedule.phases[0].segments) {
      if (segment.halos.empty()) continue;
      ++halos;
      break;
    }
    side_by_side += schedule.phases[0].segments.size() > 1 ? 1 : 0;
    for (const LoweredParam& param : choice.lowered.params) {
      if (!param.packed) continue;
      ++packed;
      break;
    }
    placed += fusion::ToString(schedule).find(" at ") != std::string::npos ? 1 : 0;
    int sums = 0;
    for (const LoopOp& op : choice.program.ops) sums += op.body.reduce ? 1 : 0;
    two_sums += sums > 1 ? 1 : 0;
  }

  std::string ToString() const {
    return StrCat(schedules, " schedules: ", streamed, " streamed, ", rewritten,
                  " of them with corrected partial results, ", masked, " leave out masked tiles, ",
                  side_by_side, " side by side, ", packed, " with packed weights, ", two_sums,
                  " with several reductions, ", halos, " with halos, ", placed, " at places");
  }

 private:
  static bool IsRewritten(const GroupChoice& choice) {
    std::shared_ptr<const StreamedGroup> form = FormOf(choice);
    return form != nullptr && form->rewritten;
  }
};

// Sums are taken in another order, and intermediates of a group are not rounded.
constexpr Tolerance kTolerance = {.atol = 2e-5, .rtol = 2e-4};

/// One graph, planned for one device in several ways.
class Comparison {
 public:
  Comparison(uint64_t seed, const Graph& graph, Tally* tally)
      : seed_(seed), device_(DeviceNamed(kDevices[seed % std::size(kDevices)], 2)), tally_(*tally) {
    auto canonical = Canonicalise(graph);
    FUSION_CHECK(canonical.ok(), Message(canonical.status()));
    graph_ = std::move(canonical->graph);
  }

  void Run() {
    for (FusionMode fusion : {FusionMode::kFused, FusionMode::kOpByOp}) {
      ComparePlan({.fusion = fusion}, /*all_choices=*/fusion == FusionMode::kFused);
    }
    ComparePlan({.numerics = Numerics::kBitwise}, /*all_choices=*/false);
  }

 private:
  std::string Where(const PlanOptions& options) const {
    return StrCat("seed ", seed_, ", ", device_.name, ", ",
                  options.fusion == FusionMode::kFused ? "fused" : "op by op",
                  options.numerics == Numerics::kBitwise ? ", bitwise" : "", "\n",
                  ToString(graph_));
  }

  void ComparePlan(const PlanOptions& options, bool all_choices) {
    SCOPED_TRACE(Where(options));
    auto model = MakePlan(graph_, device_, options);
    ASSERT_TRUE(model.ok()) << model.status();
    PlanValues values = RandomPlanValues(*model, seed_);
    auto wanted = EvaluatePlanned(graph_, *model, values);
    ASSERT_TRUE(wanted.ok()) << wanted.status();
    auto got = InterpretPlan(*model, values.inputs, values.weights);
    ASSERT_TRUE(got.ok()) << got.status();
    for (size_t o = 0; o < got->size(); ++o) {
      Difference d = Compare((*got)[o], (*wanted)[o], kTolerance);
      EXPECT_TRUE(d.ok()) << "output " << o << ": " << d.ToString();
    }
    for (const PlannedKernel& kernel : model->kernels) {
      CompareKernel(kernel.schedule, kernel.reference);
    }
    if (!all_choices) return;
    GroupEvaluator evaluator(model->program, device_, options, nullptr);
    for (const std::vector<LoopId>& loops : model->groups) {
      if (!loops.empty()) CompareChoices(loops, options, &evaluator);
    }
  }

  // What the planner weighs and finds too large for the chip when it makes the schedule.
  static bool IsTooLarge(const absl::Status& pinned) {
    const std::string reason = StrCat(RefusalRow(RefusalCode::kOnChip).word, ": the tiles of");
    return Message(pinned).find(reason) != std::string_view::npos;
  }

  void CompareChoices(const std::vector<LoopId>& loops, const PlanOptions& options,
                      GroupEvaluator* evaluator) {
    std::vector<LockedChoice> choices = ChoicesOf(loops, options, *evaluator);
    ASSERT_FALSE(choices.empty());
    for (const LockedChoice& choice : choices) {
      absl::Status pinned = evaluator->Pin(loops, choice);
      // Not all kernels can stand beside others, nor do all tiles fit on chip.
      if (!pinned.ok() && (choice.parts.size() > 1 || IsTooLarge(pinned))) continue;
      ASSERT_TRUE(pinned.ok()) << pinned;
      auto made = evaluator->Choose(loops);
      ASSERT_TRUE(made.ok()) << made.status();
      const GroupChoice& found = **made;
      tally_.Add(found);
      CompareKernel(found.lowered.schedule,
                    MakeReference(found.program, found.group, found.lowered));
    }
  }

  void CompareKernel(const Schedule& schedule, const KernelReference& reference) {
    absl::Status sound = Verify(schedule);
    EXPECT_TRUE(sound.ok()) << sound << "\n" << ToString(schedule);
    auto report = CheckKernel(*Interpreted(schedule), schedule, reference);
    ASSERT_TRUE(report.ok()) << report.status() << "\n" << ToString(schedule);
    bool no_values = report->reason.starts_with("no values to compare on");
    EXPECT_TRUE(report->verified || no_values) << report->reason << "\n" << ToString(schedule);
  }

  const uint64_t seed_;
  const DeviceSpec device_;
  Graph graph_;
  Tally& tally_;
};

class RandomGraphs : public ::testing::TestWithParam<uint64_t> {};

TEST_P(RandomGraphs, EveryScheduleEqualsTheEvaluator) {
  Tally tally;
  for (uint64_t i = 1; i <= kBatch; ++i) {
    const uint64_t seed = GetParam() * kBatch + i;
    // Every third graph is of single ops.
    Comparison(seed, seed % 3 == 0 ? RandomGraph(seed) : RandomChainGraph(seed), &tally).Run();
    if (HasFatalFailure()) return;
  }
  std::printf("%s\n", tally.ToString().c_str());
  // Otherwise nothing was shown about them.
  EXPECT_GT(tally.streamed, 0);
  EXPECT_GT(tally.rewritten, 0);
  EXPECT_GT(tally.masked, 0);
  EXPECT_GT(tally.side_by_side, 0);
  EXPECT_GT(tally.packed, 0);
  EXPECT_GT(tally.two_sums, 0);
}

// Convolutions and pools with what surrounds them.
TEST_P(RandomGraphs, EveryScheduleOfWindowsEqualsTheEvaluator) {
  Tally tally;
  for (uint64_t i = 1; i <= kBatch; ++i) {
    const uint64_t seed = GetParam() * kBatch + i;
    Comparison(seed, RandomWindowGraph(seed), &tally).Run();
    if (HasFatalFailure()) return;
  }
  std::printf("%s\n", tally.ToString().c_str());
  EXPECT_GT(tally.halos, 0);
}

// Reductions at places that indices say.
TEST_P(RandomGraphs, EveryScheduleOfScattersEqualsTheEvaluator) {
  Tally tally;
  for (uint64_t i = 1; i <= kBatch; ++i) {
    const uint64_t seed = GetParam() * kBatch + i;
    Comparison(seed, RandomScatterGraph(seed), &tally).Run();
    if (HasFatalFailure()) return;
  }
  std::printf("%s\n", tally.ToString().c_str());
  EXPECT_GT(tally.placed, 0);
}

INSTANTIATE_TEST_SUITE_P(All, RandomGraphs, ::testing::Range(uint64_t{0}, Batches()));

}  // namespace
}  // namespace fusion
