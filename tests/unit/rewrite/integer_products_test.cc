#include "core/rewrite/integer_products.h"

#include <gtest/gtest.h>

#include "core/graph/build/text.h"
#include "core/plan/planner.h"
#include "tests/support/whole_program.h"

namespace fusion {
namespace {

struct Sides {
  const char* x = "u8";
  const char* w = "i8";
  const char* zx = nullptr;  // zero points, as they stand in a graph
  const char* zw = nullptr;
  int64_t terms = 64;
};

// DequantizeLinear of both operands of a MatMul, [4, terms] by [terms, 33].
std::string Quantised(const Sides& sides) {
  std::string text = StrCat("graph \"g\" {\n  %0 = input \"x\" : ", sides.x, "[4,", sides.terms,
                            "]\n  %1 = weight \"w\" : ", sides.w, "[", sides.terms,
                            ",33]\n  %2 = const \"s\" : f32[] {0.5}\n");
  int next = 3;
  auto dequantised = [&](int stored, const char* type, const char* zero, const char* dims) {
    std::string inputs = StrCat("%", stored, ", %2");
    if (zero != nullptr) {
      StrAppend(&text,
                StrCat("  %", next, " = const \"z", stored, "\" : ", type, "[] {", zero, "}\n"));
      StrAppend(&inputs, StrCat(", %", next++));
    }
    StrAppend(&text, StrCat("  %", next, " = DequantizeLinear(", inputs, ") : f32[", dims,
                            "]  \"\" @ \"\"\n"));
    return next++;
  };
  const int x = dequantised(0, sides.x, sides.zx, StrCat("4,", sides.terms).c_str());
  const int w = dequantised(1, sides.w, sides.zw, StrCat(sides.terms, ",33").c_str());
  StrAppend(&text, StrCat("  %", next, " = MatMul(%", x, ", %", w,
                          ") : f32[4,33]  \"\" @ \"\"\n  output %", next, "\n}\n"));
  return text;
}

Program ProgramOf(const std::string& text) {
  auto graph = ParseGraph(text);
  FUSION_CHECK(graph.ok(), Message(graph.status()));
  auto program = BuildProgram(*graph);
  FUSION_CHECK(program.ok(), Message(program.status()));
  return *std::move(program);
}

// How many products of u8 by i8 a program has; it still prints as one that parses to the same.
int IntegerProductsOf(const Program& program) {
  auto again = ParseProgram(ToString(program));
  FUSION_CHECK(again.ok(), Message(again.status()));
  EXPECT_EQ(ToString(*again), ToString(program));
  int products = 0;
  for (const LoopOp& op : program.ops) {
    if (op.kind != LoopOp::kLoop || !op.body.reduce || op.inputs.size() != 2) continue;
    if (op.body.value.ToString() != "mul(cast.i32(in0), cast.i32(in1))") continue;
    std::set<DType> types;
    for (ValueId v : op.inputs) types.insert(program.value(v).type.dtype);
    EXPECT_EQ(types, (std::set{DType::kU8, DType::kI8}));
    EXPECT_EQ(op.body.reduce->type(), DType::kI32);
    ++products;
  }
  return products;
}

int Multiplied(const std::string& text, const char* device = "generic-avx512-vnni",
               bool f32 = true) {
  Program program = ProgramOf(text);
  MultiplyIntegers(DeviceNamed(device), f32, &program);
  return IntegerProductsOf(program);
}

TEST(MultiplyIntegers, WhereADeviceMultipliesBytesAndNumericsMay) {
  EXPECT_EQ(Multiplied(Quantised({})), 1);
  EXPECT_EQ(Multiplied(Quantised({}), "generic-avx512-bf16"), 1);
  EXPECT_EQ(Multiplied(Quantised({}), "generic-avx512"), 0);
  EXPECT_EQ(Multiplied(Quantised({}), "generic-avx2"), 0);
  EXPECT_EQ(Multiplied(Quantised({}), "h100"), 0);
  EXPECT_EQ(Multiplied(Quantised({}), "generic-avx512-vnni", /*f32=*/false), 0);
}

// 255 * 255 * 33025 is the last that i32 holds, 255 * 128 * 65793 with i8 as it is.
TEST(MultiplyIntegers, SumsStayInI32) {
  EXPECT_EQ(Multiplied(Quantised({.terms = 65793})), 1);
  EXPECT_EQ(Multiplied(Quantised({.terms = 65794})), 0);
  EXPECT_EQ(Multiplied(Quantised({.zx = "9", .terms = 65793})), 1);
  for (Sides sides : {Sides{.w = "u8"}, Sides{.w = "u8", .zw = "0"}, Sides{.zw = "127"},
                      Sides{.x = "i8", .w = "u8", .zx = "-128"}}) {
    sides.terms = 33025;
    EXPECT_EQ(Multiplied(Quantised(sides)), 1) << sides.w;
    sides.terms = 33026;
    EXPECT_EQ(Multiplied(Quantised(sides)), 0) << sides.w;
  }
  // Half of the range on each side: |x - 128| and |w| are at most 128.
  EXPECT_EQ(Multiplied(Quantised({.zx = "128", .terms = 131071})), 1);
  EXPECT_EQ(Multiplied(Quantised({.zx = "128", .terms = 131072})), 0);
}

std::string WithZero(const char* zero) {
  return StrCat(R"(graph "g" {
  %0 = input "x" : u8[4,512]
  %1 = weight "w" : i8[512,32]
  %2 = const "s" : f32[] {0.5}
)",
                zero, R"(
  %4 = Cast(%0) {to="i32"} : i32[4,512]  "" @ ""
  %5 = Sub(%4, %3) : i32[4,512]  "" @ ""
  %6 = Cast(%5) {to="f32"} : f32[4,512]  "" @ ""
  %7 = DequantizeLinear(%1, %2) : f32[512,32]  "" @ ""
  %8 = MatMul(%6, %7) : f32[4,32]  "" @ ""
  output %8
}
)");
}

