#include "core/schedule/schedule.h"

#include <gtest/gtest.h>

#include <random>

#include "core/graph/evaluate.h"
#include "core/graph/text.h"
#include "core/schedule/candidates.h"
#include "core/schedule/interpret.h"

namespace fusion {
namespace {

HostTensor Random(const TensorType& type, uint32_t seed) {
  std::mt19937 rng(seed);
  std::normal_distribution<double> normal;
  HostTensor t(type.dtype, type.shape.ToDims());
  for (int64_t i = 0; i < t.elements(); ++i) {
    if (IsFloat(type.dtype)) {
      t.SetDouble(i, normal(rng));
    } else {
      t.SetInt(i, static_cast<int64_t>(rng() % 2));
    }
  }
  return t;
}

DeviceSpec Device(std::string_view name, int threads = 2) {
  auto specs = BuiltInSpecs();
  EXPECT_TRUE(specs.ok()) << specs.status();
  auto spec = ResolveTarget(*specs, {.name = std::string(name), .threads = threads}, nullptr);
  EXPECT_TRUE(spec.ok()) << spec.status();
  return *spec;
}

// Lowers the whole graph as one kernel in every enumerated way and runs each on the interpreter
// against the evaluator.
void CheckWhole(std::string_view text, const DeviceSpec& device) {
  auto graph = ParseGraph(text);
  ASSERT_TRUE(graph.ok()) << graph.status();
  auto program = BuildProgram(*graph);
  ASSERT_TRUE(program.ok()) << program.status();
  std::vector<LoopId> loops;
  for (size_t i = 0; i < program->ops.size(); ++i) loops.push_back(static_cast<LoopId>(i));
  std::vector<bool> outside(program->values.size(), false);
  std::vector<bool> constant(program->values.size(), false);
  for (ValueId v : program->outputs) outside[static_cast<size_t>(v)] = true;
  for (size_t v = 0; v < program->values.size(); ++v)
    constant[v] = program->values[v].kind == TensorKind::kWeight;
  auto group = MakeGroup(*program, loops, outside, constant);
  ASSERT_TRUE(group.ok()) << group.status();
  std::string refusal;
  std::vector<Choice> choices = EnumerateChoices(*group, device, {.limit = 100}, &refusal);
  ASSERT_FALSE(choices.empty()) << refusal;

  std::vector<HostTensor> tensors;
  for (size_t v = 0; v < program->values.size(); ++v) {
    tensors.push_back(Random(program->values[v].type, static_cast<uint32_t>(v) + 1));
  }
  std::vector<Box> boxes;
  for (ValueId v : program->outputs)
    boxes.push_back(Box::Whole(program->value(v).type.shape.ToDims()));
  auto expected =
      EvaluateBoxes(*program, boxes, [&](ValueId v) { return &tensors[static_cast<size_t>(v)]; });
  ASSERT_TRUE(expected.ok()) << expected.status();

  for (const Choice& choice : choices) {
    auto lowered = Lower(*group, choice, device, false);
    ASSERT_TRUE(lowered.ok()) << lowered.status();
    const Schedule& s = lowered->schedule;
    std::string dump = ToString(s);
    ASSERT_TRUE(Verify(s).ok()) << Verify(s) << "\n" << dump;
    auto back = ParseSchedule(dump);
    ASSERT_TRUE(back.ok()) << back.status() << "\n" << dump;
    EXPECT_EQ(ToString(*back), dump);

    std::vector<HostTensor> params;
    for (size_t p = 0; p < lowered->params.size(); ++p) {
      const LoweredParam& param = lowered->params[p];
      const Buffer& buffer = s.buffer(static_cast<BufferId>(p));
      const HostTensor& value = tensors[static_cast<size_t>(param.value)];
      if (param.packed) {
        Schedule pack = PackSchedule(*group, *lowered, p);
        ASSERT_TRUE(Verify(pack).ok()) << Verify(pack);
        std::vector<HostTensor> both = {value.Reshaped(pack.buffer(0).shape),
                                        HostTensor(buffer.dtype, buffer.shape)};
        ASSERT_TRUE(Interpret(pack, &both).ok());
        params.push_back(std::move(both[1]));
      } else {
        params.push_back(param.output ? HostTensor(buffer.dtype, buffer.shape)
                                      : value.Reshaped(buffer.shape));
      }
    }
    absl::Status status = Interpret(s, &params);
    ASSERT_TRUE(status.ok()) << status << "\n" << dump;
    for (size_t p = 0; p < params.size(); ++p) {
      if (!lowered->params[p].output) continue;
      for (size_t o = 0; o < program->outputs.size(); ++o) {
        if (program->outputs[o] != lowered->params[p].value) continue;
        for (int64_t e = 0; e < params[p].elements(); ++e) {
          double a = params[p].GetDouble(e);
          double b = (*expected)[o].GetDouble(e);
          ASSERT_NEAR(a, b, 1e-4 * (1 + std::abs(b))) << "element " << e << "\n" << dump;
        }
      }
    }
  }
}

constexpr const char* kMatMulAddRelu = R"(graph "mar" {
  %0 = input "x" : f32[13,20]
  %1 = weight "w" : f32[20,50]
  %2 = weight "b" : f32[50]
  %3 = MatMul(%0, %1) : f32[13,50]  "y" @ "mm"
  %4 = Add(%3, %2) : f32[13,50]  "z" @ "add"
  %5 = Relu(%4) : f32[13,50]  "r" @ "relu"
  output %5
}
)";

