#include "core/graph/program/shared_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/graph/build/canonical.h"
#include "core/graph/build/text.h"
#include "core/graph/evaluate/evaluate.h"
#include "core/graph/evaluate/test_values.h"

namespace fusion {
namespace {

using testing::HasSubstr;

// What `nodes` make of the inputs %0 = past [2,5,3] and %1 = x [2,2,3].
std::string Text(std::string_view nodes, std::string_view shared) {
  return StrCat(
      "graph \"g\" {\n  %0 = input \"past\" : f32[2,5,3]\n  %1 = input \"x\" : f32[2,2,3]\n", nodes,
      shared, "}\n");
}

constexpr std::string_view kAppend = R"(  %2 = Exp(%1) : f32[2,2,3]  "new" @ "exp"
  %3 = Concat(%0, %2) {axis=1} : f32[2,7,3]  "present" @ "cat"
  %4 = Relu(%3) : f32[2,7,3]  "y" @ "relu"
  output %4
  output %3
)";
constexpr std::string_view kShared = "  share input 0 output 1 dim 1 capacity 9\n";

Program Built(const std::string& text) {
  absl::StatusOr<Graph> graph = ParseGraph(text);
  FUSION_CHECK(graph.ok(), Message(graph.status()));
  absl::StatusOr<Program> program = BuildProgram(*graph);
  FUSION_CHECK(program.ok(), Message(program.status()));
  return *std::move(program);
}

std::string Refusal(std::string_view nodes) {
  absl::StatusOr<Graph> graph = ParseGraph(Text(nodes, kShared));
  FUSION_CHECK(graph.ok(), Message(graph.status()));
  absl::StatusOr<Program> program = BuildProgram(*graph);
  EXPECT_TRUE(absl::IsInvalidArgument(program.status())) << program.status();
  return std::string(Message(program.status()));
}

TEST(ShareRows, OnlyNewRowsAreComputed) {
  EXPECT_EQ(ToString(Built(Text(kAppend, kShared))), R"(program {
  %0 = input 0 : f32[2,5,3] room 1:9
  %1 = input 1 : f32[2,2,3]
  %2 = Exp @0 : f32[2,2,3] = for d0:2 d1:2 d2:3 [d0, d1, d2] = map(%1[d0, d1, d2]) : exp(in0)
  %3 = Concat @1 : f32[2,2,3] room 1:9 in %4 from 5 = for d0:2 d1:2 d2:3 [d0, d1, d2] = map(%2[d0, d1, d2]) : in0
  %4 = Concat @1 : f32[2,7,3] room 1:9 = append %3 behind %0
  %5 = Relu @2 : f32[2,7,3] = for d0:2 d1:7 d2:3 [d0, d1, d2] = map(%4[d0, d1, d2]) : max(in0, f32(0x0p+0))
  output %5
  output %4
}
)");
}

TEST(ShareRows, StridesAreThoseOfTheWholeMemory) {
  const Program program = Built(Text(kAppend, kShared));
  EXPECT_EQ(StorageStrides(program.value(0)), (Dims{27, 3, 1}));
  EXPECT_EQ(StorageStrides(program.value(3)), (Dims{27, 3, 1}));
  EXPECT_EQ(StorageElements(program.value(3)), 27 + 6);
  EXPECT_EQ(StorageStrides(program.value(5)), (Dims{21, 3, 1})) << "in memory of its own";
}

TEST(ShareRows, TextReadsBack) {
  const std::string program = ToString(Built(Text(kAppend, kShared)));
  absl::StatusOr<Program> read = ParseProgram(program);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(ToString(*read), program);

  absl::StatusOr<Graph> graph = ParseGraph(Text(kAppend, kShared));
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(ToString(*graph), Text(kAppend, kShared));
  EXPECT_EQ(Canonicalise(*graph)->graph.shared_buffers(), graph->shared_buffers());
  EXPECT_NE(Canonicalise(*graph)->key_text, Canonicalise(*ParseGraph(Text(kAppend, "")))->key_text);
}

