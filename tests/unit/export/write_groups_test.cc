#include "core/export/write_groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "core/graph/build/canonical.h"
#include "core/import/import.h"
#include "core/onnx/external_data.h"
#include "core/onnx/group_calls.h"
#include "tests/support/test_model.h"

namespace fusion {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// "MatMul(x, w) -> h": nodes in order.
std::string Nodes(const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes) {
  return StrJoin(nodes, "; ", [](const onnx::NodeProto& node) {
    return StrCat(node.op_type(), "(", StrJoin(node.input(), ", "), ") -> ",
                  StrJoin(node.output(), ", "));
  });
}

// "F(x, w) -> (h) { ... }"
std::string Functions(const onnx::ModelProto& model) {
  return StrJoin(model.functions(), "\n", [](const onnx::FunctionProto& f) {
    return StrCat(f.name(), "(", StrJoin(f.input(), ", "), ") -> (", StrJoin(f.output(), ", "),
                  ") { ", Nodes(f.node()), " }");
  });
}

WrittenModel Write(const std::vector<std::vector<int>>& sets, onnx::ModelProto* model) {
  std::vector<ModelGroup> groups;
  for (const std::vector<int>& set : sets) {
    groups.push_back({.number = static_cast<int>(groups.size()), .label = "A+B", .nodes = set});
  }
  auto written = WriteGroups(groups, {}, model);
  EXPECT_TRUE(written.ok()) << written.status();
  return written.ok() ? *written : WrittenModel();
}

std::string KeyText(const onnx::ModelProto& model) {
  absl::StatusOr<Graph> graph = ImportOnnx(model, {.allow_fused = true});
  if (!graph.ok()) return graph.status().ToString();
  return Canonicalise(*graph)->key_text;
}

// Nodes as text, sorted.
std::multiset<std::string> NodeTexts(const onnx::ModelProto& model) {
  std::multiset<std::string> out;
  for (const onnx::NodeProto& node : model.graph().node()) out.insert(node.SerializeAsString());
  return out;
}

// What is written means the original, and opens to its nodes.
void ExpectUndone(const onnx::ModelProto& original, const onnx::ModelProto& fused) {
  EXPECT_EQ(KeyText(fused), KeyText(original));
  onnx::ModelProto opened = fused;
  OpenGroups(&opened);
  EXPECT_EQ(NodeTexts(opened), NodeTexts(original));
  EXPECT_EQ(Functions(opened), Functions(original));
}

TestModel Chain() {
  TestModel m;
  m.Input("x", {2, 2}).Initializer("w", HostTensor(DType::kF32, {2, 2}));
  m.Node("MatMul", {"x", "w"}, {"a"}, "product").Node("Relu", {"a"}, {"b"}, "relu");
  m.Node("Exp", {"b"}, {"y"}, "exp").Declare("a", {2, 2}).Declare("b", {2, 2}).Output("y", {2, 2});
  return m;
}

TEST(WriteGroups, AGroupIsANodeThatCallsAFunction) {
  TestModel m = Chain();
  onnx::ModelProto model = m.proto();
  model.add_metadata_props()->set_key("fusiond.old");
  model.add_metadata_props()->set_key("mine");
  auto written = WriteGroups({{.number = 7,
                               .label = "MatMul+Relu",
                               .nodes = {1, 0, 1},
                               .properties = {{"plan_key", "12"}, {"kernel_key", "ab"}}}},
                             {{"fusiond.isa", "avx2"}}, &model);
  ASSERT_TRUE(written.ok()) << written.status();
  EXPECT_TRUE(written->groups[0].whole());
  EXPECT_EQ(written->groups[0].nodes, 2);
  EXPECT_EQ(written->plain_nodes, 1);
  EXPECT_THAT(written->groups[0].functions, ElementsAre("Group7_MatMul_Relu"));
  EXPECT_EQ(Nodes(model.graph().node()), "Group7_MatMul_Relu(x, w) -> b; Exp(b) -> y");
  EXPECT_EQ(Functions(model),
            "Group7_MatMul_Relu(x, w) -> (b) { MatMul(x, w) -> a; Relu(a) -> b }");
  const onnx::NodeProto& call = model.graph().node(0);
  EXPECT_EQ(call.domain(), "fusiond");
  EXPECT_EQ(call.name(), "group_7");
  ASSERT_EQ(call.attribute_size(), 2);
  EXPECT_EQ(call.attribute(1).name(), "kernel_key");
  EXPECT_EQ(call.attribute(1).s(), "ab");
  const onnx::FunctionProto& function = model.functions(0);
  EXPECT_THAT(function.attribute(), ElementsAre("plan_key", "kernel_key"));
  ASSERT_EQ(function.opset_import_size(), 1);
  EXPECT_EQ(function.opset_import(0).version(), 17);
  EXPECT_EQ(model.ir_version(), 8);
  ASSERT_EQ(model.opset_import_size(), 2);
  EXPECT_EQ(model.opset_import(1).domain(), "fusiond");
  ASSERT_EQ(model.graph().value_info_size(), 1) << "that of a is inside";
  EXPECT_EQ(model.graph().value_info(0).name(), "b");
  ASSERT_EQ(model.metadata_props_size(), 2);
  EXPECT_EQ(model.metadata_props(0).key(), "mine");
  EXPECT_EQ(model.metadata_props(1).value(), "avx2");
  ExpectUndone(m.proto(), model);
}

TEST(WriteGroups, SeveralOutputsAndOptionalInputs) {
  TestModel m;
  m.Input("x", {4}).Initializer("high", HostTensor(DType::kF32, {}));
  m.Node("Clip", {"x", "", "high"}, {"a"}).Node("Exp", {"a"}, {"b"}).Node("Neg", {"a"}, {"c"});
  m.Node("Add", {"b", "c"}, {"y"}).Output("y").Output("a").Output("b");
  onnx::ModelProto model = m.proto();
  Write({{0, 1, 2}}, &model);
  EXPECT_EQ(Functions(model),
            "Group0_A_B(x, high) -> (a, b, c) { Clip(x, , high) -> a; Exp(a) -> b; Neg(a) -> c }");
  EXPECT_EQ(Nodes(model.graph().node()), "Group0_A_B(x, high) -> a, b, c; Add(b, c) -> y");
  ExpectUndone(m.proto(), model);
}

TEST(WriteGroups, GroupsThatReadFromEachOtherAreCut) {
  TestModel m;
  m.Input("x", {4}).Node("Abs", {"x"}, {"a"}).Node("Exp", {"x"}, {"b"}).Node("Neg", {"a"}, {"c"});
  m.Node("Sqrt", {"b"}, {"d"}).Output("c").Output("d");
  onnx::ModelProto model = m.proto();
  WrittenModel written = Write({{0, 3}, {1, 2}}, &model);
  EXPECT_TRUE(written.groups[0].whole());
  EXPECT_THAT(written.groups[1].functions, ElementsAre("Group1_part1_A_B", "Group1_part2_A_B"));
  EXPECT_FALSE(written.groups[1].whole());
  EXPECT_EQ(Nodes(model.graph().node()),
            "Group1_part1_A_B(x) -> b; Group0_A_B(x, b) -> a, d; Group1_part2_A_B(a) -> c");
  ExpectUndone(m.proto(), model);
}

TEST(WriteGroups, ANodeOfSeveralGroupsIsOfTheLast) {
  TestModel m = Chain();
  onnx::ModelProto model = m.proto();
  WrittenModel written = Write({{0}, {0, 1}, {1, 2}, {2}}, &model);
  EXPECT_TRUE(written.groups[0].functions.empty());
  EXPECT_EQ(written.groups[0].left_out, 1);
  EXPECT_EQ(written.groups[1].functions.size(), 1U);
  EXPECT_EQ(written.groups[1].left_out, 1);
  EXPECT_FALSE(written.groups[1].whole());
  EXPECT_EQ(Nodes(model.graph().node()),
            "Group1_A_B(x, w) -> a; Group2_A_B(a) -> b; Group3_A_B(b) -> y");
  ExpectUndone(m.proto(), model);
}

TEST(WriteGroups, WhatLiesBetweenGoesInsideAndTheRestStays) {
  TestModel m;
  m.Input("x", {2, 3}).Ints("two", {3, 2}).Node("Constant", {}, {"k"}).AttrFloat("value_float", 2);
  m.Node("Neg", {"x"}, {"a"}).Node("Reshape", {"a", "two"}, {"b"}).Node("Mul", {"b", "k"}, {"y"});
  m.Node("Neg", {"y"}, {"dead"}).Output("y");
  onnx::ModelProto model = m.proto();
  WrittenModel written = Write({{0, 1, 3, 4}}, &model);
  EXPECT_EQ(Functions(model),
            "Group0_A_B(x, two, k) -> (y) { Neg(x) -> a; Reshape(a, two) -> b; Mul(b, k) -> y }");
  EXPECT_EQ(Nodes(model.graph().node()),
            "Constant() -> k; Group0_A_B(x, two, k) -> y; Neg(y) -> dead");
  EXPECT_EQ(written.plain_nodes, 2);
  EXPECT_EQ(written.groups[0].left_out, 2) << "a constant, and what nobody reads";
  ExpectUndone(m.proto(), model);
}

TEST(WriteGroups, NodesWithBodiesStayAndWhatTheyCaptureIsGiven) {
  TestModel then_body, else_body, m;
  then_body.Node("Exp", {"a"}, {"t"}).Output("t", {2});
  else_body.Node("Neg", {"outer"}, {"e"}).Output("e", {2});
  m.Input("x", {2}).Input("c", {}, DType::kBool).Initializer("outer", HostTensor(DType::kF32, {2}));
  m.Node("Abs", {"x"}, {"a"}).Node("Sqrt", {"a"}, {"b"});
  m.Node("If", {"c"}, {"i"}, "choose").AttrGraph("then_branch", then_body);
  m.AttrGraph("else_branch", else_body).Node("Add", {"i", "b"}, {"y"}).Output("y");
  onnx::ModelProto model = m.proto();
  WrittenModel written = Write({{0, 1, 2, 3}}, &model);
  EXPECT_EQ(Nodes(model.graph().node()),
            "Group0_part1_A_B(x) -> a, b; If(c) -> i; Group0_part2_A_B(i, b) -> y")
      << "a is captured";
  EXPECT_EQ(written.groups[0].left_out, 1);
  ExpectUndone(m.proto(), model);
}

TEST(WriteGroups, OpsThatCrashOnnxRuntimeInFunctionsStay) {
  for (int opset : {12, 17}) {
    TestModel m(opset);
    m.Input("x", {2, 3}).Initializer("s", HostTensor(DType::kF32, {3}));
    m.Node("LayerNormalization", {"x", "s"}, {"n"}).Node("Neg", {"n"}, {"y"}).Output("y");
    onnx::ModelProto model = m.proto();
    Write({{0, 1}}, &model);
    EXPECT_EQ(Nodes(model.graph().node()), opset < 17
                                               ? "LayerNormalization(x, s) -> n; Group0_A_B(n) -> y"
                                               : "Group0_A_B(x, s) -> y");
    ExpectUndone(m.proto(), model);
  }
}

TEST(WriteGroups, FunctionsOfTheModelStayAndMayBeCalledFromGroups) {
  TestModel m;
  m.Function("my", "Twice", {"a"}, {"b"}).Node("Add", {"a", "a"}, {"b"}).End();
  m.Function("fusiond", "Group0_A_B", {"a"}, {"b"}).Node("Neg", {"a"}, {"b"}).End();
  m.Input("x", {2}).Node("Twice", {"x"}, {"h"}).Domain("my").Node("Exp", {"h"}, {"y"}).Output("y");
  auto* import = m.proto().add_opset_import();
  import->set_domain("my");
  import->set_version(3);
  onnx::ModelProto model = m.proto();
  Write({{0, 1}}, &model);
  EXPECT_EQ(Nodes(model.graph().node()), "Group0_A_B_2(x) -> y") << "the name is taken";
  const onnx::FunctionProto& function = model.functions(2);
  ASSERT_EQ(function.opset_import_size(), 2);
  EXPECT_EQ(function.opset_import(1).domain(), "my");
  EXPECT_EQ(function.opset_import(1).version(), 3);
  EXPECT_EQ(KeyText(model), KeyText(m.proto()));
}

TEST(WriteGroups, HostileNamesReachNoIdentifier) {
  TestModel m;
  m.Input("x\n\"", {2}).Node("Abs", {"x\n\""}, {"../a"}, "group_3");
  m.Node("Exp", {"../a"}, {"y;"}, "rm -rf").Output("y;");
  onnx::ModelProto model = m.proto();
  auto written = WriteGroups(
      {{.number = 3, .label = "A\"); system(\"x\xff" + std::string(500, '%'), .nodes = {0, 1}}}, {},
      &model);
  ASSERT_TRUE(written.ok()) << written.status();
  EXPECT_THAT(written->groups[0].functions, ElementsAre("Group3_A_system_x"));
  EXPECT_EQ(model.graph().node(0).name(), "group_3_2");
  ExpectUndone(m.proto(), model);
}

TEST(WriteGroups, WeightsOutsideAreNotTouched) {
  TestModel m = Chain();
  ReferToClient(m.graph()->mutable_initializer(0));
  m.graph()->mutable_initializer(0)->mutable_external_data(0)->set_value("no/such/file");
  onnx::ModelProto model = m.proto();
  Write({{0, 1, 2}}, &model);
  EXPECT_EQ(model.graph().initializer(0).SerializeAsString(),
            m.proto().graph().initializer(0).SerializeAsString());
}

TEST(WriteGroups, OldModelsLoseInputsThatAreConstants) {
  TestModel m = Chain();
  m.Input("w", {2, 2}).proto().set_ir_version(3);
  onnx::ModelProto model = m.proto();
  Write({{0, 1}}, &model);
  EXPECT_EQ(model.graph().input_size(), 1);
  EXPECT_EQ(model.ir_version(), 8);
  TestModel newer = Chain();
  newer.Input("w", {2, 2}).proto().set_ir_version(10);
  model = newer.proto();
  Write({{0, 1}}, &model);
  EXPECT_EQ(model.graph().input_size(), 2) << "it may be overridden";
  EXPECT_EQ(model.ir_version(), 10);
}

TEST(WriteGroups, BadModelsAreSaid) {
  TestModel cycle;
  cycle.Input("x", {2}).Node("Add", {"x", "b"}, {"a"}, "first").Node("Neg", {"a"}, {"b"});
  onnx::ModelProto model = cycle.Output("b").proto();
  EXPECT_THAT(WriteGroups({}, {}, &model).status().ToString(),
              HasSubstr("node \"first\" (\"Add\"): reads what follows from its own result"));
  TestModel twice;
  twice.Input("x", {2}).Node("Abs", {"x"}, {"a"}, "one").Node("Neg", {"x"}, {"a"}, "two");
  model = twice.Output("a").proto();
  EXPECT_THAT(WriteGroups({}, {}, &model).status().ToString(),
              HasSubstr("tensor \"a\" is given by node \"one\""));
  model = Chain().proto();
  EXPECT_THAT(WriteGroups({{.number = 2, .nodes = {3}}}, {}, &model).status().ToString(),
              HasSubstr("group 2: node 3; the model has 3"));
  EXPECT_EQ(model.SerializeAsString(), Chain().proto().SerializeAsString());
}

TEST(WriteGroups, RandomGroupsOfRandomModelsAreUndone) {
  std::mt19937 random(3);
  auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  for (int round = 0; round < 300; ++round) {
    TestModel m;
    m.Input("v0", {3}).Input("v1", {3});
    const int nodes = 1 + below(12);
    std::vector<std::vector<int>> sets(static_cast<size_t>(1 + below(4)));
    for (int i = 0; i < nodes; ++i) {
      auto value = [&] { return StrCat("v", below(i + 2)); };
      const std::string out = StrCat("v", i + 2);
      if (below(3) == 0) {
        m.Node("Neg", {value()}, {out}, "n");
      } else {
        m.Node(below(2) == 0 ? "Add" : "Mul", {value(), value()}, {out});
      }
      if (below(4) == 0 || i + 1 == nodes) m.Output(out);
      for (int times = below(3); times > 0; --times) {
        sets[static_cast<size_t>(below(static_cast<int>(sets.size())))].push_back(i);
      }
    }
    auto* list = m.graph()->mutable_node();
    std::shuffle(list->pointer_begin(), list->pointer_end(), random);
    onnx::ModelProto model = m.proto();
    Write(sets, &model);
    std::set<std::string> known = {"v0", "v1"};
    for (const onnx::NodeProto& node : model.graph().node()) {
      for (const std::string& name : node.input()) EXPECT_EQ(known.count(name), 1U) << name;
      known.insert(node.output().begin(), node.output().end());
    }
    ExpectUndone(m.proto(), model);
  }
}

}  // namespace
}  // namespace fusion
