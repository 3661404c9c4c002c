#include "core/check/reference_checker.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <sstream>

#include "core/base/files/file.h"
#include "core/check/kernel_run.h"
#include "core/compile/job_runner.h"
#include "core/compile/toolchain.h"
#include "core/device/host_isa.h"
#include "core/graph/build/text.h"
#include "core/graph/evaluate/test_values.h"
#include "core/schedule/lower/streamed_group.h"
#include "core/schedule/tiles/candidates.h"
#include "tests/support/dims.h"
#include "tests/support/hand_made_kernel.h"
#include "tests/support/interpreted_kernel.h"
#include "tests/support/kernel_harness.h"
#include "tests/support/kernel_source.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;

// One graph as one kernel.
struct Made {
  WholeProgram whole;
  Lowered lowered;
  KernelReference reference;

  absl::StatusOr<CheckReport> Check(const LoadedKernel& kernel,
                                    const CheckOptions& options = {}) const {
    return CheckKernel(kernel, lowered.schedule, reference, options);
  }
};

Made Make(std::string_view text) {
  Made made;
  auto graph = ParseGraph(text);
  FUSION_CHECK(graph.ok(), Message(graph.status()));
  made.whole = AsOneGroup(BuildProgram(*graph).value()).value();
  DeviceSpec device = DeviceNamed("generic-x86-64-v2");
  std::vector<Choice> choices = EnumerateChoices(made.whole.group, device, {}, nullptr);
  made.lowered = Lower(made.whole.group, choices.at(0), device, false).value();
  made.reference = MakeReference(made.whole.program, made.whole.group, made.lowered);
  return made;
}

constexpr int64_t kRows = 7;
constexpr int64_t kColumns = 19;

// relu(x + b), x: [7, 19], b: [19].
Made AddRelu() {
  Made made = Make(R"(graph "g" {
  %0 = input "x" : f32[7,19]
  %1 = input "b" : f32[19]
  %2 = Add(%0, %1) : f32[7,19]  "" @ ""
  %3 = Relu(%2) : f32[7,19]  "" @ ""
  output %3
}
)");
  // In place has a test of its own; here the evaluator alone shall find what is wrong.
  made.lowered.schedule.may_alias.clear();
  return made;
}

float Relu(float v) { return v < 0 ? 0 : v; }  // NaN stays

// The right kernel, one row a task.
void RightRow(const HandMadeKernel::Call& call) {
  for (int64_t c = 0; c < kColumns; ++c) {
    Floats(call, 2)[call.task * kColumns + c] =
        Relu(Floats(call, 0)[call.task * kColumns + c] + Floats(call, 1)[c]);
  }
}

// What the checker says of a kernel; "none" if it passes.
std::string Complaint(const HandMadeKernel::Body& body, const CheckOptions& options = {}) {
  HandMadeKernel kernel(3, TaskCount<kRows>, body);
  auto report = AddRelu().Check(kernel, options);
  if (report.ok()) return report->verified ? "none" : report->reason;
  EXPECT_EQ(report.status().code(), absl::StatusCode::kInternal);
  return std::string(Message(report.status()));
}

TEST(CheckKernel, PassesARightKernel) {
  Made made = AddRelu();
  HandMadeKernel kernel(3, TaskCount<kRows>, RightRow);
  auto report = made.Check(kernel);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_TRUE(report->verified);
  EXPECT_EQ(report->elements, kRows * kColumns);
  EXPECT_EQ(report->outside, 0);
  EXPECT_LT(report->max_rel, 1e-6);
}

TEST(CheckKernel, FindsOneWrongElement) {
  EXPECT_THAT(Complaint([](const HandMadeKernel::Call& call) {
                RightRow(call);
                if (call.task == 3) Floats(call, 2)[call.task * kColumns + 11] += 0.01F;
              }),
              HasSubstr(StrCat("1 of 133 elements differ (max |a-b| 0.0")));
}