// What a model takes off may be any number: sums less 100000 a term are not i32.
TEST(MultiplyIntegers, ZeroPointsAreOfTheTypeOfWhatIsStored) {
  EXPECT_EQ(Multiplied(WithZero("  %3 = const \"z\" : i32[] {255}")), 1);
  EXPECT_EQ(Multiplied(WithZero("  %3 = const \"z\" : i32[] {256}")), 0);
  EXPECT_EQ(Multiplied(WithZero("  %3 = const \"z\" : i32[] {-1}")), 0);
  EXPECT_EQ(Multiplied(WithZero("  %3 = input \"z\" : i32[]")), 0);
}

// A direction of a recurrence's weights, [directions, k, columns]: a part of what is stored, with
// its own dims, is what the product reads.
TEST(MultiplyIntegers, ReadsPartsOfWhatIsStored) {
  auto with = [](std::string_view slice) {
    return StrCat(R"(graph "g" {
  %0 = input "x" : u8[4,64]
  %1 = weight "w" : i8[2,64,33]
  %2 = const "z" : u8[] {7}
)",
                  slice, R"(
  %5 = MatMulInteger(%0, %4, %2) : i32[4,33]  "" @ ""
  output %5
}
)");
  };
  const std::string second =
      with(R"(  %3 = Slice(%1) {axes=[0], ends=[2], starts=[1], steps=[1]} : i8[1,64,33]  "" @ ""
  %4 = Squeeze(%3) {axes=[0]} : i8[64,33]  "" @ "")");
  EXPECT_EQ(Multiplied(second), 1);
  Program program = ProgramOf(second);
  MultiplyIntegers(DeviceNamed("generic-avx512-vnni"), true, &program);
  EXPECT_NE(ToString(program).find("%0[1, k, n]) : mul("), std::string::npos) << ToString(program);
  // Transposed, too; but every second row of it is no part whose neighbours are neighbours.
  EXPECT_EQ(Multiplied(R"(graph "g" {
  %0 = input "x" : u8[4,64]
  %1 = weight "w" : i8[33,64]
  %2 = const "z" : u8[] {7}
  %3 = Transpose(%1) {perm=[1, 0]} : i8[64,33]  "" @ ""
  %4 = MatMulInteger(%0, %3, %2) : i32[4,33]  "" @ ""
  output %4
}
)"),
            1);
  EXPECT_EQ(Multiplied(R"(graph "g" {
  %0 = input "x" : u8[4,64]
  %1 = weight "w" : i8[128,33]
  %2 = const "z" : u8[] {7}
  %3 = Slice(%1) {axes=[0], ends=[128], starts=[0], steps=[2]} : i8[64,33]  "" @ ""
  %4 = MatMulInteger(%0, %3, %2) : i32[4,33]  "" @ ""
  output %4
}
)"),
            0);
}

