#include "core/onnx/group_calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/onnx/reference_weights.h"
#include "tests/support/imported.h"

namespace fusion {
namespace {

using testing::AllOf;
using testing::HasSubstr;

void ImportDomain(TestModel* m, int version = 1) {
  auto* import = m->proto().add_opset_import();
  import->set_domain("fusiond");
  import->set_version(version);
}

// x -> Neg -> t -> Exp -> y as a group called g.
TestModel Fused(const std::string& inner = "t") {
  TestModel m;
  m.Function("fusiond", "G", {"a"}, {"b"});
  m.Node("Neg", {"a"}, {inner}, "neg").Node("Exp", {inner}, {"b"}, "exp").End();
  m.Input("x", {2}).Node("G", {"x"}, {"y"}, "g").Domain("fusiond").Output("y", {2});
  ImportDomain(&m);
  return m;
}

std::string ImportFused(TestModel& m) {
  ImportOptions options;
  options.allow_fused = true;
  return ImportNamed(m, options);
}

TEST(GroupCalls, AreRefusedUnlessAllowed) {
  TestModel m = Fused();
  EXPECT_THAT(ImportNamed(m), AllOf(HasSubstr("INVALID_ARGUMENT: ALREADY_FUSED: node \"g\" (G)"),
                                    HasSubstr("allow_fused")));
  EXPECT_EQ(ImportFused(m), "neg=Neg exp=Exp y:f32[2]");
}

TEST(GroupCalls, AreFoundInBodiesAndFunctions) {
  TestModel body, in_body;
  body.Node("G", {"x"}, {"t"}, "inner").Domain("fusiond").Output("t", {2});
  in_body.Function("fusiond", "G", {"a"}, {"b"}).Node("Neg", {"a"}, {"b"}).End();
  in_body.Input("x", {2}).Input("c", {}, DType::kBool).Node("If", {"c"}, {"y"});
  in_body.AttrGraph("then_branch", body).AttrGraph("else_branch", body).Output("y", {2});
  EXPECT_THAT(ImportNamed(in_body), HasSubstr("ALREADY_FUSED: node \"inner\""));
  EXPECT_THAT(ImportFused(in_body), HasSubstr("Neg"));
  TestModel in_function;
  in_function.Function("fusiond", "G", {"a"}, {"b"}).Node("Neg", {"a"}, {"b"}, "neg").End();
  in_function.Function("my", "F", {"a"}, {"b"}).Node("G", {"a"}, {"b"}, "call").Domain("fusiond");
  in_function.End().Input("x", {2}).Node("F", {"x"}, {"y"}, "f").Domain("my").Output("y", {2});
  EXPECT_THAT(ImportNamed(in_function), HasSubstr("ALREADY_FUSED: node \"call\""));
  EXPECT_EQ(ImportFused(in_function), "f/call/neg=Neg y:f32[2]");
}

TEST(GroupCalls, OpsOfTheDomainThatAreNoFunctionsAreNotSupported) {
  TestModel m;
  m.Input("x", {2}).Node("G", {"x"}, {"y"}, "g").Domain("fusiond").Output("y", {2});
  EXPECT_THAT(ImportNamed(m), HasSubstr("UNIMPLEMENTED: node \"g\" (G): op \"G\" of domain"));
  EXPECT_THAT(ImportFused(m), HasSubstr("UNIMPLEMENTED"));
}

TEST(GroupCalls, OpenUnderTheirOldNames) {
  TestModel m = Fused();
  m.proto().add_metadata_props()->set_key("fusiond.plan_key");
  OpenGroups(&m.proto());
  const onnx::GraphProto& graph = m.proto().graph();
  ASSERT_EQ(graph.node_size(), 2);
  EXPECT_EQ(graph.node(0).input(0), "x");
  EXPECT_EQ(graph.node(0).output(0), "t");
  EXPECT_EQ(graph.node(1).output(0), "y");
  EXPECT_EQ(m.proto().functions_size(), 0);
  EXPECT_EQ(m.proto().opset_import_size(), 1);
  EXPECT_EQ(m.proto().metadata_props_size(), 0);
}

// The model imports no version of the domain, the function has to name one.
TEST(GroupCalls, OpenWithOpsOfDomainsThatTheModelDoesNotImport) {
  TestModel m;
  m.Function("fusiond", "G", {"a"}, {"b"});
  m.Node("Leak", {"a"}, {"b"}, "leak").Domain("acme").End();
  auto* import = m.proto().mutable_functions(0)->add_opset_import();
  import->set_domain("acme");
  import->set_version(1);
  m.Input("x", {2}).Node("G", {"x"}, {"y"}, "g").Domain("fusiond").Output("y", {2});
  ImportDomain(&m);
  EXPECT_THAT(ImportFused(m), HasSubstr("node \"leak\" (Leak)"));
}

TEST(GroupCalls, NamesThatAreTakenGetTheCallsInFront) {
  TestModel m = Fused("x");  // inside, x is another value
  EXPECT_EQ(ImportFused(m), "neg=Neg exp=Exp y:f32[2]");
  OpenGroups(&m.proto());
  EXPECT_EQ(m.proto().graph().node(0).output(0), "g/x");
  TestModel twice = Fused();
  twice.Node("G", {"y"}, {"z"}, "g").Domain("fusiond").Node("G", {"z"}, {"u"}).Domain("fusiond");
  twice.Output("u", {2});
  EXPECT_THAT(ImportFused(twice), HasSubstr("u:f32[2]"));
}

TEST(GroupCalls, MaskThatOnlySelectsStaysInlineInsideOfAGroup) {
  TestModel m;
  m.Function("fusiond", "G", {"m", "a"}, {"b"}).Node("Where", {"m", "a", "a"}, {"b"}).End();
  m.Input("x", {64, 64}).Initializer("mask", HostTensor(DType::kBool, {64, 64}));
  m.Node("G", {"mask", "x"}, {"y"}, "g").Domain("fusiond").Output("y");
  ImportDomain(&m);
  auto bare = ReferenceWeights(m.proto());
  ASSERT_TRUE(bare.ok()) << bare.status();
  EXPECT_TRUE(bare->graph().initializer(0).has_raw_data());
  EXPECT_EQ(bare->functions_size(), 1) << "it is sent as it is";
}

// What core/export would not write means what any function means, or is an error: no crash.
TEST(GroupCalls, StrangeFunctionsAreLeftToTheImporter) {
  TestModel reference;  // an attribute of the call
  reference.Function("fusiond", "G", {"a"}, {"b"}, {"axis"}).Node("Softmax", {"a"}, {"b"}, "s");
  reference.AttrRef("axis", "axis").End().Input("x", {2, 3});
  reference.Node("G", {"x"}, {"y"}, "g").Domain("fusiond").Attr("axis", 0).Output("y");
  EXPECT_EQ(ImportFused(reference), "g/s=Softmax{axis=0} y:f32[2,3]");
  TestModel passes;  // an output that is an input
  passes.Function("fusiond", "G", {"a"}, {"a"}).Node("Neg", {"a"}, {"b"}).End();
  passes.Input("x", {2}).Node("G", {"x"}, {"y"}, "g").Domain("fusiond").Output("y");
  EXPECT_THAT(ImportFused(passes), HasSubstr("Identity"));
  TestModel itself;
  itself.Function("fusiond", "G", {"a"}, {"b"}).Node("G", {"a"}, {"b"}).Domain("fusiond").End();
  itself.Input("x", {2}).Node("G", {"x"}, {"y"}, "g").Domain("fusiond").Output("y");
  ImportDomain(&itself);
  itself.proto().mutable_functions(0)->mutable_opset_import()->Add()->set_domain("fusiond");
  EXPECT_THAT(ImportFused(itself), HasSubstr("INVALID_ARGUMENT"));
  TestModel outside;  // a name of the main graph
  outside.Function("fusiond", "G", {"a"}, {"b"}).Node("Add", {"a", "x"}, {"b"}).End();
  outside.Input("x", {2}).Node("G", {"x"}, {"y"}, "g").Domain("fusiond").Output("y");
  EXPECT_THAT(ImportFused(outside), HasSubstr("is given by no node"));
  TestModel opset;  // another version
  opset.Function("fusiond", "G", {"a"}, {"b"}, {}, 11).Node("Softmax", {"a"}, {"b"}, "s").End();
  opset.Input("x", {2, 3, 4}).Node("G", {"x"}, {"y"}, "g").Domain("fusiond").Output("y");
  EXPECT_EQ(ImportFused(opset), "g/s=Softmax{axis=1, flatten=1} y:f32[2,3,4]");
  TestModel wide = Fused();
  wide.graph()->mutable_node(0)->add_input("x");
  EXPECT_THAT(ImportFused(wide), HasSubstr("with 2 inputs and 1 outputs, it has 1 and 1"));
  TestModel two = Fused();
  *two.proto().add_functions() = two.proto().functions(0);
  EXPECT_THAT(ImportFused(two), HasSubstr("is defined twice"));
}

TEST(GroupCalls, CallsThatMultiplyAreBounded) {
  TestModel m;
  m.Function("fusiond", "G", {"a"}, {"b"}).Node("Neg", {"a"}, {"b"});
  m.last()->set_doc_string(std::string(1 << 20, 'd'));
  m.End().Input("x", {2});
  for (int i = 0; i < 200; ++i) {
    m.Node("G", {i == 0 ? "x" : StrCat("v", i)}, {StrCat("v", i + 1)}).Domain("fusiond");
  }
  m.Output("v200", {2});
  ImportDomain(&m);
  onnx::ModelProto opened = m.proto();
  OpenGroups(&opened);
  EXPECT_LT(opened.ByteSizeLong(), size_t{70} << 20);
  EXPECT_NE(FindGroupCall(opened), nullptr);
  EXPECT_THAT(ImportFused(m), HasSubstr("v200:f32[2]"));
}

}  // namespace
}  // namespace fusion