TEST(CheckKernel, FindsWhatIsWrongInTheRaggedTailOnly) {
  // Whole vectors of four are right; the last three columns lack the bias.
  EXPECT_THAT(Complaint([](const HandMadeKernel::Call& call) {
                RightRow(call);
                for (int64_t c = 16; c < kColumns; ++c) {
                  Floats(call, 2)[call.task * kColumns + c] =
                      Relu(Floats(call, 0)[call.task * kColumns + c]);
                }
              }),
              HasSubstr("elements differ"));
}

TEST(CheckKernel, FindsASwallowedNaN) {
  auto body = [](const HandMadeKernel::Call& call) {
    for (int64_t c = 0; c < kColumns; ++c) {
      float v = Floats(call, 0)[call.task * kColumns + c] + Floats(call, 1)[c];
      Floats(call, 2)[call.task * kColumns + c] = v > 0 ? v : 0;
    }
  };
  EXPECT_THAT(Complaint(body), HasSubstr("on special values"));
  EXPECT_EQ(Complaint(body, {.special_values = false}), "none");
}

// Attention that leaves out what its mask hides, or a variance that follows its mean, in tiles
// of 5.
Made Streaming(std::string_view text) {
  Made made = Make(text);
  const FusionGroup& group = made.whole.group;
  DeviceSpec device = DeviceNamed("generic-x86-64-v2");
  Choice choice = EnumerateChoices(group, device, {}, nullptr).at(0);
  DimId dim = DimOf(group.smg, 12);
  std::erase_if(choice.grid, [dim](const GridDim& g) { return g.dim == dim; });
  made.lowered = Lower(group, choice.Streaming(StreamGroup(group, dim), 5), device, false).value();
  made.reference = MakeReference(made.whole.program, group, made.lowered);
  return made;
}

// What the checker says of a right kernel, but where `swallows` an output that is NaN is 0.
std::string ComplaintOfSwallowed(const Made& made, const std::function<bool(int64_t)>& swallows) {
  const Schedule& schedule = made.lowered.schedule;
  std::shared_ptr<const LoadedKernel> right = Interpreted(schedule);
  HandMadeKernel kernel(schedule.params, TaskCount<1>, [&](const HandMadeKernel::Call& call) {
    absl::Status ran = right->Run(call.args, 0, 0, 1, 0);
    FUSION_CHECK(ran.ok(), Message(ran));
    for (int p = 0; p < schedule.params; ++p) {
      const Buffer& b = schedule.buffer(p);
      if (b.kind != ParamKind::kOutput) continue;
      for (int64_t e = 0; e < NumElements(b.shape); ++e) {
        if (std::isnan(Floats(call, p)[e]) && swallows(e)) Floats(call, p)[e] = 0;
      }
    }
  });
  auto report = made.Check(kernel);
  if (report.ok()) return report->verified ? "none" : report->reason;
  return std::string(Message(report.status()));
}

// Keys right of the diagonal are hidden: of those, and of no others, a NaN may stay unseen.
TEST(CheckKernel, FindsANaNThatNoMaskHid) {
  Made made = Streaming(R"(graph "g" {
  %0 = input "s" : f32[12,13]
  %1 = input "v" : f32[12,6]
  %2 = const "" : f32[] {0}
  %3 = Range() {delta=tensor i64[] {1}, limit=tensor i64[] {12}, start=tensor i64[] {0}} : i64[12]  "" @ ""
  %4 = Range() {delta=tensor i64[] {1}, limit=tensor i64[] {13}, start=tensor i64[] {0}} : i64[13]  "" @ ""
  %5 = Unsqueeze(%3) {axes=[1]} : i64[12,1]  "" @ ""
  %6 = LessOrEqual(%5, %4) : bool[12,13]  "" @ ""
  %7 = Where(%6, %0, %2) : f32[12,13]  "" @ ""
  %8 = Transpose(%7) {perm=[1, 0]} : f32[13,12]  "" @ ""
  %9 = MatMul(%8, %1) : f32[13,6]  "" @ ""
  output %9
}
)");
  ASSERT_TRUE(made.lowered.schedule.SkipsMasked());
  EXPECT_EQ(ComplaintOfSwallowed(made, [](int64_t) { return false; }), "none");
  // Element 24 of `v`: key 4, which rows 4 to 12 see.
  EXPECT_EQ(ComplaintOfSwallowed(made, [](int64_t e) { return e / 6 < 4; }), "none");
  EXPECT_THAT(ComplaintOfSwallowed(made, [](int64_t e) { return e / 6 == 12; }),
              HasSubstr("on a single NaN"));
  EXPECT_THAT(ComplaintOfSwallowed(made, [](int64_t) { return true; }),
              HasSubstr("on a single NaN"));
}