// A zero point or scale for each column of a part.
TEST(MultiplyIntegers, NumbersOfPartsMoveWithThem) {
  const std::string text = R"(graph "g" {
  %0 = input "x" : u8[4,64]
  %1 = weight "w" : i8[2,64,33]
  %2 = weight "zw" : i8[2,1,33]
  %3 = const "z" : u8[] {7}
  %4 = Cast(%1) {to="i32"} : i32[2,64,33]  "" @ ""
  %5 = Cast(%2) {to="i32"} : i32[2,1,33]  "" @ ""
  %6 = Sub(%4, %5) : i32[2,64,33]  "" @ ""
  %7 = Slice(%6) {axes=[0], ends=[2], starts=[1], steps=[1]} : i32[1,64,33]  "" @ ""
  %8 = Squeeze(%7) {axes=[0]} : i32[64,33]  "" @ ""
  %9 = Cast(%0) {to="i32"} : i32[4,64]  "" @ ""
  %10 = MatMul(%9, %8) : i32[4,33]  "" @ ""
  output %10
}
)";
  EXPECT_EQ(Multiplied(text), 1);
  // The numbers themselves: tests/property/passes_equal_evaluator_test.cc.
}

TEST(MultiplyIntegers, LeavesWhatIsAskedToBeLeft) {
  Program program = ProgramOf(Quantised({}));
  const std::string before = ToString(program);
  MultiplyIntegers(DeviceNamed("generic-avx512-vnni"), true, &program,
                   [](const LoopOp& op) { return op.label == "MatMul"; });
  EXPECT_EQ(ToString(program), before);
  // Nor where dims may be others in a run.
  program.open_dims = true;
  MultiplyIntegers(DeviceNamed("generic-avx512-vnni"), true, &program);
  program.open_dims = false;
  EXPECT_EQ(ToString(program), before);
}

std::string OfARun(const char* x, const char* w, const char* y) {
  return StrCat("graph \"g\" {\n  %0 = input \"x\" : u8[", x, "]\n  %1 = input \"w\" : i8[", w,
                "]\n  %2 = MatMulInteger(%0, %1) : i32[", y, "]  \"\" @ \"\"\n  output %2\n}\n");
}

// Integers of a model keep their bits everywhere; a matrix that is used few times is not packed.
TEST(MultiplyIntegers, OfARunFromEightRowsAndColumnsOn) {
  EXPECT_EQ(Multiplied(OfARun("8,64", "64,8", "8,8"), "generic-avx2", false), 1);
  EXPECT_EQ(Multiplied(OfARun("7,64", "64,8", "7,8"), "generic-avx2", false), 0);
  EXPECT_EQ(Multiplied(OfARun("8,64", "64,7", "8,7"), "generic-avx2", false), 0);
  EXPECT_EQ(Multiplied(OfARun("64,64", "64", "64"), "generic-avx2", false), 0);
}

std::string Images(const char* w, int64_t channels, const char* attributes, const char* y) {
  return StrCat("graph \"g\" {\n  %0 = input \"x\" : u8[1,", channels,
                ",9,8]\n  %1 = weight \"w\" : i8[", w,
                "]\n  %2 = const \"s\" : f32[] {0.5}\n  %3 = const \"z\" : u8[] {117}\n"
                "  %4 = DequantizeLinear(%0, %2, %3) : f32[1,",
                channels, ",9,8]  \"\" @ \"\"\n  %5 = DequantizeLinear(%1, %2) : f32[", w,
                "]  \"\" @ \"\"\n  %6 = Conv(%4, %5) {", attributes, "} : f32[1,", y,
                "]  \"\" @ \"\"\n  output %6\n}\n");
}

// Zeros around an image are its zero point then, and channels are summed up last.
TEST(MultiplyIntegers, WindowsOfImages) {
  Program program = ProgramOf(Images("32,16,3,3", 16, "pads=[1, 1, 1, 1]", "32,9,8"));
  MultiplyIntegers(DeviceNamed("generic-avx512-vnni"), true, &program);
  EXPECT_EQ(IntegerProductsOf(program), 1);
  const std::string text = ToString(program);
  EXPECT_NE(text.find("in0, u8(117))"), std::string::npos) << text;
  EXPECT_NE(text.find("kh:3 kw:3 ci:16 ["), std::string::npos) << text;
  // A photograph's channels, and sets of channels, stay in f32.
  EXPECT_EQ(Multiplied(Images("32,3,3,3", 3, "pads=[1, 1, 1, 1]", "32,9,8")), 0);
  EXPECT_EQ(Multiplied(Images("32,8,3,3", 16, "pads=[1, 1, 1, 1], group=2", "32,9,8")), 0);
}

}  // namespace
}  // namespace fusion
