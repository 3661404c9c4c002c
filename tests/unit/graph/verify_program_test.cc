// What Verify(const Program&) says of programs that a pass has broken.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "core/graph/build/text.h"
#include "core/graph/program/program.h"

namespace fusion {
namespace {

using testing::HasSubstr;

constexpr const char* kLoopGraph = R"(graph "g" {
  %0 = input "x" : f32[3,2]
  %1 = weight "h" : f32[2]
  %2, %3 = Repeat(%0, %1) {body=repeat 3 {element f32[2], carried f32[2], %2 = Add(%0, %1), out %2, out %2}} : f32[2], f32[3,2]  "", "" @ ""
  %4 = Neg(%3) : f32[3,2]  "" @ ""
  %5 = Exp(%4) : f32[3,2]  "" @ ""
  output %5
}
)";

Program Sound() {
  auto graph = ParseGraph(kLoopGraph);
  FUSION_CHECK(graph.ok(), Message(graph.status()));
  auto program = BuildProgram(*graph);
  FUSION_CHECK(program.ok(), Message(program.status()));
  return *std::move(program);
}

// What is wrong with the program once `broken` has been at it.
std::string Wrong(const std::function<void(Program*)>& broken) {
  Program program = Sound();
  FUSION_CHECK(Verify(program).ok(), Message(Verify(program)));
  broken(&program);
  return std::string(Verify(program).message());
}

LoopId Find(const Program& program, LoopOp::Kind kind) {
  for (size_t l = 0; l < program.ops.size(); ++l) {
    if (program.ops[l].kind == kind) return static_cast<LoopId>(l);
  }
  return kNoLoop;
}

TEST(VerifyProgram, ValuesAreMadeOnceAndBeforeTheyAreRead) {
  EXPECT_THAT(Wrong([](Program* p) { std::swap(p->ops.back(), p->ops[p->ops.size() - 2]); }),
              HasSubstr("which something else makes"));
  EXPECT_THAT(Wrong([](Program* p) { p->ops.back().inputs[0] = p->ops.back().output; }),
              HasSubstr("which is made later"));
  EXPECT_THAT(Wrong([](Program* p) { p->ops.back().inputs[0] = 99; }), HasSubstr("reads %99"));
  EXPECT_THAT(Wrong([](Program* p) { p->outputs[0] = kNoValue; }), HasSubstr("output %-1"));
  EXPECT_THAT(Wrong([](Program* p) {
                p->values.push_back({.type = {DType::kF32, Shape({1})}});
              }),
              HasSubstr("is made by no op"));
}

TEST(VerifyProgram, LeavesAreListedWhereTheySay) {
  EXPECT_THAT(Wrong([](Program* p) { p->inputs[0] = p->weights[0]; }), HasSubstr("leaf 0 is"));
  EXPECT_THAT(Wrong([](Program* p) { p->weights.clear(); }), HasSubstr("1 are listed"));
}

TEST(VerifyProgram, BodiesFitWhatTheyRead) {
  EXPECT_THAT(Wrong([](Program* p) { p->ops.back().inputs[0] = p->weights[0]; }), HasSubstr("Exp"));
  EXPECT_THAT(Wrong([](Program* p) {
                p->values.back().type.shape = Shape({2, 3});
              }),
              HasSubstr("type f32[3,2]"));
  EXPECT_THAT(Wrong([](Program* p) {
                p->values.back().order = {0, 0};
              }),
              HasSubstr("the order of"));
}

TEST(VerifyProgram, RepeatsHaveAllTheirResults) {
  EXPECT_THAT(Wrong([](Program* p) {
                const LoopId first = Find(*p, LoopOp::kResult);
                const LoopId over = Find(*p, LoopOp::kRepeat);
                // As if nothing had asked for the state: another op makes that value.
                LoopOp& op = p->ops[static_cast<size_t>(first)];
                op.kind = LoopOp::kReinterpret;
                op.inputs = {p->weights[0]};
                EXPECT_LT(over, first);
              }),
              HasSubstr("result 0 of the repeat"));
  EXPECT_THAT(
      Wrong([](Program* p) { p->ops[static_cast<size_t>(Find(*p, LoopOp::kResult))].result = 1; }),
      HasSubstr("a result of the repeat, and its type"));
  EXPECT_THAT(Wrong([](Program* p) {
                LoopOp& op = p->ops[static_cast<size_t>(Find(*p, LoopOp::kRepeat))];
                auto loop = std::make_shared<ProgramLoop>(*op.loop);
                loop->operands[0].leaf = loop->operands[1].leaf;
                op.loop = std::move(loop);
              }),
              HasSubstr("a body that fits the repeat"));
  EXPECT_THAT(Wrong([](Program* p) {
                LoopOp& op = p->ops[static_cast<size_t>(Find(*p, LoopOp::kRepeat))];
                auto loop = std::make_shared<ProgramLoop>(*op.loop);
                auto body = std::make_shared<Program>(*loop->body);
                body->ops[0].inputs[0] = 99;
                loop->body = std::move(body);
                op.loop = std::move(loop);
              }),
              HasSubstr("body of %"));
}

}  // namespace
}  // namespace fusion