void ExpectToFindANaNLostBy(std::string_view graph) {
  Made made = Streaming(graph);
  ASSERT_TRUE(made.lowered.schedule.loose);
  EXPECT_EQ(ComplaintOfSwallowed(made, [](int64_t) { return false; }), "none");
  EXPECT_THAT(ComplaintOfSwallowed(made, [](int64_t) { return true; }),
              HasSubstr("on a single NaN"));
}

TEST(CheckKernel, FindsANaNThatALooseFormLost) {
  ExpectToFindANaNLostBy(R"(graph "g" {
  %0 = input "x" : f32[10,12]
  %1 = ReduceMean(%0) {axes=[1], keepdims=1} : f32[10,1]  "" @ ""
  %2 = Sub(%0, %1) : f32[10,12]  "" @ ""
  %3 = Mul(%2, %2) : f32[10,12]  "" @ ""
  %4 = ReduceMean(%3) {axes=[1], keepdims=1} : f32[10,1]  "" @ ""
  output %4
}
)");
}

// Where a weight is infinite, so is a product of centred rows with it, or NaN where it follows its
// mean; tanh makes a number of the one.
TEST(CheckKernel, ForgivesNumbersMadeOfInfinitiesThatALooseFormLost) {
  ExpectToFindANaNLostBy(R"(graph "g" {
  %0 = input "x" : f32[10,12]
  %1 = input "w" : f32[12,31]
  %2 = ReduceMean(%0) {axes=[1], keepdims=1} : f32[10,1]  "" @ ""
  %3 = Sub(%0, %2) : f32[10,12]  "" @ ""
  %4 = MatMul(%3, %1) : f32[10,31]  "" @ ""
  %5 = Tanh(%4) : f32[10,31]  "" @ ""
  output %5
}
)");
}

// Rows in which nothing is centred do not have to do with a mean, infinite or not.
TEST(CheckKernel, FindsNothingWhereAConditionHidesAnInfiniteCentre) {
  Made made = Streaming(R"(graph "g" {
  %0 = input "x" : f32[37,12]
  %1 = input "w" : f32[12,5]
  %2 = input "p" : bool[37,1]
  %3 = const "" : f32[] {-2}
  %4 = ReduceMean(%0) {axes=[1], keepdims=1} : f32[37,1]  "" @ ""
  %5 = Sub(%0, %4) : f32[37,12]  "" @ ""
  %6 = Where(%2, %5, %3) : f32[37,12]  "" @ ""
  %7 = MatMul(%6, %1) : f32[37,5]  "" @ ""
  output %7
}
)");
  ASSERT_TRUE(made.lowered.schedule.loose);
  EXPECT_EQ(ComplaintOfSwallowed(made, [](int64_t) { return false; }), "none");
}

TEST(CheckKernel, FindsAnElementThatIsNeverWritten) {
  EXPECT_THAT(Complaint([](const HandMadeKernel::Call& call) {
                float* last = &Floats(call, 2)[kRows * kColumns - 1];
                float before = *last;
                RightRow(call);
                *last = before;
              }),
              HasSubstr("element 132 of the box at [0,0] is -nan"));
}

TEST(CheckKernel, FindsAWriteJustOutsideAnOutput) {
  for (int64_t at : {int64_t{-1}, kRows * kColumns}) {
    EXPECT_THAT(Complaint([at](const HandMadeKernel::Call& call) {
                  RightRow(call);
                  Floats(call, 2)[at] = 0;
                }),
                HasSubstr("wrote outside param 2"))
        << at;
  }
}

