// Ops that no affine loop says (core/op/indexed/opaque.h): what their kernels and their schedules
// compute is what the evaluator computes, on NaN, infinities, zeros of both signs and ties.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "core/graph/build/builder.h"
#include "core/graph/build/text.h"
#include "core/tensor/compare.h"
#include "tests/support/kernel_harness.h"
#include "tests/support/plan_interpreter.h"

namespace fusion {
namespace {

using Ints = std::vector<int64_t>;

// Few different values, so that many are equal. `hostile`: also those that compare unlike others.
HostTensor Values(const TensorType& type, uint64_t seed, bool hostile) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> odd = {kNan, HUGE_VAL, -HUGE_VAL, 0.0, -0.0, kNan};
  std::mt19937_64 random(seed);
  HostTensor x(type.dtype, type.shape.ToDims());
  for (int64_t i = 0; i < x.elements(); ++i) {
    const auto value = static_cast<int64_t>(random() % 64) - 32;
    if (type.dtype == DType::kBool) {
      x.SetInt(i, value > 10 ? 1 : 0);
    } else if (!IsFloat(type.dtype)) {
      // The ends of 64 bits are no f64.
      const int64_t far = (static_cast<int64_t>(1) << 62) + value;
      x.SetInt(i, hostile && random() % 8 == 0 && DTypeBytes(type.dtype) == 8 ? far
                  : IsUnsigned(type.dtype)                                    ? value + 32
                                                                              : value);
    } else {
      x.SetDouble(i, hostile && random() % 8 == 0 ? odd[random() % odd.size()]
                                                  : static_cast<double>(value) / 16);
    }
  }
  return x;
}

struct OpaqueCase {
  std::string op;
  TensorType x;
  AttrMap attrs;
  bool hostile = true;
};

std::string Name(const OpaqueCase& c) {
  return StrCat(c.op, " ", c.x.ToString(), " ", c.attrs.ToString());
}

// Plans the one op, runs it on the interpreter and as compiled kernel, plain and guarded.
void ExpectRight(const OpaqueCase& c, int threads, Numerics numerics) {
  SCOPED_TRACE(StrCat(Name(c), ", ", threads, " threads"));
  GraphBuilder builder;
  const TensorId x = builder.AddInput("x", c.x);
  auto y = builder.AddNode(c.op, {x}, c.attrs);
  ASSERT_TRUE(y.ok()) << y.status();
  builder.MarkOutput(*y);
  auto graph = builder.Build();
  ASSERT_TRUE(graph.ok()) << graph.status();
  const DeviceSpec device = DeviceNamed(RunnableDevices().back(), threads);
  auto model = MakePlan(*graph, device, {.numerics = numerics});
  ASSERT_TRUE(model.ok()) << model.status();
  for (uint64_t seed : {1, 2}) {
    const PlanValues values = {.inputs = {Values(c.x, seed, c.hostile && seed == 1)},
                               .weights = {}};
    auto wanted = EvaluatePlanned(*graph, *model, values);
    ASSERT_TRUE(wanted.ok()) << wanted.status();
    auto expect_equal = [&](const absl::StatusOr<std::vector<HostTensor>>& got, const char* who) {
      ASSERT_TRUE(got.ok()) << who << ": " << got.status();
      const Difference d = Compare((*got)[0], (*wanted)[0]);
      EXPECT_TRUE(d.ok()) << who << ", seed " << seed << ": " << d.ToString();
    };
    expect_equal(InterpretPlan(*model, values.inputs, values.weights), "interpreter");
    for (bool guard : {false, true}) {
      if (guard && seed == 2) continue;
      expect_equal(CompileAndRun(*model, device, values, guard), guard ? "guarded" : "kernel");
    }
  }
}

AttrMap Fold(int64_t axis, const std::string& monoid, bool exclusive = false,
             bool reverse = false) {
  return {{"axis", axis},
          {"monoid", monoid},
          {"exclusive", int64_t{exclusive}},
          {"reverse", int64_t{reverse}}};
}

AttrMap Order(int64_t axis, int64_t count, bool largest, bool things = false) {
  return {
      {"axis", axis}, {"count", count}, {"largest", int64_t{largest}}, {"things", int64_t{things}}};
}

constexpr Numerics kUsual = Numerics::kFp32Accumulate;

TEST(RunningFolds, OfEachKindAndType) {
  int n = 0;
  for (DType type : {DType::kF32, DType::kF64, DType::kI32, DType::kI64}) {
    for (const char* monoid : {"sum", "prod", "max", "min"}) {
      // All combinations of the flags over types and kinds together.
      const bool exclusive = n % 2 == 1 && std::string_view(monoid).front() != 'm';
      ExpectRight({.op = "RunningFold",
                   .x = {type, Shape(Dims{3, 37, n % 3 == 0 ? 1 : 21})},
                   .attrs = Fold(1, monoid, exclusive, n / 2 % 2 == 1),
                   // Products of much are as wrong as what goes into them.
                   .hostile = std::string_view(monoid) != "prod"},
                  2, kUsual);
      ++n;
    }
  }
}

TEST(RunningFolds, OfSumsWithEachFlag) {
  for (bool exclusive : {false, true}) {
    for (bool reverse : {false, true}) {
      for (const Dims& dims : {Dims{2, 101, 1}, Dims{2, 19, 70}}) {
        ExpectRight({.op = "RunningFold",
                     .x = {DType::kF32, Shape(dims)},
                     .attrs = Fold(1, "sum", exclusive, reverse)},
                    1, kUsual);
      }
    }
  }
}

// Fewer rows than threads: each is cut into blocks.
TEST(RunningFolds, OfLongRows) {
  for (bool reverse : {false, true}) {
    ExpectRight({.op = "RunningFold",
                 .x = {DType::kF32, {1, (1 << 17) + 5}},
                 .attrs = Fold(1, "sum", reverse, reverse),
                 .hostile = false},
                4, kUsual);
    ExpectRight({.op = "RunningFold",
                 .x = {DType::kI64, {2, (1 << 16) + 3}},
                 .attrs = Fold(1, reverse ? "max" : "sum", false, reverse)},
                3, kUsual);
  }
  // In one order only.
  ExpectRight({.op = "RunningFold",
               .x = {DType::kF32, {1, (1 << 17) + 5}},
               .attrs = Fold(1, "sum"),
               .hostile = false},
              4, Numerics::kBitwise);
}

TEST(RunningFolds, OfNothingAndOfOne) {
  for (const Dims& dims : {Dims{0, 4}, Dims{4, 0}, Dims{1, 1}, Dims{3, 1}, Dims{2, 0, 3}}) {
    ExpectRight(
        {.op = "RunningFold", .x = {DType::kF32, Shape(dims)}, .attrs = Fold(1, "sum", true)}, 2,
        kUsual);
  }
}

TEST(RowOrders, OfEachType) {
  for (DType type :
       {DType::kF32, DType::kF64, DType::kI32, DType::kU32, DType::kI64, DType::kU64}) {
    const bool largest = DTypeBytes(type) == 8;
    ExpectRight({.op = "RowOrder", .x = {type, {2, 300}}, .attrs = Order(1, 300, largest)}, 2,
                kUsual);
    ExpectRight({.op = "RowOrder", .x = {type, {2, 900, 3}}, .attrs = Order(1, 7, !largest)}, 2,
                kUsual);
  }
}

// Few of many: what is held is cut down again and again.
TEST(RowOrders, OfTheFirstFew) {
  for (bool largest : {false, true}) {
    for (int64_t count : {1, 5, 100, 1999}) {
      ExpectRight(
          {.op = "RowOrder", .x = {DType::kF32, {3, 2000}}, .attrs = Order(1, count, largest)}, 2,
          kUsual);
    }
  }
}

TEST(RowOrders, OfThings) {
  for (bool largest : {false, true}) {
    ExpectRight({.op = "RowOrder",
                 .x = {DType::kF32, {200, 3}},
                 .attrs = Order(0, 200, largest, /*things=*/true)},
                1, kUsual);
    ExpectRight({.op = "RowOrder",
                 .x = {DType::kI64, {90, 1}},
                 .attrs = Order(0, 12, largest, /*things=*/true)},
                1, kUsual);
  }
}

TEST(RowOrders, OfNothingAndOfOne) {
  ExpectRight({.op = "RowOrder", .x = {DType::kF32, {0, 5}}, .attrs = Order(1, 5, true)}, 1,
              kUsual);
  ExpectRight({.op = "RowOrder", .x = {DType::kF32, {3, 5}}, .attrs = Order(1, 0, true)}, 1,
              kUsual);
  ExpectRight({.op = "RowOrder", .x = {DType::kF32, {3, 1}}, .attrs = Order(1, 1, true)}, 1,
              kUsual);
}

// Rows that are already in order, or the other way round, or all the same.
TEST(RowOrders, OfWhatPivotsDislike) {
  for (int kind = 0; kind < 4; ++kind) {
    GraphBuilder builder;
    const TensorType type = {DType::kF32, {1, 5000}};
    const TensorId in = builder.AddInput("x", type);
    builder.MarkOutput(builder.AddNode("RowOrder", {in}, Order(1, 5000, false)).value());
    const Graph graph = builder.Build().value();
    const DeviceSpec device = DeviceNamed(RunnableDevices().back());
    auto model = MakePlan(graph, device, {});
    ASSERT_TRUE(model.ok()) << model.status();
    HostTensor x(type.dtype, type.shape.ToDims());
    for (int64_t i = 0; i < x.elements(); ++i) {
      const int64_t value = kind == 0 ? i : kind == 1 ? -i : kind == 2 ? 0 : std::min(i, 5000 - i);
      x.SetDouble(i, static_cast<double>(value));
    }
    const PlanValues values = {.inputs = {x}, .weights = {}};
    auto wanted = EvaluatePlanned(graph, *model, values);
    ASSERT_TRUE(wanted.ok()) << wanted.status();
    auto got = CompileAndRun(*model, device, values);
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_TRUE(Compare((*got)[0], (*wanted)[0]).ok()) << "kind " << kind;
  }
}

TEST(ChosenPlacesKernels, EqualTheEvaluator) {
  for (int64_t n : {1, 2, 333}) {
    ExpectRight({.op = "ChosenPlaces", .x = {DType::kBool, Shape(Dims{n})}, .attrs = {}}, 1,
                kUsual);
  }
}

// Boxes that share all, part or nothing, some turned inside out, and scores that are equal or none.
struct BoxCase {
  bool centred;
  bool limited;
  int64_t count;
};

class BoxChoices : public ::testing::TestWithParam<BoxCase> {};

TEST_P(BoxChoices, EqualTheEvaluator) {
  constexpr int64_t kBoxes = 60;
  const BoxCase& c = GetParam();
  const TensorType boxes = {DType::kF32, {2, kBoxes, 4}};
  const TensorType scores = {DType::kF32, {2, 3, kBoxes}};
  const TensorType one = {DType::kF32, Shape(Dims{})};
  GraphBuilder builder;
  std::vector<TensorId> inputs = {builder.AddInput("boxes", boxes),
                                  builder.AddInput("scores", scores),
                                  builder.AddInput("part", one)};
  if (c.limited) inputs.push_back(builder.AddInput("limit", one));
  const AttrMap attrs = {
      {"count", c.count}, {"centred", int64_t{c.centred}}, {"limited", int64_t{c.limited}}};
  builder.MarkOutput(builder.AddNode("BoxChoice", inputs, attrs).value());
  const Graph graph = builder.Build().value();
  const DeviceSpec device = DeviceNamed(RunnableDevices().back(), 2);
  auto model = MakePlan(graph, device, {});
  ASSERT_TRUE(model.ok()) << model.status();
  PlanValues values;
  values.inputs = {Values(boxes, 3, false), Values(scores, 4, true), HostTensor(DType::kF32, {})};
  values.inputs[2].SetDouble(0, 0.25);
  if (c.limited) {
    values.inputs.emplace_back(DType::kF32, Dims{});
    values.inputs[3].SetDouble(0, -1.0);
  }
  auto wanted = EvaluatePlanned(graph, *model, values);
  ASSERT_TRUE(wanted.ok()) << wanted.status();
  auto interpreted = InterpretPlan(*model, values.inputs, values.weights);
  ASSERT_TRUE(interpreted.ok()) << interpreted.status();
  EXPECT_TRUE(Compare((*interpreted)[0], (*wanted)[0]).ok());
  for (bool guard : {false, true}) {
    auto got = CompileAndRun(*model, device, values, guard);
    ASSERT_TRUE(got.ok()) << got.status();
    const Difference d = Compare((*got)[0], (*wanted)[0]);
    EXPECT_TRUE(d.ok()) << d.ToString();
  }
}

INSTANTIATE_TEST_SUITE_P(All, BoxChoices,
                         ::testing::Values(BoxCase{false, false, 60}, BoxCase{false, true, 5},
                                           BoxCase{true, true, 60}, BoxCase{true, false, 1}));

}  // namespace
}  // namespace fusion