constexpr const char* kLayerNorm = R"(graph "ln" {
  %0 = input "x" : f32[9,33]
  %1 = weight "g" : f32[33]
  %2 = weight "b" : f32[33]
  %3 = const "two" : f32[] {0x1p+1}
  %4 = const "eps" : f32[] {0x1p-20}
  %5 = ReduceMean(%0) {axes=[-1]} : f32[9,1]  "" @ ""
  %6 = Sub(%0, %5) : f32[9,33]  "" @ ""
  %7 = Pow(%6, %3) : f32[9,33]  "" @ ""
  %8 = ReduceMean(%7) {axes=[-1]} : f32[9,1]  "" @ ""
  %9 = Add(%8, %4) : f32[9,1]  "" @ ""
  %10 = Sqrt(%9) : f32[9,1]  "" @ ""
  %11 = Div(%6, %10) : f32[9,33]  "" @ ""
  %12 = Mul(%11, %1) : f32[9,33]  "" @ ""
  %13 = Add(%12, %2) : f32[9,33]  "" @ ""
  output %13
}
)";

constexpr const char* kAttention = R"(graph "attention" {
  %0 = input "q" : f32[2,13,8]
  %1 = input "k" : f32[2,19,8]
  %2 = input "v" : f32[2,19,5]
  %3 = input "mask" : i64[2,19]
  %4 = const "scale" : f32[] {0x1p-2}
  %5 = const "one" : f32[] {0x1p+0}
  %6 = const "big" : f32[] {-0x1.388p+13}
  %7 = Unsqueeze(%3) {axes=[1]} : i64[2,1,19]  "" @ ""
  %8 = Cast(%7) {to="f32"} : f32[2,1,19]  "" @ ""
  %9 = Sub(%5, %8) : f32[2,1,19]  "" @ ""
  %10 = Mul(%9, %6) : f32[2,1,19]  "" @ ""
  %11 = Transpose(%1) {perm=[0, 2, 1]} : f32[2,8,19]  "kt" @ "t"
  %12 = MatMul(%0, %11) : f32[2,13,19]  "s" @ "qk"
  %13 = Mul(%12, %4) : f32[2,13,19]  "scaled" @ "scale"
  %14 = Add(%13, %10) : f32[2,13,19]  "masked" @ "m"
  %15 = Softmax(%14) {axis=-1} : f32[2,13,19]  "p" @ "sm"
  %16 = MatMul(%15, %2) : f32[2,13,5]  "o" @ "pv"
  output %16
}
)";