// 3 rows of 5 in memory with room for 8.
TEST(CheckKernel, FindsAWriteBetweenRowsWithRoom) {
  Made made = Make(R"(graph "g" {
  %0 = input "past" : f32[2,0,5]
  %1 = input "x" : f32[2,3,5]
  %2 = Concat(%0, %1) {axis=1} : f32[2,3,5]  "present" @ ""
  output %2
  share input 0 output 0 dim 1 capacity 8
}
)");
  auto complaint = [&](int64_t stray) {
    HandMadeKernel kernel(3, TaskCount<2>, [stray](const HandMadeKernel::Call& call) {
      for (int64_t i = 0; i < 15; ++i) {
        Floats(call, 2)[call.task * 40 + i] = Floats(call, 1)[call.task * 15 + i];
      }
      if (stray >= 0) Floats(call, 2)[stray] = 1;
    });
    auto report = made.Check(kernel);
    return report.ok() ? "none" : std::string(Message(report.status()));
  };
  EXPECT_EQ(complaint(-1), "none");
  EXPECT_THAT(complaint(15), HasSubstr("the kernel wrote between the rows of param 2"));
  EXPECT_THAT(complaint(39), HasSubstr("the kernel wrote between the rows of param 2"));
}

TEST(CheckKernel, FindsAWriteJustOutsideAnInput) {
  EXPECT_THAT(Complaint([](const HandMadeKernel::Call& call) {
                RightRow(call);
                Floats(call, 1)[kColumns] = 0;
              }),
              HasSubstr("wrote outside param 1"));
}

TEST(CheckKernel, FindsAChangedInput) {
  EXPECT_THAT(Complaint([](const HandMadeKernel::Call& call) {
                RightRow(call);
                if (call.task == 0) Floats(call, 1)[kColumns - 1] += 1;
              }),
              HasSubstr("changed its input, param 1"));
}

TEST(CheckKernel, FindsAWriteOutsideScratch) {
  EXPECT_THAT(Complaint([](const HandMadeKernel::Call& call) {
                RightRow(call);
                static_cast<float*>(call.args.scratch)[64] = 0;
              }),
              HasSubstr("wrote outside its scratch"));
}

TEST(CheckKernel, FindsAWriteOutsideTheWorkspace) {
  EXPECT_THAT(Complaint([](const HandMadeKernel::Call& call) {
                RightRow(call);
                static_cast<float*>(call.args.workspace)[0] = 0;
              }),
              HasSubstr("wrote outside its workspace"));
}

TEST(CheckKernel, FindsUseOfWhatWasInTheOutput) {
  EXPECT_THAT(Complaint([](const HandMadeKernel::Call& call) {
                std::vector<float> before(kColumns);
                float* out = Floats(call, 2) + call.task * kColumns;
                std::copy_n(out, kColumns, before.begin());
                RightRow(call);
                // As if the memory came zeroed.
                for (int64_t c = 0; c < kColumns; ++c) out[c] += before[static_cast<size_t>(c)];
              }),
              HasSubstr("nan, expected"));
}

TEST(CheckKernel, FindsUseOfWhatWasInScratch) {
  EXPECT_THAT(Complaint([](const HandMadeKernel::Call& call) {
                RightRow(call);
                Floats(call, 2)[call.task * kColumns] += static_cast<float*>(call.args.scratch)[5];
              }),
              HasSubstr("nan, expected"));
}

TEST(CheckKernel, FindsTasksThatDependOnEachOther) {
  // The first task leaves the bias in scratch for the others.
  EXPECT_THAT(Complaint([](const HandMadeKernel::Call& call) {
                auto* bias = static_cast<float*>(call.args.scratch);
                if (call.task == 0) std::copy_n(Floats(call, 1), kColumns, bias);
                for (int64_t c = 0; c < kColumns; ++c) {
                  Floats(call, 2)[call.task * kColumns + c] =
                      Relu(Floats(call, 0)[call.task * kColumns + c] + bias[c]);
                }
              }),
              HasSubstr("elements differ"));
}

TEST(CheckKernel, ReportsTheErrorOfAKernel) {
  HandMadeKernel kernel(3, TaskCount<kRows>, RightRow);
  kernel.fails = true;
  auto report = AddRelu().Check(kernel);
  EXPECT_EQ(report.status(), Internal("kernel answers 3"));
}

