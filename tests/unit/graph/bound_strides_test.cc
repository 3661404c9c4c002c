// Inputs and outputs that do not lie dense in the caller's memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/graph/build/canonical.h"
#include "core/graph/build/text.h"
#include "core/graph/evaluate/evaluate.h"
#include "core/graph/evaluate/test_values.h"
#include "core/graph/program/shared_rows.h"

namespace fusion {
namespace {

using testing::HasSubstr;

// Of x [2,3,4]: what `nodes` make of it.
std::string Text(std::string_view nodes, std::string_view strides) {
  return StrCat("graph \"g\" {\n  %0 = input \"x\" : f32[2,3,4]\n", nodes, strides, "}\n");
}

constexpr std::string_view kExp = "  %1 = Exp(%0) : f32[2,3,4]  \"y\" @ \"e\"\n  output %1\n";

Program Built(const std::string& text) {
  absl::StatusOr<Graph> graph = ParseGraph(text);
  FUSION_CHECK(graph.ok(), Message(graph.status()));
  absl::StatusOr<Program> program = BuildProgram(*graph);
  FUSION_CHECK(program.ok(), Message(program.status()));
  return *std::move(program);
}

TEST(BindStrides, ValuesLieAsTheCallerSays) {
  const std::string text = Text(kExp, "  strides input 0 [1,2,6]\n  strides output 0 [32,8,2]\n");
  EXPECT_EQ(ToString(Built(text)), R"(program {
  %0 = input 0 : f32[2,3,4] strides [1,2,6]
  %1 = Exp @0 : f32[2,3,4] strides [32,8,2] = for d0:2 d1:3 d2:4 [d0, d1, d2] = map(%0[d0, d1, d2]) : exp(in0)
  output %1
}
)");
  absl::StatusOr<Program> read = ParseProgram(ToString(Built(text)));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(ToString(*read), ToString(Built(text)));
  absl::StatusOr<Graph> graph = ParseGraph(text);
  ASSERT_TRUE(graph.ok());
  EXPECT_EQ(ToString(*graph), text);
  absl::StatusOr<CanonicalGraph> canonical = Canonicalise(*graph);
  ASSERT_TRUE(canonical.ok());
  EXPECT_EQ(canonical->graph.bound_strides(), graph->bound_strides());
  EXPECT_NE(canonical->key_text, Canonicalise(*ParseGraph(Text(kExp, "")))->key_text);
}

// A flattened tensor has no other shape where rows are apart, and what is an input as it is must be
// written to where the output lies.
TEST(BindStrides, WhatMustLieDenseIsCopied) {
  const std::string_view flat =
      "  %1 = Reshape(%0) {shape=[3,8]} : f32[3,8]  \"r\" @ \"r\"\n"
      "  %2 = Softmax(%1) {axis=1} : f32[3,8]  \"y\" @ \"s\"\n  output %2\n";
  const Program program = Built(Text(flat, "  strides input 0 [32,8,2]\n"));
  EXPECT_EQ(StorageStrides(program.value(program.inputs[0])), (Dims{32, 8, 2}));
  for (const LoopOp& op : program.ops) {
    if (op.kind != LoopOp::kReinterpret) continue;
    EXPECT_TRUE(program.value(op.inputs[0]).strides.empty()) << ToString(program);
  }
  const Program same = Built(Text("  output %0\n", "  strides output 0 [32,8,2]\n"));
  EXPECT_THAT(ToString(same), HasSubstr("f32[2,3,4] strides [32,8,2] = for"));
}

TEST(BindStrides, WhatDoesNotFitIsNamed) {
  auto with = [](std::string_view strides) {
    return std::string(ParseGraph(Text(kExp, strides)).status().message());
  };
  EXPECT_THAT(with("  strides input 1 [1,2,6]\n"), HasSubstr("input 1 is not there"));
  EXPECT_THAT(with("  strides output 0 [1,2]\n"), HasSubstr("2 strides; expected 3"));
  EXPECT_THAT(with("  strides output 0 [4,4,1]\n"), HasSubstr("stride 4 of dim 1 of [2,3,4]"));
  EXPECT_THAT(with("  strides input 0 [12,4,1]\n  strides input 0 [12,4,1]\n"),
              HasSubstr("the input has strides already"));
}

}  // namespace
}  // namespace fusion
