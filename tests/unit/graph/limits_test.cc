// What one graph may be taken apart into.
#include <gtest/gtest.h>

#include "core/graph/build/builder.h"
#include "core/graph/program/program.h"
#include "core/op/forms/recurrent.h"

namespace fusion {
namespace {

// x -> Softmax "s0" -> Softmax "s1" -> ...: five primitive ops each.
absl::StatusOr<Graph> Softmaxes(int count, const BuilderOptions& options) {
  GraphBuilder b("g", options);
  TensorId x = b.AddInput("x", {DType::kF32, {2, 8}});
  for (int i = 0; i < count; ++i) {
    ASSIGN_OR_RETURN(x, b.AddNode("Softmax", {x}, {}, StrCat("s", i)));
  }
  b.MarkOutput(x);
  return b.Build();
}

TEST(Limits, TheBuilderCountsPrimitiveOps) {
  EXPECT_TRUE(Softmaxes(4, {.loop_op_limit = 20}).ok());
  auto refused = Softmaxes(5, {.loop_op_limit = 20});
  EXPECT_TRUE(absl::IsResourceExhausted(refused.status())) << refused.status();
  EXPECT_EQ(Message(refused.status()),
            "node \"s4\" (Softmax): the nodes so far are taken apart into 25 primitive ops; 20 are "
            "allowed");
}

TEST(Limits, TheProgramCountsThemToo) {
  auto graph = Softmaxes(3, {});
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_TRUE(BuildProgram(*graph, {.loop_op_limit = 15}).ok());
  auto refused = BuildProgram(*graph, {.loop_op_limit = 14});
  EXPECT_TRUE(absl::IsResourceExhausted(refused.status())) << refused.status();
  EXPECT_EQ(Message(refused.status()),
            "node \"s2\" (Softmax): the nodes so far are taken apart into more than 14 primitive "
            "ops");
}

TEST(Limits, SequencesThatAreWrittenOutCountByTheStep) {
  GraphBuilder b;
  TensorId x = b.AddInput("x", {DType::kF32, {kMostStepsWrittenOut, 3, 2}});
  TensorId w = b.AddWeight("w", {DType::kF32, {2, 8, 2}});
  absl::Status status = absl::OkStatus();
  int accepted = 0;
  while (status.ok() && accepted < 2000) {
    status = b.AddNode("LSTM", {x, w, w}, {{"direction", std::string("bidirectional")}},
                       StrCat("n", accepted))
                 .status();
    if (status.ok()) ++accepted;
  }
  EXPECT_GE(accepted, 50);
  EXPECT_LT(accepted, 2000);
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
}

// Three nodes that scatter into rows apart from each other: each gathers through constants of nine
// bytes a row.
absl::StatusOr<Graph> Scatters(const BuilderOptions& options) {
  GraphBuilder b("g", options);
  TensorId x = b.AddInput("x", {DType::kF32, {1000}});
  TensorId u = b.AddInput("u", {DType::kF32, {20}});
  HostTensor apart(DType::kI64, {20, 1});
  for (int64_t i = 0; i < 20; ++i) apart.SetInt(i, 2 * i);
  AttrMap attrs = {{"indices", std::make_shared<const HostTensor>(std::move(apart))}};
  for (int i = 0; i < 3; ++i) {
    ASSIGN_OR_RETURN(x, b.AddNode("ScatterND", {x, u}, attrs, StrCat("n", i)));
  }
  b.MarkOutput(x);
  return b.Build();
}

TEST(Limits, ConstantsOfStepsAreCountedInBytes) {
  auto graph = Scatters({.step_constant_byte_limit = 27000});
  ASSERT_TRUE(graph.ok()) << graph.status();
  auto refused = Scatters({.step_constant_byte_limit = 26999});
  EXPECT_TRUE(absl::IsResourceExhausted(refused.status())) << refused.status();
  EXPECT_EQ(
      Message(refused.status()),
      "node \"n2\" (ScatterND): the nodes so far are taken apart into steps with 27000 bytes of "
      "constants; 26999 are allowed");
  EXPECT_TRUE(BuildProgram(*graph, {.step_constant_byte_limit = 27000}).ok());
  auto program = BuildProgram(*graph, {.step_constant_byte_limit = 26999});
  EXPECT_TRUE(absl::IsResourceExhausted(program.status())) << program.status();
  EXPECT_EQ(Message(program.status()),
            "node \"n2\" (ScatterND): the nodes so far are taken apart into steps with more than "
            "26999 bytes of constants");
}

// x resized to `to` elements by an operator with these attributes.
absl::Status Resized(int64_t from, int64_t to, AttrMap attrs, const BuilderOptions& options) {
  GraphBuilder b("g", options);
  TensorId x = b.AddInput("x", {DType::kF32, {1, from}});
  attrs.Set("sizes", std::vector<int64_t>{1, to});
  return b.AddNode("Resize", {x}, attrs, "r").status();
}

// A plan carries these tables: an index and a weight for each tap, four bytes each.
TEST(Limits, TablesOfResizeTakeEightBytesATap) {
  AttrMap reduced = {{"mode", std::string("linear")}, {"antialias", int64_t{1}}};
  AttrMap written = {{"mode", std::string("cubic")}};
  AttrMap nearest = {{"mode", std::string("nearest")}};
  constexpr int64_t kRest = 256;  // what else there is
  EXPECT_EQ(Resized(1000, 10, reduced, {.step_constant_byte_limit = 10 * 200 * 8 + kRest}),
            absl::OkStatus());
  EXPECT_EQ(Resized(100, 1234, written, {.step_constant_byte_limit = 1234 * 4 * 8 + kRest}),
            absl::OkStatus());
  EXPECT_EQ(Resized(1000, 777, nearest, {.step_constant_byte_limit = 777 * 4 + kRest}),
            absl::OkStatus());
  EXPECT_TRUE(absl::IsResourceExhausted(
      Resized(1000, 10, reduced, {.step_constant_byte_limit = 10 * 100 * 8})));
}

}  // namespace
}  // namespace fusion