TEST(CheckKernel, RefusesADescriptorThatDoesNotFit) {
  Made made = AddRelu();
  HandMadeKernel two(2, TaskCount<kRows>, RightRow);
  EXPECT_THAT(std::string(Message(made.Check(two).status())),
              HasSubstr("the kernel takes 2 tensors, its schedule 3"));
  HandMadeKernel phases(3, TaskCount<kRows>, RightRow);
  phases.own.phases = 2;
  EXPECT_THAT(std::string(Message(made.Check(phases).status())),
              HasSubstr("the kernel has 2 phases, its schedule 1"));
}

TEST(CheckKernel, FindsAKernelThatCannotWorkInPlace) {
  Made made = Make(R"(graph "g" {
  %0 = input "x" : f32[64]
  %1 = Relu(%0) : f32[64]  "" @ ""
  output %1
}
)");
  ASSERT_EQ(made.lowered.schedule.may_alias, (std::vector<std::pair<BufferId, BufferId>>{{1, 0}}));
  auto right = [](const HandMadeKernel::Call& call) {
    for (int i = 0; i < 64; ++i) Floats(call, 1)[i] = Relu(Floats(call, 0)[i]);
  };
  EXPECT_TRUE(made.Check(HandMadeKernel(2, TaskCount<1>, right)).ok());
  // Right as long as the two are apart: copies, then works on what it believes to be the input.
  auto spoils = [](const HandMadeKernel::Call& call) {
    std::fill_n(Floats(call, 1), 64, 0.0F);
    for (int i = 0; i < 64; ++i) Floats(call, 1)[i] = Relu(Floats(call, 0)[i]);
  };
  EXPECT_THAT(std::string(Message(made.Check(HandMadeKernel(2, TaskCount<1>, spoils)).status())),
              HasSubstr("output 0 changes when it shares the memory of an input"));
}

TEST(CheckKernel, FindsTheLastCornerOfWhatIsTooLargeToCompareWhole) {
  Made made = Make(R"(graph "g" {
  %0 = input "x" : f32[300,500]
  %1 = Relu(%0) : f32[300,500]  "" @ ""
  output %1
}
)");
  bool spoil = false;
  HandMadeKernel kernel(2, TaskCount<300>, [&](const HandMadeKernel::Call& call) {
    for (int i = 0; i < 500; ++i) {
      Floats(call, 1)[call.task * 500 + i] = Relu(Floats(call, 0)[call.task * 500 + i]);
    }
    if (spoil && call.task == 299) Floats(call, 1)[call.task * 500 + 499] += 1;
  });
  auto report = made.Check(kernel, {.points = 2000});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_TRUE(report->verified);
  EXPECT_GT(report->elements, 1000);
  EXPECT_LE(report->elements, 2000);
  spoil = true;
  EXPECT_THAT(std::string(Message(made.Check(kernel, {.points = 2000}).status())),
              HasSubstr("1 of"));
}

TEST(CheckKernel, ComparesIntegersExactly) {
  Made made = Make(R"(graph "g" {
  %0 = input "x" : i64[33]
  %1 = Add(%0, %0) : i64[33]  "" @ ""
  output %1
}
)");
  ASSERT_EQ(made.lowered.schedule.params, 2);
  int64_t error = 0;
  HandMadeKernel kernel(2, TaskCount<1>, [&](const HandMadeKernel::Call& call) {
    const auto* x = static_cast<const int64_t*>(call.args.tensors[0].data);
    auto* y = static_cast<int64_t*>(call.args.tensors[1].data);
    for (int i = 0; i < 33; ++i) y[i] = 2 * x[i] + (i == 32 ? error : 0);
  });
  EXPECT_TRUE(made.Check(kernel).ok());
  error = 1;
  EXPECT_THAT(std::string(Message(made.Check(kernel).status())), HasSubstr("1 of 33"));
}