TEST(ShareRows, ProgramsThatCannotBeAreNotRead) {
  const std::string program = ToString(Built(Text(kAppend, kShared)));
  auto with = [&](const std::string& what, const std::string& instead) {
    std::string text = program;
    text.replace(text.find(what), what.size(), instead);
    return std::string(ParseProgram(text).status().message());
  };
  EXPECT_THAT(with("room 1:9", "room 3:9"), HasSubstr("one of the dims"));
  EXPECT_THAT(with("room 1:9", "room 1:0"), HasSubstr("a capacity"));
  EXPECT_THAT(with("in %4 from", "in %5 from"), HasSubstr("%4 before this"));
  EXPECT_THAT(with("from 5", "from -1"), HasSubstr("a first element"));
  EXPECT_THAT(with("from 5", "from 4"), HasSubstr("%4 to append %3 before this"));
  EXPECT_THAT(with("[2,7,3] room 1:9", "[2,7,3] room 1:10"), HasSubstr("to append %3"));
  EXPECT_THAT(with("append %3", "append %2 behind %1\n %9 = %3"), HasSubstr("a tensor with room"));
}

// The same values as without, whatever is shared.
TEST(ShareRows, TheEvaluatorSeesTheSame) {
  for (std::string_view nodes :
       {kAppend,
        // Two caches in one tensor, seen through several ops that move elements.
        std::string_view(R"(  %2 = Exp(%1) : f32[2,2,3]  "new" @ "exp"
  %3 = Transpose(%0) {perm=[2, 0, 1]} : f32[3,2,5]  "t" @ "t"
  %4 = Transpose(%2) {perm=[2, 0, 1]} : f32[3,2,2]  "u" @ "u"
  %5 = Concat(%3, %4) {axis=2} : f32[3,2,7]  "cat" @ "cat"
  %6 = Relu(%5) : f32[3,2,7]  "y" @ "relu"
  %7 = Transpose(%5) {perm=[1, 2, 0]} : f32[2,7,3]  "present" @ "back"
  output %6
  output %7
)")}) {
    const Program shared = Built(Text(nodes, kShared));
    const Program plain = Built(Text(nodes, ""));
    const std::vector<HostTensor> inputs = RandomInputs(plain, 3, /*adversarial=*/false);
    auto run = [&](const Program& program) {
      std::vector<Box> boxes;
      for (ValueId v : program.outputs) {
        boxes.push_back(Box::Whole(program.value(v).type.shape.ToDims()));
      }
      auto value = [&](ValueId v) -> const HostTensor* {
        return &inputs[static_cast<size_t>(program.value(v).index)];
      };
      return EvaluateBoxes(program, boxes, value, {}).value();
    };
    EXPECT_THAT(ToString(shared), HasSubstr("= append "));
    EXPECT_EQ(run(shared), run(plain));
  }
}

TEST(ShareRows, CachesInOneTensorAreSeenThrough) {
  const std::string text = R"(graph "g" {
  %0 = input "past" : f32[2,4,3]
  %1 = input "k" : f32[1,3]
  %2 = input "v" : f32[1,3]
  %3 = Slice(%0) {axes=[0], ends=[1], starts=[0], steps=[1]} : f32[1,4,3]  "pk" @ "pk"
  %4 = Slice(%0) {axes=[0], ends=[2], starts=[1], steps=[1]} : f32[1,4,3]  "pv" @ "pv"
  %5 = Reshape(%1) {shape=[1, 1, 3]} : f32[1,1,3]  "k3" @ "k3"
  %6 = Reshape(%2) {shape=[1, 1, 3]} : f32[1,1,3]  "v3" @ "v3"
  %7 = Concat(%3, %5) {axis=1} : f32[1,5,3]  "ck" @ "ck"
  %8 = Concat(%4, %6) {axis=1} : f32[1,5,3]  "cv" @ "cv"
  %9 = Concat(%7, %8) {axis=0} : f32[2,5,3]  "present" @ "both"
  output %9
  share input 0 output 0 dim 1 capacity 8
}
)";
  absl::StatusOr<Graph> graph = ParseGraph(text);
  ASSERT_TRUE(graph.ok()) << graph.status();
  absl::StatusOr<Program> program = BuildProgram(*graph);
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_THAT(ToString(*program), HasSubstr("= append "));
}

