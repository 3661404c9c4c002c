// What has no elements takes no work, however long its other dims are. A test that walked one of
// them would not end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "core/graph/build/text.h"
#include "core/graph/evaluate/evaluate.h"
#include "core/graph/program/program.h"

namespace fusion {
namespace {

absl::StatusOr<const HostTensor*> NothingGiven(TensorId) { return NotFound("no weights"); }

struct EmptyCase {
  const char* name;
  const char* input;
  const char* node;
  const char* output;
};

class EmptyOutputs : public ::testing::TestWithParam<EmptyCase> {};

TEST_P(EmptyOutputs, TakeNoOps) {
  const EmptyCase& c = GetParam();
  auto graph =
      ParseGraph(StrCat("graph \"g\" {\n  %0 = input \"x\" : ", c.input, "\n  %1 = ", c.node, " : ",
                        c.output, "  \"\" @ \"\"\n  output %1\n}\n"));
  ASSERT_TRUE(graph.ok()) << graph.status();
  auto program = BuildProgram(*graph);
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_TRUE(program->ops.empty()) << ToString(*program);
  const TensorType& type = graph->tensor(graph->outputs()[0]).type;
  EXPECT_EQ(program->value(program->outputs[0]).type, type);
  const TensorType& in = graph->tensor(graph->inputs()[0]).type;
  auto values = Evaluate(*graph, {HostTensor(in.dtype, in.shape.ToDims())}, NothingGiven);
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_EQ((*values)[0].dims(), type.shape.ToDims());
}

constexpr EmptyCase kEmptyCases[] = {
    {"sin", "f32[17179869184,0]", "Sin(%0)", "f32[17179869184,0]"},
    {"identity", "f32[17179869184,0]", "Identity(%0)", "f32[17179869184,0]"},
    {"transpose", "f32[0,17179869184]", "Transpose(%0) {perm=[1, 0]}", "f32[17179869184,0]"},
    {"concat", "f32[1099511627776,0]", "Concat(%0, %0) {axis=0}", "f32[2199023255552,0]"},
    {"softmax", "f32[17179869184,0]", "Softmax(%0) {axis=0}", "f32[17179869184,0]"},
    {"slice", "f32[0,17179869184]", "Slice(%0) {axes=[1], ends=[17179869183], starts=[1]}",
     "f32[0,17179869182]"},
    {"sum", "f32[17179869184,0]", "ReduceSum(%0) {axes=[0], keepdims=0}", "f32[0]"},
};

INSTANTIATE_TEST_SUITE_P(Cases, EmptyOutputs, ::testing::ValuesIn(kEmptyCases),
                         [](const auto& param) { return std::string(param.param.name); });

TEST(EmptyTensors, SumsOfNothingAreTheIdentity) {
  auto graph = ParseGraph(R"(graph "g" {
  %0 = input "x" : f32[17179869184,0]
  %1 = Sin(%0) : f32[17179869184,0]  "" @ ""
  %2 = ReduceSum(%1) {axes=[0, 1], keepdims=0} : f32[]  "" @ ""
  %3 = ReduceMax(%1) {axes=[0, 1], keepdims=0} : f32[]  "" @ ""
  output %2
  output %3
}
)");
  ASSERT_TRUE(graph.ok()) << graph.status();
  auto values = Evaluate(*graph, {HostTensor(DType::kF32, {int64_t{1} << 34, 0})}, NothingGiven);
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_EQ((*values)[0].GetDouble(0), 0);
  EXPECT_EQ((*values)[1].GetDouble(0), -std::numeric_limits<double>::infinity());
}

TEST(EmptyTensors, PassesThatGiveNothingAreNotMade) {
  auto graph = ParseGraph(R"(graph "g" {
  %0 = input "x" : f32[2147483648,0,3]
  %1 = input "w" : f32[1,16,3]
  %2 = input "r" : f32[1,16,4]
  %3 = LSTM(%0, %1, %2) {hidden_size=4} : f32[2147483648,1,0,4]  "" @ ""
  output %3
}
)");
  ASSERT_TRUE(graph.ok()) << graph.status();
  auto program = BuildProgram(*graph);
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_TRUE(program->ops.empty()) << ToString(*program);
  auto values = Evaluate(*graph,
                         {HostTensor(DType::kF32, {int64_t{1} << 31, 0, 3}),
                          HostTensor(DType::kF32, {1, 16, 3}), HostTensor(DType::kF32, {1, 16, 4})},
                         NothingGiven);
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_EQ((*values)[0].dims(), (Dims{int64_t{1} << 31, 1, 0, 4}));
}

}  // namespace
}  // namespace fusion