TEST(CheckKernel, FindsABoolThatIsNeitherZeroNorOne) {
  Made made = Make(R"(graph "g" {
  %0 = input "x" : f32[33]
  %1 = input "y" : f32[33]
  %2 = Greater(%0, %1) : bool[33]  "" @ ""
  output %2
}
)");
  uint8_t yes = 1;
  HandMadeKernel kernel(3, TaskCount<1>, [&](const HandMadeKernel::Call& call) {
    auto* out = static_cast<uint8_t*>(call.args.tensors[2].data);
    for (int i = 0; i < 33; ++i) out[i] = Floats(call, 0)[i] > Floats(call, 1)[i] ? yes : 0;
  });
  EXPECT_TRUE(made.Check(kernel).ok());
  yes = 255;
  EXPECT_THAT(std::string(Message(made.Check(kernel).status())), HasSubstr("neither 0 nor 1"));
}

TEST(CheckKernel, ComparesThePaddingOfPackedWeights) {
  Made made = Make(R"(graph "g" {
  %0 = input "x" : f32[5,6]
  %1 = weight "w" : f32[6,21]
  %2 = MatMul(%0, %1) : f32[5,21]  "" @ ""
  output %2
}
)");
  size_t packed = 0;
  while (packed < made.lowered.params.size() && !made.lowered.params[packed].packed) ++packed;
  ASSERT_LT(packed, made.lowered.params.size()) << "the product reads its weight as it is";
  Schedule schedule = PackSchedule(made.whole.group, made.lowered, packed);
  KernelReference reference = MakePackReference(made.whole.group, made.lowered, packed);
  const Buffer& target = schedule.buffer(1);
  ASSERT_EQ(target.layout.blocked, 1);
  ASSERT_GT(StoredElements(target), 6 * 21);
  bool pads = true;
  HandMadeKernel kernel(2, TaskCount<1>, [&](const HandMadeKernel::Call& call) {
    if (pads) std::fill_n(Floats(call, 1), StoredElements(target), 0.0F);
    for (int64_t k = 0; k < 6; ++k) {
      for (int64_t n = 0; n < 21; ++n) {
        Floats(call, 1)[StoredOffset(target, {k, n})] = Floats(call, 0)[k * 21 + n];
      }
    }
  });
  auto report = CheckKernel(kernel, schedule, reference);
  EXPECT_TRUE(report.ok()) << report.status();
  pads = false;
  EXPECT_THAT(std::string(Message(CheckKernel(kernel, schedule, reference).status())),
              HasSubstr("packed output 0 is not the copy it should be"));
}

// As the windows of a transposed convolution are.
TEST(CheckKernel, ComparesWeightsThatArePackedBackwards) {
  Made made = Make(R"(graph "g" {
  %0 = input "x" : f32[5,6]
  %1 = weight "w" : f32[6,21]
  %2 = Slice(%1) {axes=[0], ends=[-7], starts=[5], steps=[-1]} : f32[6,21]  "" @ ""
  %3 = MatMul(%0, %2) : f32[5,21]  "" @ ""
  output %3
}
)");
  size_t packed = 0;
  while (packed < made.lowered.params.size() && !made.lowered.params[packed].packed) ++packed;
  ASSERT_LT(packed, made.lowered.params.size()) << "the product reads its weight as it is";
  Schedule schedule = PackSchedule(made.whole.group, made.lowered, packed);
  KernelReference reference = MakePackReference(made.whole.group, made.lowered, packed);
  const Buffer& target = schedule.buffer(1);
  HandMadeKernel kernel(2, TaskCount<1>, [&](const HandMadeKernel::Call& call) {
    std::fill_n(Floats(call, 1), StoredElements(target), 0.0F);
    for (int64_t k = 0; k < 6; ++k) {
      for (int64_t n = 0; n < 21; ++n) {
        Floats(call, 1)[StoredOffset(target, {k, n})] = Floats(call, 0)[(5 - k) * 21 + n];
      }
    }
  });
  auto report = CheckKernel(kernel, schedule, reference);
  EXPECT_TRUE(report.ok()) << report.status();
}