TEST(ShareRows, HalvesAreElementsWhateverArithmeticWidensThem) {
  for (const char* type : {"f16", "bf16"}) {
    std::string text = Text(kAppend, kShared);
    for (size_t at = 0; (at = text.find("f32[", at)) != std::string::npos; at += 2) {
      text.replace(at, 3, type);
    }
    EXPECT_THAT(ToString(Built(text)), HasSubstr("= append ")) << type;
  }
}

TEST(ShareRows, WithNothingToFindARunWritesAll) {
  const std::string text = R"(graph "g" {
  %0 = input "past" : f32[2,0,3]
  %1 = input "x" : f32[2,2,3]
  %2 = Concat(%0, %1) {axis=1} : f32[2,2,3]  "present" @ "cat"
  output %2
  share input 0 output 0 dim 1 capacity 4
}
)";
  const std::string program = ToString(Built(text));
  EXPECT_THAT(program, testing::Not(HasSubstr("append")));
  EXPECT_THAT(program, HasSubstr("f32[2,2,3] room 1:4 = for"));
}

TEST(ShareRows, AnotherShapeOfMemoryWithRoomIsACopy) {
  const std::string program =
      ToString(Built(Text(R"(  %2 = Concat(%0, %1) {axis=1} : f32[2,7,3]  "present" @ "cat"
  %3 = Reshape(%2) {shape=[3, 14]} : f32[3,14]  "flat" @ "flat"
  %4 = Softmax(%3) {axis=1} : f32[3,14]  "y" @ "y"
  output %4
  output %2
)",
                          kShared)));
  EXPECT_THAT(program, HasSubstr("%4 = Copy @1 inner : f32[2,7,3] = for"));
  EXPECT_THAT(program, HasSubstr("= reinterpret %4"));
}

TEST(ShareRows, WhatIsNoAppendIsRefusedByName) {
  EXPECT_EQ(Refusal(R"(  %2 = Concat(%1, %0) {axis=1} : f32[2,7,3]  "present" @ "cat"
  %3 = Relu(%2) : f32[2,7,3]  "y" @ "relu"
  output %3
  output %2
)"),
            "shared_buffers: output \"present\" does not hold the elements of input \"past\" and "
            "new ones behind them: that its first 5 along dim 1 are those of the input does not "
            "follow from what computes it");
  EXPECT_THAT(Refusal(R"(  %2 = Exp(%0) : f32[2,5,3]  "e" @ "e"
  %3 = Concat(%2, %1) {axis=1} : f32[2,7,3]  "present" @ "cat"
  output %1
  output %3
)"),
              HasSubstr("does not follow from what computes it"));
  EXPECT_THAT(Refusal(R"(  %2 = Concat(%0, %1) {axis=1} : f32[2,7,3]  "c" @ "cat"
  %3 = CumSum(%2) {axis=[1]} : f32[2,7,3]  "present" @ "sum"
  output %1
  output %3
)"),
              HasSubstr("does not hold the elements of input \"past\""));
}

TEST(ShareRows, GraphsThatCannotShareAreNotRead) {
  auto with = [](std::string_view shared) {
    return std::string(ParseGraph(Text(kAppend, shared)).status().message());
  };
  EXPECT_THAT(with("share input 2 output 1 dim 1 capacity 9\n"), HasSubstr("is not there"));
  EXPECT_THAT(with("share input 0 output 1 dim 2 capacity 9\n"), HasSubstr("equal types but for"));
  EXPECT_THAT(with("share input 0 output 1 dim 1 capacity 0\n"), HasSubstr("equal types but for"));
  EXPECT_THAT(with(StrCat(kShared, kShared)), HasSubstr("the input is shared already"));
}

}  // namespace
}  // namespace fusion
