// Members of a family know which of their tensors have other shapes in other members.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/graph/build/builder.h"
#include "core/graph/build/text.h"
#include "core/graph/program/program.h"

namespace fusion {
namespace {

using testing::HasSubstr;

// %2 is a part of a table, as long as x is, and %3 what it is in every run.
constexpr std::string_view kTable = R"(graph "g" {
  %0 = input "x" : f32[6,4]
  %1 = weight "table" : f32[6,4]
  %2 = weight "other" : f32[6,4]
  %3 = Add(%1, %2) : f32[6,4]  "both" @ "both"
  %4 = Exp(%2) : f32[6,4]  "fixed" @ "fixed"
  %5 = Add(%0, %3) : f32[6,4]  "sum" @ "sum"
  %6 = Mul(%5, %4) : f32[6,4]  "y" @ "y"
  output %6
)";

std::vector<bool> Known(const std::string& text, bool open) {
  absl::StatusOr<Graph> graph = ParseGraph(text);
  FUSION_CHECK(graph.ok(), Message(graph.status()));
  absl::StatusOr<Program> program = BuildProgram(*graph, {.open_dims = open});
  FUSION_CHECK(program.ok(), Message(program.status()));
  std::vector<bool> out;
  const std::vector<bool> known = KnownBeforeRuns(*program);
  for (const LoopOp& op : program->ops) out.push_back(known[static_cast<size_t>(op.output)]);
  return out;
}

TEST(ShapeClasses, WhatHasOtherShapesElsewhereIsNotKnownBeforeRuns) {
  const std::string plain = StrCat(kTable, "}\n");
  const std::string classes = StrCat(kTable, "  shapes [1, 0, 0, 1, 0, 1, 1]\n}\n");
  EXPECT_THAT(Known(plain, true), testing::ElementsAre(true, true, false, false));
  EXPECT_THAT(Known(classes, true), testing::ElementsAre(false, true, false, false));
  EXPECT_THAT(Known(classes, false), testing::ElementsAre(true, true, false, false))
      << "this member alone";
}

// A Slice that takes all of it at the largest values: the table is what it is everywhere.
TEST(ShapeClasses, AViewThatChangesNothingSaysNothingOfWhatItLooksAt) {
  const std::string text = R"(graph "g" {
  %0 = input "x" : f32[6,4]
  %1 = weight "table" : f32[6,4]
  %2 = Exp(%1) : f32[6,4]  "t" @ "t"
  %3 = Slice(%2) {axes=[0], ends=[6], starts=[0]} : f32[6,4]  "s" @ "s"
  %4 = Add(%0, %3) : f32[6,4]  "y" @ "y"
  output %4
  shapes [1, 0, 0, 1, 1]
}
)";
  EXPECT_THAT(Known(text, true), testing::ElementsAre(true, false));
}

TEST(ShapeClasses, TextReadsBack) {
  const std::string text = StrCat(kTable, "  shapes [1, 0, 0, 1, 0, 1, 1]\n}\n");
  absl::StatusOr<Graph> graph = ParseGraph(text);
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(ToString(*graph), text);
  for (const char* wrong : {"shapes [1]", "shapes [1, 0, 0, 1, 0, 1, -1]", "shapes 1"}) {
    EXPECT_FALSE(ParseGraph(StrCat(kTable, "  ", wrong, "\n}\n")).ok()) << wrong;
  }
}

}  // namespace
}  // namespace fusion