TEST(CheckKernel, SaysWhyALargeKernelWasNotCompared) {
  HandMadeKernel kernel(3, TaskCount<kRows>,
                        [](const HandMadeKernel::Call&) { FAIL() << "was run"; });
  auto report = AddRelu().Check(kernel, {.max_bytes = 1000});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_FALSE(report->verified);
  EXPECT_THAT(report->reason, HasSubstr("MiB of test values; limit"));
}

TEST(TestValues, AreTheSameEverywhereAndHoldWhatTheyPromise) {
  TensorType type{DType::kF32, Shape{64, 64}};
  EXPECT_EQ(RandomTensor(type, 5), RandomTensor(type, 5));
  EXPECT_FALSE(RandomTensor(type, 5) == RandomTensor(type, 6));
  HostTensor special = AdversarialTensor(type, 5);
  int nan = 0;
  int infinite = 0;
  int subnormal = 0;
  int negative_zero = 0;
  for (float x : special.data<float>()) {
    nan += std::isnan(x);
    infinite += std::isinf(x);
    subnormal += std::fpclassify(x) == FP_SUBNORMAL;
    negative_zero += x == 0 && std::signbit(x);
  }
  EXPECT_GT(nan, 0);
  EXPECT_GT(infinite, 0);
  EXPECT_GT(subnormal, 0);
  EXPECT_GT(negative_zero, 0);
}

// Compiled kernels, as a worker checks them.
class ReferenceCheckerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!HostRuns(Isa::kX86V2)) GTEST_SKIP() << "this machine runs none of our kernels";
    made_ = Make(R"(graph "g" {
  %0 = input "x" : f32[256]
  %1 = Add(%0, %0) : f32[256]  "" @ ""
  output %1
}
)");
    dir_ = std::make_unique<TempDir>(TempDir::Create(::testing::TempDir(), "check-").value());
    runner_ = MakeProcessRunner(FUSION_EXEC);
  }

  // y = factor * x, with `from` replaced by `to` in its source.
  WorkerResult Check(int factor, std::string_view from = "", std::string_view to = "",
                     bool with_reference = true, bool debug = false) {
    ToolchainOptions options;
    options.scratch_dir = dir_->path();
    auto toolchain = Toolchain::Open(options, *runner_);
    FUSION_CHECK(toolchain.ok(), Message(toolchain.status()));
    WorkerJob work;
    work.job.symbol = "fk_check";
    work.job.backend = "cpu";
    work.job.source = TestKernelText("fk_check", "x86-64-v2", "", "return 4;", factor);
    size_t at = work.job.source.rfind(from);
    FUSION_CHECK(at != std::string::npos, "the source holds what is replaced");
    work.job.source.replace(at, from.size(), to);
    work.job.schedule = ToString(made_.lowered.schedule);
    if (with_reference) work.job.reference = ToString(made_.reference);
    work.job.debug = debug;
    work.compile_argv = toolchain->CompileArgv(Isa::kX86V2, Numerics::kFp32Accumulate, debug);
    work.link_argv = toolchain->LinkArgv();
    ReferenceChecker checker;
    return JobRunner(dir_->path(), *runner_, checker, [](std::string_view) {}).Run(work);
  }

  Made made_;
  std::unique_ptr<TempDir> dir_;
  std::unique_ptr<CommandRunner> runner_;
};

TEST_F(ReferenceCheckerTest, PublishesTheRightKernelAndRefusesTheWrongOne) {
  WorkerResult right = Check(2);
  ASSERT_TRUE(right.status.ok()) << right.status << right.log;
  EXPECT_TRUE(right.check.verified);
  EXPECT_EQ(right.check.elements, 256);
  WorkerResult wrong = Check(3);
  EXPECT_EQ(wrong.status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(Message(wrong.status)), HasSubstr("elements differ"));
}

std::string Hex(int64_t number) {
  std::ostringstream out;
  out << "0x" << std::hex << number;
  return out.str();
}

