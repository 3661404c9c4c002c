// Lowered schedules on the interpreter against the evaluator; generated code is another matter
// (tests/conformance).
#include "core/schedule/lower/lower.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/graph/build/text.h"
#include "core/graph/evaluate/evaluate.h"
#include "core/graph/evaluate/test_values.h"
#include "core/schedule/lower/interpret.h"
#include "core/schedule/lower/reference.h"
#include "core/schedule/tiles/candidates.h"
#include "tests/support/dims.h"
#include "tests/support/disguise.h"
#include "tests/support/field_count.h"
#include "tests/support/sample_graphs.h"
#include "tests/support/split_lowering.h"
#include "tests/support/stream_cases.h"
#include "tests/support/whole_program.h"

namespace fusion {
namespace {

WholeProgram WholeOfText(std::string_view text) {
  auto graph = ParseGraph(text);
  FUSION_CHECK(graph.ok(), Message(graph.status()));
  auto whole = AsOneGroup(BuildProgram(*graph).value());
  FUSION_CHECK(whole.ok(), Message(whole.status()));
  return *std::move(whole);
}

// What param p of a kernel holds for `value`, a row-major tensor of the program.
absl::StatusOr<HostTensor> AsParam(const WholeProgram& whole, const Lowered& lowered, size_t p,
                                   const HostTensor& value) {
  const Buffer& buffer = lowered.schedule.buffer(static_cast<BufferId>(p));
  if (!lowered.params[p].packed) return value.Reshaped(buffer.shape);
  Schedule pack = PackSchedule(whole.group, lowered, p);
  RETURN_IF_ERROR(Verify(pack));
  std::vector<HostTensor> both = {value.Reshaped(pack.buffer(0).shape),
                                  HostTensor(buffer.dtype, buffer.shape)};
  RETURN_IF_ERROR(Interpret(pack, &both));
  return std::move(both[1]);
}

void ExpectEqualsEvaluator(const WholeProgram& whole, const Lowered& lowered) {
  KernelReference reference = MakeReference(whole.program, whole.group, lowered);
  const Program& program = reference.program;
  std::vector<HostTensor> inputs = RandomInputs(program, /*seed=*/1, /*adversarial=*/false);
  std::vector<Box> boxes;
  for (ValueId v : program.outputs) {
    boxes.push_back(Box::Whole(program.value(v).type.shape.ToDims()));
  }
  auto expected = EvaluateBoxes(program, boxes, [&](ValueId v) {
    auto at = std::find(program.inputs.begin(), program.inputs.end(), v) - program.inputs.begin();
    return &inputs[static_cast<size_t>(at)];
  });
  ASSERT_TRUE(expected.ok()) << expected.status();

  std::vector<HostTensor> params;
  for (size_t p = 0; p < reference.params.size(); ++p) {
    const Buffer& buffer = lowered.schedule.buffer(static_cast<BufferId>(p));
    auto index = static_cast<size_t>(reference.params[p].index);
    absl::StatusOr<HostTensor> param = HostTensor(buffer.dtype, buffer.shape);
    if (!reference.params[p].output) param = AsParam(whole, lowered, p, inputs[index]);
    ASSERT_TRUE(param.ok()) << param.status();
    params.push_back(*std::move(param));
  }
  absl::Status status = Interpret(lowered.schedule, &params);
  ASSERT_TRUE(status.ok()) << status;
  for (size_t p = 0; p < params.size(); ++p) {
    if (!reference.params[p].output) continue;
    const HostTensor& output = (*expected)[static_cast<size_t>(reference.params[p].index)];
    for (int64_t e = 0; e < params[p].elements(); ++e) {
      double wanted = output.GetDouble(e);
      double got = params[p].GetDouble(e);
      if (got == wanted || (std::isnan(wanted) && std::isnan(got))) continue;
      // Halves are rounded after every op of the original.
      double tolerance = output.dtype() == DType::kF16 ? 4e-3 : 1e-4;
      ASSERT_NEAR(got, wanted, tolerance * (1 + std::abs(wanted))) << "element " << e;
    }
  }
}

class Lowering : public ::testing::TestWithParam<std::tuple<SampleGraph, const char*>> {};

// What choices have in common does not show in what becomes of each.
TEST_P(Lowering, OfOneGroupIsThatOfEachChoice) {
  auto [sample, device_name] = GetParam();
  WholeProgram whole = WholeOfText(sample.text);
  DeviceSpec device = DeviceNamed(device_name, 2);
  std::vector<Choice> choices = EnumerateChoices(whole.group, device, {.limit = 100}, nullptr);
  GroupLowering lowering(whole.group, device, false);
  for (int turn = 0; turn < 2; ++turn) {
    for (const Choice& choice : choices) {
      auto lowered = lowering.Of(choice);
      ASSERT_TRUE(lowered.ok()) << lowered.status();
      EXPECT_EQ(ToString(lowered->schedule),
                ToString(Lower(whole.group, choice, device, false)->schedule));
    }
    std::reverse(choices.begin(), choices.end());
  }
}

// The whole graph as one kernel, in every enumerated way.
TEST_P(Lowering, EqualsTheEvaluator) {
  auto [sample, device_name] = GetParam();
  WholeProgram whole = WholeOfText(sample.text);
  DeviceSpec device = DeviceNamed(device_name, 2);
  std::string refusal;
  std::vector<Choice> choices = EnumerateChoices(whole.group, device, {.limit = 100}, &refusal);
  ASSERT_FALSE(choices.empty()) << refusal;
  for (const Choice& choice : choices) {
    auto lowered = Lower(whole.group, choice, device, false);
    ASSERT_TRUE(lowered.ok()) << lowered.status();
    std::string text = ToString(lowered->schedule);
    SCOPED_TRACE(text);
    ASSERT_TRUE(Verify(lowered->schedule).ok()) << Verify(lowered->schedule);
    auto back = ParseSchedule(text);
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(ToString(*back), text);
    ExpectEqualsEvaluator(whole, *lowered);
    EXPECT_EQ(ToString(Lower(whole.group, choice, device, false)->schedule), text);
  }
}

INSTANTIATE_TEST_SUITE_P(SampleGraphs, Lowering,
                         ::testing::Combine(::testing::ValuesIn(kSampleGraphs),
                                            ::testing::Values("generic-x86-64-v2", "generic-avx2",
                                                              "generic-avx512", "h100",
                                                              "ascend_910b", "ascend_910")),
                         [](const auto& param) {
                           std::string device = std::get<1>(param.param);
                           std::replace(device.begin(), device.end(), '-', '_');
                           return StrCat(std::get<0>(param.param).name, "_", device);
                         });

// Tile by tile, in ways to cut the rest.
void ExpectStreamsLikeTheEvaluator(const StreamCase& c, const WholeProgram& whole, int limit) {
  DeviceSpec device = DeviceNamed("generic-avx2", 2);
  DimId dim = DimOf(whole.group.smg, c.extent);
  Refusal why;
  std::shared_ptr<const StreamedGroup> streamed = StreamGroup(whole.group, dim, &why);
  if (c.kind == Streamed::kRefused) {
    EXPECT_EQ(streamed, nullptr);
    return;
  }
  ASSERT_NE(streamed, nullptr) << why.words;
  // People are told what is not looked at, and what is read more than once.
  auto tells = [&](std::string_view words) {
    const std::vector<std::string>& lines = streamed->group.certificate;
    return std::any_of(lines.begin(), lines.end(),
                       [&](const auto& l) { return l.find(words) != std::string::npos; });
  };
  EXPECT_EQ(tells("tiles that masks hide are left out"), !streamed->needed.empty());
  EXPECT_EQ(tells("underflow behind their masks"), !streamed->underflow.needed.empty());
  std::string refusal;
  for (Choice choice : EnumerateChoices(whole.group, device, {.limit = limit}, &refusal)) {
    std::erase_if(choice.grid, [&](const GridDim& g) { return g.dim == dim; });
    Choice original = choice;
    for (int64_t tile : {1, 5, 16}) {
      choice = original.Streaming(streamed, tile);
      auto lowered = Lower(whole.group, choice, device, false);
      // Packed columns are read panel by panel.
      if (!lowered.ok() && Message(lowered.status()).find("columns") != std::string::npos) continue;
      ASSERT_TRUE(lowered.ok()) << lowered.status();
      std::string text = ToString(lowered->schedule);
      SCOPED_TRACE(StrCat(StrJoin(streamed->group.certificate, "\n"), "\n", text));
      ASSERT_TRUE(Verify(lowered->schedule).ok()) << Verify(lowered->schedule);
      ExpectEqualsEvaluator(whole, *lowered);
    }
  }
}

class StreamLowering : public ::testing::TestWithParam<StreamCase> {};

TEST_P(StreamLowering, EqualsTheEvaluator) {
  const StreamCase& c = GetParam();
  WholeProgram whole = WholeOfText(c.graph);
  ExpectStreamsLikeTheEvaluator(c, whole, 100);
  if (c.kind == Streamed::kRefused || std::string_view(c.refusal).empty()) return;
  auto form = StreamGroup(whole.group, DimOf(whole.group.smg, c.extent));
  ASSERT_FALSE(form->group.certificate.empty());
  EXPECT_NE(form->group.certificate.back().find(StrCat("has no form: ", c.refusal, ": ")),
            std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(StreamCases, StreamLowering, ::testing::ValuesIn(kStreamCases),
                         [](const auto& param) { return std::string(param.param.name); });

// Keys and values in three inputs each, the first block behind a mask of its own.
constexpr StreamCase kSideBySide = {"side_by_side", 12, Streamed::kUpdateThenAggregate, "",
                                    R"(graph "g" {
  %0 = input "q" : f32[2,10,4]
  %1 = input "k0" : f32[2,4,7]
  %2 = input "k1" : f32[2,1,4]
  %3 = input "k2" : f32[2,4,4]
  %4 = input "v0" : f32[2,7,6]
  %5 = input "v1" : f32[2,1,6]
  %6 = input "v2" : f32[2,4,6]
  %7 = input "mask" : f32[10,7]
  %8 = const "0" : f32[10,5] {0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0}
  %9 = Transpose(%2) {perm=[0, 2, 1]} : f32[2,4,1]  "" @ ""
  %10 = Concat(%1, %9, %3) {axis=2} : f32[2,4,12]  "" @ ""
  %11 = Concat(%4, %5, %6) {axis=1} : f32[2,12,6]  "" @ ""
  %12 = Concat(%7, %8) {axis=1} : f32[10,12]  "" @ ""
  %13 = MatMul(%0, %10) : f32[2,10,12]  "" @ ""
  %14 = Add(%13, %12) : f32[2,10,12]  "" @ ""
  %15 = Softmax(%14) {axis=2} : f32[2,10,12]  "" @ ""
  %16 = MatMul(%15, %11) : f32[2,10,6]  "" @ ""
  output %16
}
)"};

// Each block has a loop of its own, in which products read it where it lies.
TEST(StreamedParts, EqualTheEvaluator) {
  const WholeProgram whole = WholeOfText(kSideBySide.graph);
  auto form = StreamGroup(whole.group, DimOf(whole.group.smg, kSideBySide.extent));
  ASSERT_NE(form, nullptr);
  ASSERT_EQ(form->parts.size(), 3U);
  EXPECT_EQ(form->parts[1].begin, 7);
  EXPECT_EQ(form->parts[1].end, 8);
  for (const StreamedPart& part : form->parts) {
    for (int i = 0; i < static_cast<int>(part.group.smg.ops.size()); ++i) {
      if (Classify(part.group, i) != OpClass::kProduct) continue;
      EXPECT_LT(part.group.smg.op(i).reads[1].producer, 0) << ToString(part.group.smg);
    }
  }
  ExpectStreamsLikeTheEvaluator(kSideBySide, whole, 100);
}

class DisguisedLowering : public ::testing::TestWithParam<std::tuple<StreamCase, Disguise>> {};

TEST_P(DisguisedLowering, EqualsTheEvaluator) {
  const auto& [c, disguise] = GetParam();
  // Otherwise it has no form, see the streams' own test.
  if (c.kind != Streamed::kRefused && RefusalOf(c, disguise) != c.refusal) return;
  auto graph = ParseGraph(c.graph);
  ASSERT_TRUE(graph.ok()) << graph.status();
  ExpectStreamsLikeTheEvaluator(c, WholeOfText(ToString(Disguised(*graph, disguise, c.extent))), 3);
}

INSTANTIATE_TEST_SUITE_P(StreamCases, DisguisedLowering,
                         ::testing::Combine(::testing::ValuesIn(kStreamCases),
                                            ::testing::ValuesIn(kDisguises)),
                         [](const auto& param) {
                           return StrCat(std::get<0>(param.param).name, "_",
                                         Name(std::get<1>(param.param)));
                         });

class SplitLowering : public ::testing::TestWithParam<StreamCase> {};

// Partial results of parts, then their merge, in the first ways to lower each.
TEST_P(SplitLowering, EqualsTheEvaluator) {
  const StreamCase& c = GetParam();
  WholeProgram whole = WholeOfText(c.graph);
  DeviceSpec device = DeviceNamed("generic-avx2", 2);
  DimId dim = DimOf(whole.group.smg, c.extent);
  for (int64_t parts : {2, 3, 6}) {
    for (size_t n = 0; n < 3; ++n) {
      auto lowered = LowerSplit(whole, dim, parts, device, n);
      if (c.kind == Streamed::kRefused || c.kind == Streamed::kStream) {
        EXPECT_EQ(lowered.status().code(), absl::StatusCode::kFailedPrecondition);
        continue;
      }
      ASSERT_TRUE(lowered.ok()) << lowered.status();
      std::string text = ToString(lowered->schedule);
      SCOPED_TRACE(text);
      ASSERT_TRUE(Verify(lowered->schedule).ok()) << Verify(lowered->schedule);
      EXPECT_EQ(lowered->schedule.phases.size(), 2u);
      auto back = ParseSchedule(text);
      ASSERT_TRUE(back.ok()) << back.status();
      EXPECT_EQ(ToString(*back), text);
      ExpectEqualsEvaluator(whole, *lowered);
    }
  }
}

// Also where a mask hides all tiles of a part.
TEST_P(SplitLowering, WithStreamedPartsEqualsTheEvaluator) {
  const StreamCase& c = GetParam();
  if (c.kind == Streamed::kRefused || c.kind == Streamed::kStream) return;
  WholeProgram whole = WholeOfText(c.graph);
  DeviceSpec device = DeviceNamed("generic-avx2", 2);
  DimId dim = DimOf(whole.group.smg, c.extent);
  int streamed = 0;
  for (int64_t parts : {2, 3}) {
    for (int64_t tile : {1, 2, 4}) {
      for (size_t n = 0; n < 3; ++n) {
        auto lowered = LowerSplit(whole, dim, parts, device, n, tile);
        if (absl::IsFailedPrecondition(lowered.status())) continue;
        ASSERT_TRUE(lowered.ok()) << lowered.status();
        SCOPED_TRACE(ToString(lowered->schedule));
        ASSERT_TRUE(Verify(lowered->schedule).ok()) << Verify(lowered->schedule);
        ExpectEqualsEvaluator(whole, *lowered);
        ++streamed;
      }
    }
  }
  // Parts of variances are centred by what all parts know.
  const bool exponential =
      std::any_of(std::begin(kExponentialCases), std::end(kExponentialCases),
                  [&](const StreamCase& e) { return std::string_view(e.name) == c.name; });
  EXPECT_TRUE(streamed > 0 || !exponential);
}

INSTANTIATE_TEST_SUITE_P(StreamCases, SplitLowering, ::testing::ValuesIn(kStreamCases),
                         [](const auto& param) { return std::string(param.param.name); });

// Of a causal mask no tile is left of a part behind the last row. A window of neighbours leaves
// each row some, so nothing need be computed for nothing.
TEST(Lower, ComputesATileWhereAMaskMayHideAll) {
  const DeviceSpec device = DeviceNamed("generic-avx2", 2);
  int hidden = 0;
  for (const StreamCase& c : kExponentialCases) {
    const std::string_view name = c.name;
    if (name != "causal_attention" && !name.starts_with("sliding_window")) continue;
    WholeProgram whole = WholeOfText(c.graph);
    const DimId dim = DimOf(whole.group.smg, c.extent);
    auto split = LowerSplit(whole, dim, 3, device, 0, 2);
    ASSERT_TRUE(split.ok()) << split.status();
    EXPECT_NE(ToString(split->schedule).find(" or first "), std::string::npos) << c.name;
    auto streamed = StreamGroup(whole.group, dim);
    ASSERT_NE(streamed, nullptr);
    for (Choice choice : EnumerateChoices(whole.group, device, {.limit = 3}, nullptr)) {
      std::erase_if(choice.grid, [&](const GridDim& g) { return g.dim == dim; });
      auto whole_dim = Lower(whole.group, choice.Streaming(streamed, 2), device, false);
      ASSERT_TRUE(whole_dim.ok()) << whole_dim.status();
      const std::string text = ToString(whole_dim->schedule);
      EXPECT_NE(text.find("if "), std::string::npos) << c.name;
      EXPECT_EQ(text.find(" or first "), std::string::npos) << c.name << "\n" << text;
      ++hidden;
    }
  }
  EXPECT_GE(hidden, 3);
}

TEST(Lower, ColumnsCutInsideTheirPanelsAreRefused) {
  WholeProgram whole = WholeOfText(R"(graph "g" {
  %0 = input "x" : f32[8,16]
  %1 = weight "w" : f32[16,50]
  %2 = MatMul(%0, %1) : f32[8,50]  "" @ ""
  output %2
}
)");
  DeviceSpec device = DeviceNamed("generic-avx2");
  std::vector<Choice> choices = EnumerateChoices(whole.group, device, {}, nullptr);
  ASSERT_FALSE(choices.empty());
  Choice choice = choices[0];
  DimId n = whole.group.smg.op(0).dims[1];
  choice.grid = {{n, choice.products.begin()->second.block.n + 1}};
  auto lowered = Lower(whole.group, choice, device, false);
  EXPECT_EQ(lowered.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Message(lowered.status()),
            StrCat("columns: ", whole.group.smg.dim(n).name, " is cut inside panels of ",
                   choice.products.begin()->second.block.n));
}

// The matrix lies with what is summed up next to each other: its rows are folded where they lie,
// not copied. One row for each column keeps them a product.
TEST(Products, OfOneRowFoldsAMatrixWhereItLies) {
  for (int64_t rows : {1, 2}) {
    const std::string text =
        StrCat("graph \"g\" {\n  %0 = input \"q\" : f32[3,", rows, ",40]\n",
               "  %1 = input \"k\" : f32[3,21,40]\n",
               "  %2 = Transpose(%1) {perm=[0, 2, 1]} : f32[3,40,21]  \"\" @ \"\"\n",
               "  %3 = MatMul(%0, %2) : f32[3,", rows, ",21]  \"\" @ \"\"\n  output %3\n}\n");
    WholeProgram whole = WholeOfText(text);
    const int last = static_cast<int>(whole.group.smg.ops.size()) - 1;
    EXPECT_EQ(Classify(whole.group, last), rows == 1 ? OpClass::kReduction : OpClass::kProduct);
    DeviceSpec device = DeviceNamed("generic-avx2", 2);
    for (const Choice& choice : EnumerateChoices(whole.group, device, {.limit = 100}, nullptr)) {
      auto lowered = Lower(whole.group, choice, device, false);
      ASSERT_TRUE(lowered.ok()) << lowered.status();
      EXPECT_EQ(ToString(lowered->schedule).find("copy ") == std::string::npos, rows == 1);
      ExpectEqualsEvaluator(whole, *lowered);
    }
  }
}

// Operands that both repeat along an output dim: it is a column of a product like others.
TEST(Products, MayHaveADimThatNoOperandHas) {
  for (int64_t n : {1, 5}) {
    const std::string text = StrCat(
        "graph \"g\" {\n  %0 = input \"a\" : f32[1,1,16]\n", "  %1 = input \"b\" : f32[1,16,", n,
        "]\n", "  %2 = Expand(%0) {shape=[8, 1, 16]} : f32[8,1,16]  \"\" @ \"\"\n",
        "  %3 = Expand(%1) {shape=[8, 16, ", n, "]} : f32[8,16,", n,
        "]  \"\" @ \"\"\n  %4 = MatMul(%2, %3) : f32[8,1,", n, "]  \"\" @ \"\"\n  output %4\n}\n");
    WholeProgram whole = WholeOfText(text);
    const SmgOp& product = whole.group.smg.ops.back();
    // One column that lies along the sum is folded.
    EXPECT_EQ(Classify(whole.group, static_cast<int>(whole.group.smg.ops.size()) - 1),
              n == 1 ? OpClass::kReduction : OpClass::kProduct);
    EXPECT_EQ(SplitProductDims(product).second.size(), n == 1 ? 1u : 2u);
    DeviceSpec device = DeviceNamed("generic-avx2", 2);
    for (const Choice& choice : EnumerateChoices(whole.group, device, {.limit = 100}, nullptr)) {
      auto lowered = Lower(whole.group, choice, device, false);
      ASSERT_TRUE(lowered.ok()) << lowered.status();
      ExpectEqualsEvaluator(whole, *lowered);
    }
  }
}

TEST(Regions, HaveEqualConstantsOnce) {
  static_assert(FieldCount<ElementOp>() == 11, "DoesTheSame compares all but `result`");
  WholeProgram whole = WholeOfText(R"(graph "g" {
  %0 = input "c" : bool[40]
  %1 = input "d" : bool[40]
  %2 = input "x" : f32[40]
  %3 = const "" : f32[] {nan}
  %4 = const "" : f32[] {0}
  %5 = const "" : f32[] {-0}
  %6 = Where(%0, %2, %3) : f32[40]  "" @ ""
  %7 = Where(%1, %2, %3) : f32[40]  "" @ ""
  %8 = Add(%6, %7) : f32[40]  "" @ ""
  %9 = Where(%0, %8, %4) : f32[40]  "" @ ""
  %10 = Where(%1, %9, %5) : f32[40]  "" @ ""
  output %10
}
)");
  DeviceSpec device = DeviceNamed("generic-avx2", 2);
  std::vector<Choice> choices = EnumerateChoices(whole.group, device, {.limit = 1}, nullptr);
  ASSERT_EQ(choices.size(), 1u);
  auto lowered = Lower(whole.group, choices[0], device, false);
  ASSERT_TRUE(lowered.ok()) << lowered.status();
  const std::string text = ToString(lowered->schedule);
  auto count = [&](std::string_view part) {
    int found = 0;
    for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
      ++found;
    }
    return found;
  };
  EXPECT_EQ(count("f32(nan)"), 1) << text;
  EXPECT_EQ(count("f32(0x0p+0)"), 1) << text;
  EXPECT_EQ(count("f32(-0x0p+0)"), 1) << text;
}

}  // namespace
}  // namespace fusion