constexpr const char* kGatedMlp = R"(graph "gated" {
  %0 = input "x" : f32[11,12]
  %1 = weight "wg" : f32[12,40]
  %2 = weight "wu" : f32[12,40]
  %3 = weight "wd" : f32[40,12]
  %4 = MatMul(%0, %1) : f32[11,40]  "g" @ "gate"
  %5 = MatMul(%0, %2) : f32[11,40]  "u" @ "up"
  %6 = Sigmoid(%4) : f32[11,40]  "s" @ "s"
  %7 = Mul(%4, %6) : f32[11,40]  "silu" @ "silu"
  %8 = Mul(%7, %5) : f32[11,40]  "h" @ "h"
  %9 = MatMul(%8, %3) : f32[11,12]  "y" @ "down"
  %10 = Add(%9, %0) : f32[11,12]  "out" @ "res"
  output %10
}
)";

constexpr const char* kRope = R"(graph "rope" {
  %0 = input "x" : f32[6,10]
  %1 = weight "w" : f32[10,16]
  %2 = input "c" : f32[6,8]
  %3 = MatMul(%0, %1) : f32[6,16]  "y" @ "fc"
  %4 = Reshape(%3) {shape=[6, 2, 8]} : f32[6,2,8]  "" @ ""
  %5 = Transpose(%4) {perm=[1, 0, 2]} : f32[2,6,8]  "" @ ""
  %6 = Slice(%5) {axes=[2], ends=[4], starts=[0]} : f32[2,6,4]  "lo" @ "lo"
  %7 = Slice(%5) {axes=[2], ends=[8], starts=[4]} : f32[2,6,4]  "hi" @ "hi"
  %8 = Neg(%7) : f32[2,6,4]  "neg" @ "neg"
  %9 = Concat(%8, %6) {axis=2} : f32[2,6,8]  "rot" @ "rot"
  %10 = Mul(%9, %2) : f32[2,6,8]  "" @ ""
  %11 = Add(%10, %5) : f32[2,6,8]  "out" @ "add"
  output %11
}
)";

TEST(Lower, MatMulAddRelu) { CheckWhole(kMatMulAddRelu, Device("generic-avx512")); }
TEST(Lower, LayerNorm) { CheckWhole(kLayerNorm, Device("generic-avx2")); }
TEST(Lower, Attention) { CheckWhole(kAttention, Device("generic-avx512")); }
TEST(Lower, GatedMlpIsOneKernel) { CheckWhole(kGatedMlp, Device("generic-x86-64-v2")); }
TEST(Lower, RopeReadsItsOwnTileAtAnOffset) { CheckWhole(kRope, Device("generic-avx512")); }

TEST(Lower, IsDeterministic) {
  auto graph = ParseGraph(kAttention);
  auto program = BuildProgram(*graph);
  std::vector<LoopId> loops;
  for (size_t i = 0; i < program->ops.size(); ++i) loops.push_back(static_cast<LoopId>(i));
  std::vector<bool> outside(program->values.size(), false);
  outside[static_cast<size_t>(program->outputs[0])] = true;
  auto text = [&] {
    auto group =
        MakeGroup(*program, loops, outside, std::vector<bool>(program->values.size(), false));
    DeviceSpec device = Device("generic-avx2");
    auto choices = EnumerateChoices(*group, device, {}, nullptr);
    return ToString(Lower(*group, choices[0], device, false)->schedule);
  };
  EXPECT_EQ(text(), text());
}

