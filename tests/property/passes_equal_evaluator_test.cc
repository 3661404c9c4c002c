// Every rewrite of programs (core/rewrite/program_passes.h) on random graphs of every kind, with
// loops and without: each pass alone and all in turn, outside and in the bodies of loops, leave a
// sound program that computes the same; and plans made with them are right and go without none.
#include <gtest/gtest.h>

#include "core/bundle/tolerance.h"
#include "core/graph/build/canonical.h"
#include "core/graph/build/text.h"
#include "core/graph/evaluate/evaluate.h"
#include "core/graph/evaluate/test_values.h"
#include "core/plan/planner.h"
#include "core/tensor/compare.h"
#include "tests/support/kernel_harness.h"
#include "tests/support/plan_interpreter.h"
#include "tests/support/random_graph.h"
#include "tests/support/random_rewrites.h"
#include "tests/support/random_windows.h"

namespace fusion {
namespace {

constexpr uint64_t kGraphs = 96;

// Of every kind: most of those that passes look for.
Graph RandomGraphOfAnyKind(uint64_t seed) {
  Graph graph = [&] {
    switch (seed % 8) {
      case 0:
        return RandomLoopGraph(seed);
      case 1:
        return RandomGraph(seed);
      case 2:
        return RandomChainGraph(seed);
      case 3:
        return RandomWindowGraph(seed);
      default:
        return RandomRewriteGraph(seed);
    }
  }();
  auto canonical = Canonicalise(seed % 5 == 0 ? WithRandomStrides(graph, seed) : graph);
  FUSION_CHECK(canonical.ok(), Message(canonical.status()));
  return std::move(canonical->graph);
}

bool HasLoops(const Program& program) {
  return std::any_of(program.ops.begin(), program.ops.end(),
                     [](const LoopOp& op) { return op.kind == LoopOp::kRepeat; });
}

// Values of the program, small enough that recurrences forget what rounding did to them.
struct Values {
  std::vector<HostTensor> inputs;
  std::vector<HostTensor> weights;
};

std::vector<HostTensor> SmallTensors(const Program& program, const std::vector<ValueId>& ids,
                                     uint64_t seed) {
  std::vector<HostTensor> out;
  for (ValueId v : ids) {
    out.push_back(RandomTensor(program.value(v).type, ++seed * 7919));
    HostTensor& t = out.back();
    for (int64_t i = 0; IsFloat(t.dtype()) && i < t.elements(); ++i) {
      t.SetDouble(i, 0.25 * t.GetDouble(i));
    }
  }
  return out;
}

Values SmallValues(const Program& program, uint64_t seed) {
  return {SmallTensors(program, program.inputs, seed),
          SmallTensors(program, program.weights, seed + 100)};
}

std::vector<HostTensor> Evaluated(const Program& program, const Values& values) {
  std::vector<Box> whole;
  for (ValueId v : program.outputs) {
    whole.push_back(Box::Whole(program.value(v).type.shape.ToDims()));
  }
  auto result = EvaluateBoxes(program, whole, [&](ValueId v) -> const HostTensor* {
    const Value& value = program.value(v);
    const auto index = static_cast<size_t>(value.index);
    if (value.kind == TensorKind::kInput) return &values.inputs[index];
    return value.kind == TensorKind::kWeight ? &values.weights[index] : nullptr;
  });
  FUSION_CHECK(result.ok(), Message(result.status()));
  return *std::move(result);
}

// What passes do, where: ops of programs and of bodies that are others than before.
struct Tally {
  std::map<std::string, int> outside;
  std::map<std::string, int> inside;
};

// Runs a pass over a program and, as the planner does, over the body of each of its loops, whose
// leaves stay the same inputs and weights.
void RewriteAll(const ProgramPass& pass, const DeviceSpec& device, bool in_body, Program* program,
                Tally* tally) {
  for (LoopOp& op : program->ops) {
    if (op.kind != LoopOp::kRepeat) continue;
    const Program& before = *op.loop->body;
    auto loop = std::make_shared<ProgramLoop>(*op.loop);
    auto body = std::make_shared<Program>(before);
    RewriteAll(pass, device, /*in_body=*/true, body.get(), tally);
    auto follow = [&](ValueId* leaf) {
      const Value& value = before.value(*leaf);
      const auto& list = value.kind == TensorKind::kInput ? body->inputs : body->weights;
      *leaf = list[static_cast<size_t>(value.index)];
    };
    for (ProgramLoop::Operand& operand : loop->operands) follow(&operand.leaf);
    if (loop->pass != kNoValue) follow(&loop->pass);
    loop->body = std::move(body);
    op.loop = std::move(loop);
  }
  const std::string before = ToString(*program);
  const Numerics numerics =
      pass.allowed(Numerics::kFp32Accumulate) ? Numerics::kFp32Accumulate : Numerics::kFast;
  const bool changed = pass.run(device, numerics, nullptr, program);
  EXPECT_EQ(changed, ToString(*program) != before) << pass.name << "\n" << before;
  if (changed) ++(in_body ? tally->inside : tally->outside)[pass.name];
}

// Quantised as a run goes, a last place becomes a whole step of 256.
bool QuantisesWhatIsComputed(const Graph& graph) {
  return ToString(graph).find("uantize") != std::string::npos;
}

void ExpectClose(const std::vector<HostTensor>& got, const std::vector<HostTensor>& wanted,
                 const Tolerance& tolerance, const std::string& what) {
  ASSERT_EQ(got.size(), wanted.size()) << what;
  for (size_t o = 0; o < got.size(); ++o) {
    const Difference d = Compare(got[o], wanted[o], tolerance);
    EXPECT_TRUE(d.ok()) << what << ", output " << o << ": " << d.ToString();
  }
}

// The bound of what passes may change.
Tolerance ToleranceOf(const Graph& graph, bool fast) {
  const bool quantised = QuantisesWhatIsComputed(graph);
  if (fast) return {.atol = quantised ? 8e-2 : 2e-2, .rtol = 2e-2};
  return quantised ? Tolerance{.atol = 2e-2, .rtol = 1e-3} : Tolerance{.atol = 2e-5, .rtol = 2e-4};
}

class RandomPrograms : public ::testing::TestWithParam<uint64_t> {};

TEST_P(RandomPrograms, PassesLeaveSoundProgramsThatComputeTheSame) {
  const Graph graph = RandomGraphOfAnyKind(GetParam());
  auto built = BuildProgram(graph);
  ASSERT_TRUE(built.ok()) << built.status();
  ASSERT_TRUE(Verify(*built).ok()) << Verify(*built) << "\n" << ToString(*built);
  const Values values = SmallValues(*built, GetParam());
  const std::vector<HostTensor> wanted = Evaluated(*built, values);
  Tally tally;
  for (std::string_view name : {"generic-avx2", "generic-avx512-bf16"}) {
    const DeviceSpec device = DeviceNamed(name, 2);
    Program all = *built;
    bool fast = false;
    for (const ProgramPass& pass : ProgramPasses()) {
      const bool rounds = !pass.allowed(Numerics::kFp32Accumulate);
      Program alone = *built;
      RewriteAll(pass, device, false, &alone, &tally);
      RewriteAll(pass, device, false, &all, &tally);
      fast |= rounds;
      for (const auto& [program, loose] : {std::pair{&alone, rounds}, std::pair{&all, fast}}) {
        const std::string what = StrCat("seed ", GetParam(), ", ", name, ", ", pass.name,
                                        program == &all ? " behind others" : " alone");
        const absl::Status sound = Verify(*program);
        ASSERT_TRUE(sound.ok()) << what << ": " << sound << "\n" << ToString(*program);
        auto again = ParseProgram(ToString(*program));
        ASSERT_TRUE(again.ok()) << what << ": " << again.status() << "\n" << ToString(*program);
        EXPECT_EQ(ToString(*again), ToString(*program)) << what;
        ExpectClose(Evaluated(*program, values), wanted, ToleranceOf(graph, loose), what);
      }
    }
  }
}

TEST_P(RandomPrograms, PlansGoWithoutNoPass) {
  const Graph graph = RandomGraphOfAnyKind(GetParam());
  const Numerics numerics[] = {Numerics::kFp32Accumulate, Numerics::kFast, Numerics::kBitwise};
  const Numerics chosen = numerics[GetParam() % 3];
  const std::string name = GetParam() % 2 == 0 ? "generic-avx512-bf16" : "generic-avx2";
  SCOPED_TRACE(StrCat("seed ", GetParam(), " on ", name, "\n", ToString(graph)));
  auto model = MakePlan(graph, DeviceNamed(name, 2), {.numerics = chosen});
  ASSERT_TRUE(model.ok()) << model.status();
  for (const SkippedPass& skipped : model->plan.skipped_passes) {
    ADD_FAILURE() << skipped.pass << ": " << skipped.reason;
  }
  const Values small = SmallValues(model->program, GetParam());
  const PlanValues values{small.inputs, small.weights};
  auto got = InterpretPlan(*model, values.inputs, values.weights);
  ASSERT_TRUE(got.ok()) << got.status();
  auto wanted = EvaluatePlanned(graph, *model, values);
  ASSERT_TRUE(wanted.ok()) << wanted.status();
  ExpectClose(*got, *wanted, ToleranceOf(graph, chosen == Numerics::kFast), "plan");
}

INSTANTIATE_TEST_SUITE_P(All, RandomPrograms, ::testing::Range(uint64_t{0}, kGraphs));

// Otherwise nothing was shown about a pass.
TEST(RandomRewrites, EachPassRewritesProgramsWithLoopsAndBodies) {
  Tally tally;
  int with_loops = 0;
  const DeviceSpec device = DeviceNamed("generic-avx512-bf16", 2);
  for (uint64_t seed = 0; seed < kGraphs; ++seed) {
    auto program = BuildProgram(RandomGraphOfAnyKind(seed));
    ASSERT_TRUE(program.ok()) << program.status();
    if (!HasLoops(*program)) continue;
    ++with_loops;
    for (const ProgramPass& pass : ProgramPasses()) {
      Program rewritten = *program;
      RewriteAll(pass, device, false, &rewritten, &tally);
    }
  }
  EXPECT_GT(with_loops, 40);
  for (const ProgramPass& pass : ProgramPasses()) {
    EXPECT_GT(tally.outside[pass.name], 5) << pass.name;
    EXPECT_GT(tally.inside[pass.name], 5) << pass.name;
  }
}

}  // namespace
}  // namespace fusion