// The line of a debug kernel's code, as any other process finds it while the kernel is loaded.
TEST_F(ReferenceCheckerTest, DebugKernelsHaveLineTablesAndTheSameCode) {
  const WorkerResult plain = Check(2);
  const WorkerResult debug = Check(2, "", "", /*with_reference=*/true, /*debug=*/true);
  ASSERT_TRUE(plain.status.ok() && debug.status.ok()) << debug.status << debug.log;
  auto run = [&](std::vector<std::string> argv) {
    Command command{.argv = std::move(argv), .dir = dir_->path()};
    auto result = runner_->Run(command);
    FUSION_CHECK(result.ok(), Message(result.status()));
    EXPECT_EQ(result->exit_code, 0) << result->output;
    return result->output;
  };
  auto code_of = [&](const std::string& binary) {
    const std::string path = StrCat(dir_->path(), "/object");
    EXPECT_TRUE(WriteFile(path, binary).ok());
    run({"/usr/bin/objcopy", "-O", "binary", "-j", ".text", path, path + ".text"});
    return ReadFile(path + ".text", 1 << 20).value();
  };
  EXPECT_EQ(code_of(plain.binary), code_of(debug.binary));
  EXPECT_FALSE(code_of(debug.binary).empty());
  auto line_of = [&](const std::string& binary) {
    auto kernel = LoadKernel("cpu", binary, "fk_check");
    FUSION_CHECK(kernel.ok(), Message(kernel.status()));
    auto* tasks = reinterpret_cast<char*>((*kernel)->descriptor().tasks);
    Dl_info place{};
    EXPECT_NE(dladdr(tasks, &place), 0);
    Command command{.argv = {"/usr/bin/addr2line", "-e", place.dli_fname,
                             Hex(tasks - static_cast<char*>(place.dli_fbase))},
                    .dir = dir_->path()};
    return runner_->Run(command)->output;
  };
  EXPECT_THAT(line_of(debug.binary), HasSubstr("/proc/self/cwd/fk_check.cc:"));
  EXPECT_THAT(line_of(plain.binary), ::testing::Not(HasSubstr("fk_check.cc")));
}

TEST_F(ReferenceCheckerTest, RefusesAKernelOfAnotherIsa) {
  WorkerResult result = Check(2, "\"x86-64-v2\"", "\"x86-64-v0\"");
  EXPECT_FALSE(result.status.ok());
  EXPECT_THAT(std::string(Message(result.status)), HasSubstr("x86-64-v0"));
}

TEST_F(ReferenceCheckerTest, RefusesAKernelOfOtherTensorsOrPhases) {
  EXPECT_THAT(std::string(Message(Check(2, ", 2, 0, 1, Tasks", ", 3, 0, 1, Tasks").status)),
              HasSubstr("takes 3 tensors"));
  EXPECT_THAT(std::string(Message(Check(2, ", 2, 0, 1, Tasks", ", 2, 0, 2, Tasks").status)),
              HasSubstr("2 phases"));
}

TEST_F(ReferenceCheckerTest, RefusesAKernelThatTakesMoreMemoryThanThePlanSays) {
  EXPECT_EQ(Message(Check(2, "Tasks, 0, 0, 64", "Tasks, 128, 0, 64").status),
            "check: descriptor: 128 bytes of scratch and 0 of workspace; expected at most 0 and 0");
  EXPECT_THAT(std::string(Message(Check(2, "Tasks, 0, 0, 64", "Tasks, 0, 4, 64").status)),
              HasSubstr("and 4 of workspace"));
}

TEST_F(ReferenceCheckerTest, SaysWhyNothingWasCompared) {
  WorkerResult result = Check(3, "", "", /*with_reference=*/false);
  ASSERT_TRUE(result.status.ok()) << result.status;
  EXPECT_FALSE(result.check.verified);
  EXPECT_EQ(result.check.reason, "not compared: no reference");
}

TEST_F(ReferenceCheckerTest, SaysWhichIsaThisMachineLacks) {
  if (HostRuns(Isa::kAvx512)) GTEST_SKIP() << "this machine runs every ISA";
  ReferenceChecker checker;
  CompileJob job;
  job.backend = "cpu";
  job.isa = Isa::kAvx512;
  auto report = checker.Check(job, "never loaded");
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_FALSE(report->verified);
  EXPECT_EQ(report->reason, StrCat("needs avx512, this machine has ", HostIsaName()));
}

}  // namespace
}  // namespace fusion