TEST(Schedule, EveryConceptParsesAndVerifies) {
  constexpr const char* kText = R"(schedule "everything" {
  dims m:8 n:12 k:6
  param p0 input f32[8,6] strides [6, 1]
  param p1 weight f32[6,12] blocked 1 by 4
  param p2 output f32[8,12] strides [12, 1]
  param p3 output f32[8] strides [1]
  workspace w0 f32[2,8] strides [8, 1]
  phase {
    segment m:4 {
      alloc t0 staged f32[m, k] blocked 0 by 4
      copy t0[m, k] = p0[m, k] over [m, k]
      alloc t1 staged f32[m, n]
      init t1 = sum
      loop k:2 stages 2 {
        loop n:4 {
          mma t1[m, n] += t0[m, k] * p1[k, n] rows m columns n over [k]
        }
      }
      each [m, n] {
        v0 = load t1[m, n]
        v1 = within(n, 2, 12)
        v2 = load p0[m, n] where n in [2, 6]
        v3 = select(v1, v0, v2)
        store p2[m, n] = v3
      }
      if m inside [0, 4] {
        alloc t2 staged f32[m]
        init t2 = max
        each [m, n] {
          v0 = load t1[m, n]
          reduce max t2[m] = v0
        }
        each [m] {
          v0 = load t2[m]
          store w0[0, m] = v0
        }
      }
    }
  }
  phase {
    segment m:8 {
      alloc t3 staged f32[m]
      init t3 = max
      merge max t3[m] = w0[0, m] over [m]
      each [m] {
        v0 = load t3[m]
        store p3[m] = v0
      }
    }
  }
}
)";
  auto s = ParseSchedule(kText);
  ASSERT_TRUE(s.ok()) << s.status();
  EXPECT_EQ(ToString(*s), kText);
  EXPECT_TRUE(Verify(*s).ok()) << Verify(*s);
  TensorType x{DType::kF32, {8, 6}};
  TensorType w{DType::kF32, {6, 12}};
  std::vector<HostTensor> params = {Random(x, 1), Random(w, 2), HostTensor(DType::kF32, {8, 12}),
                                    HostTensor(DType::kF32, {8})};
  absl::Status status = Interpret(*s, &params);
  ASSERT_TRUE(status.ok()) << status;
  double sum = 0;
  for (int64_t k = 0; k < 6; ++k)
    sum += params[0].GetDouble(6 + k) * params[1].GetDouble(k * 12 + 3);
  EXPECT_NEAR(params[2].GetDouble(12 + 3), sum, 1e-5);
  double best = -1e30;
  for (int64_t n = 0; n < 12; ++n) {
    double v = 0;
    for (int64_t k = 0; k < 6; ++k)
      v += params[0].GetDouble(6 + k) * params[1].GetDouble(k * 12 + n);
    best = std::max(best, v);
  }
  EXPECT_NEAR(params[3].GetDouble(1), best, 1e-5);
}

TEST(Schedule, VerifyFindsBrokenSchedules) {
  auto broken = [](std::string from, std::string to) {
    std::string text = R"(schedule "s" {
  dims m:8
  param p0 input f32[8] strides [1]
  param p1 output f32[8] strides [1]
  phase {
    segment m:4 {
      each [m] {
        v0 = load p0[m]
        store p1[m] = v0
      }
    }
  }
}
)";
    size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos);
    text.replace(at, from.size(), to);
    auto s = ParseSchedule(text);
    return s.ok() ? std::string(Message(Verify(*s))) : std::string(Message(s.status()));
  };
  EXPECT_EQ(broken("load p0[m]", "load p0[m + 1]"),
            "schedule \"s\": p0 is accessed at 1..8, extent is 8");
  EXPECT_EQ(broken("store p1[m]", "store p0[m]"), "schedule \"s\": p0 is written but is no output");
  EXPECT_EQ(broken("store p1[m] = v0", "store p1[m] = v1"),
            "schedule \"s\": v1 is used before it is defined");
  EXPECT_EQ(broken("segment m:4", "segment m:0"), "schedule \"s\": grid tile 0 of dim m");
  EXPECT_NE(broken("load p0", "load p9").find("expected the name of a buffer"), std::string::npos);
}

}  // namespace
}  // namespace fusion
