#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "core/graph/build/text.h"
#include "core/graph/evaluate/evaluate.h"
#include "core/import/import.h"

namespace fusion {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr const char* kMlp = R"(
  name: "mlp"
  tensors { id: 1 kind: KIND_INPUT data_type: DATA_TYPE_F32 name: "x" dims { value: 8 } dims { value: 4 } }
  tensors { id: 2 kind: KIND_WEIGHT data_type: DATA_TYPE_F32 name: "w" dims { value: 4 } dims { value: 6 } }
  tensors { id: 3 kind: KIND_CONSTANT data_type: DATA_TYPE_F32 name: "two" data: "\000\000\000\100" }
  tensors { id: 4 kind: KIND_INTERMEDIATE name: "h" }
  tensors { id: 5 kind: KIND_INTERMEDIATE name: "y" data_type: DATA_TYPE_F32 dims { value: 8 } dims { value: 6 } }
  nodes { op: "MatMul" inputs: 1 inputs: 2 outputs: 4 name: "fc" }
  nodes { op: "Mul" inputs: 4 inputs: 3 outputs: 9 }
  nodes { op: "Softmax" inputs: 9 outputs: 5 name: "sm" attributes { name: "axis" i: 1 } }
  inputs: 1
  outputs: 5
)";

v1::OpGraph Parse(const std::string& text) {
  v1::OpGraph out;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &out));
  return out;
}

std::string Import(const v1::OpGraph& proto, const ImportOptions& options = {}) {
  auto graph = ImportOpGraph(proto, options);
  if (!graph.ok()) return graph.status().ToString();
  EXPECT_TRUE(Verify(*graph).ok()) << Verify(*graph);
  EXPECT_TRUE(ParseGraph(ToString(*graph)).ok());
  std::string out;
  for (const Node& node : graph->nodes())
    StrAppend(&out, StrCat(node.def->name, node.attrs.ToString(), " "));
  for (TensorId id : graph->outputs())
    StrAppend(&out, StrCat(graph->tensor(id).type.ToString(), " "));
  out.pop_back();
  return out;
}

// kMlp with one change.
std::string Changed(const std::function<void(v1::OpGraph&)>& change,
                    const ImportOptions& options = {}) {
  v1::OpGraph graph = Parse(kMlp);
  change(graph);
  return Import(graph, options);
}

TEST(ImportOpGraph, BuildsTheGraph) {
  EXPECT_EQ(Import(Parse(kMlp)), "MatMul Mul Softmax{axis=1} f32[8,6]");
  auto graph = ImportOpGraph(Parse(kMlp));
  EXPECT_EQ(graph->name(), "mlp");
  EXPECT_EQ(graph->tensor(graph->inputs()[0]).name, "x");
  EXPECT_EQ(graph->node(0).name, "fc");
}

TEST(ImportOpGraph, VersionOfTheOpSet) {
  EXPECT_EQ(Changed([](auto& g) { g.set_op_set_version(1); }),
            "MatMul Mul Softmax{axis=1} f32[8,6]");
  EXPECT_EQ(Changed([](auto& g) { g.set_op_set_version(2); }),
            "UNIMPLEMENTED: op_set_version is 2; supported: 1");
}

TEST(ImportOpGraph, IdsAreUniqueAndDefined) {
  EXPECT_EQ(Changed([](auto& g) { g.mutable_tensors(1)->set_id(1); }),
            "INVALID_ARGUMENT: tensor 1 \"w\": id is used twice");
  EXPECT_THAT(Changed([](auto& g) { g.mutable_tensors(1)->set_id(0); }),
              HasSubstr("id 0 means absent"));
  EXPECT_EQ(Changed([](auto& g) { g.mutable_nodes(0)->set_inputs(1, 77); }),
            "INVALID_ARGUMENT: node \"fc\" (MatMul): input tensor 77 does not exist");
  EXPECT_THAT(Changed([](auto& g) { g.mutable_nodes(1)->set_outputs(0, 4); }),
              HasSubstr("node \"#1\" (Mul): output tensor 4 is written twice"));
  EXPECT_THAT(Changed([](auto& g) { g.mutable_nodes(1)->set_outputs(0, 2); }),
              HasSubstr("output tensor 2 is not of kind intermediate"));
  EXPECT_THAT(Changed([](auto& g) { g.set_outputs(0, 6); }),
              HasSubstr("graph output 6 is no tensor of the graph"));
  EXPECT_THAT(Changed([](auto& g) { g.set_outputs(0, 0); }), HasSubstr("graph output 0"));
  EXPECT_THAT(Changed([](auto& g) { g.add_outputs(5); }),
              HasSubstr("graph output 5 is listed twice"));
  EXPECT_THAT(Changed([](auto& g) { g.clear_outputs(); }), HasSubstr("the graph has no output"));
  EXPECT_THAT(Changed([](auto& g) { g.mutable_nodes(2)->clear_outputs(); }),
              HasSubstr("has no output"));
}

TEST(ImportOpGraph, OrderIsRequired) {
  EXPECT_EQ(
      Changed([](auto& g) { g.mutable_nodes()->SwapElements(0, 1); }),
      "INVALID_ARGUMENT: node \"#0\" (Mul): input tensor 4 is not written by an earlier node");
}

TEST(ImportOpGraph, KindsAreChecked) {
  EXPECT_THAT(Changed([](auto& g) { g.mutable_tensors(0)->clear_kind(); }),
              HasSubstr("tensor 1 \"x\" has no kind"));
  EXPECT_THAT(Changed([](auto& g) { g.mutable_tensors(0)->clear_data_type(); }),
              HasSubstr("tensor 1 \"x\" has no data_type"));
  EXPECT_THAT(Changed([](auto& g) { g.mutable_tensors(1)->clear_name(); }),
              HasSubstr("is a weight without a name"));
  EXPECT_THAT(Changed([](auto& g) {
                *g.add_tensors() = g.tensors(1);
                g.mutable_tensors(5)->set_id(8);
              }),
              HasSubstr("is a second weight of this name"));
  EXPECT_THAT(Changed([](auto& g) { g.clear_inputs(); }), HasSubstr("is an input but not listed"));
  EXPECT_THAT(Changed([](auto& g) { g.add_inputs(1); }),
              HasSubstr("graph input 1 is listed twice"));
  EXPECT_THAT(Changed([](auto& g) { g.add_inputs(2); }),
              HasSubstr("graph input 2 is no tensor of kind input"));
  EXPECT_THAT(Changed([](auto& g) { g.mutable_tensors(0)->set_data("abcd"); }),
              HasSubstr("has data but is no constant"));
  EXPECT_THAT(
      Changed([](auto& g) { g.mutable_tensors(0)->set_data_type(static_cast<v1::DataType>(55)); }),
      HasSubstr("UNIMPLEMENTED: tensor 1 \"x\" has the unknown data_type 55"));
}

TEST(ImportOpGraph, DataMustFit) {
  EXPECT_EQ(Changed([](auto& g) { g.mutable_tensors(2)->set_data("abc"); }),
            "INVALID_ARGUMENT: tensor 3 \"two\": tensor f32[]: 3 bytes of data, expected 4");
  EXPECT_THAT(
      Changed([](auto& g) { g.mutable_tensors(2)->add_dims()->set_value(int64_t{1} << 40); }),
      HasSubstr("INVALID_ARGUMENT"));
  EXPECT_THAT(Changed([](auto& g) { g.mutable_tensors(2)->add_dims()->set_value(-1); }),
              HasSubstr("negative"));
  EXPECT_THAT(
      Changed([](auto& g) {
        g.mutable_tensors(2)->add_dims()->set_value(1 << 20);
        g.mutable_tensors(2)->set_data(std::string(4 << 20, '\0'));
      }),
      HasSubstr(
          "is a constant of 4194304 bytes, at most 2097152 are allowed; send it as a weight"));
}

TEST(ImportOpGraph, OpsAndAttributes) {
  EXPECT_THAT(Changed([](auto& g) { g.mutable_nodes(0)->set_op("Frobnicate"); }),
              AllOf(HasSubstr("UNIMPLEMENTED: node \"fc\" (Frobnicate)"),
                    HasSubstr("fusionctl capabilities --ops lists")));
  EXPECT_THAT(Changed([](auto& g) { g.mutable_nodes(2)->mutable_attributes(0)->set_name("axes"); }),
              HasSubstr("unknown attribute \"axes\""));
  EXPECT_THAT(Changed([](auto& g) { g.mutable_nodes(2)->mutable_attributes(0)->set_f(1); }),
              HasSubstr("attribute \"axis\" has another kind than expected"));
  EXPECT_THAT(Changed([](auto& g) { g.mutable_nodes(2)->mutable_attributes(0)->clear_value(); }),
              HasSubstr("attribute \"axis\" has no value"));
  EXPECT_THAT(
      Changed([](auto& g) { *g.mutable_nodes(2)->add_attributes() = g.nodes(2).attributes(0); }),
      HasSubstr("attribute \"axis\" is given twice"));
  EXPECT_THAT(Changed([](auto& g) {
                auto* t = g.mutable_nodes(2)->mutable_attributes(0)->mutable_tensor();
                t->set_data_type(v1::DATA_TYPE_F64);
                t->set_data("1234");
              }),
              HasSubstr("attribute \"axis\" tensor f64[]: 4 bytes of data, expected 8"));
}

TEST(ImportOpGraph, DeclaredTypesAreChecked) {
  EXPECT_EQ(
      Changed([](auto& g) { g.mutable_tensors(4)->mutable_dims(1)->set_value(7); }),
      "INVALID_ARGUMENT: tensor 5 \"y\" is declared f32[8,7], the nodes before it give f32[8,6]");
  EXPECT_THAT(Changed([](auto& g) { g.mutable_tensors(1)->mutable_dims(0)->set_value(5); }),
              HasSubstr("node \"fc\" (MatMul): dim 1 of input 0"));
}

constexpr const char* kSymbolic = R"(
  symbols { name: "batch" min: 1 max: 64 }
  symbols { name: "seq" min: 8 max: 512 multiple_of: 8 likely: 128 }
  tensors { id: 1 kind: KIND_INPUT data_type: DATA_TYPE_F32 name: "x"
            dims { terms { symbol: 0 } } dims { value: 1 terms { symbol: 1 coefficient: 2 } } }
  nodes { op: "Softmax" inputs: 1 outputs: 2 }
  inputs: 1
  outputs: 2
)";

TEST(ImportOpGraph, Symbols) {
  v1::OpGraph graph = Parse(kSymbolic);
  EXPECT_EQ(Import(graph), "Softmax f32[s0,2*s1 + 1]");
  EXPECT_EQ(Import(graph, {.dim_bindings = {{"seq", 16}}, .batch_size = 3}), "Softmax f32[3,33]");
  EXPECT_THAT(Import(graph, {.dim_bindings = {{"seq", 12}}}),
              HasSubstr("dim \"seq\" is bound to 12, declared with min 8"));
  EXPECT_THAT(Import(graph, {.dim_bindings = {{"seq", 1024}}}), HasSubstr("max 512"));
  EXPECT_THAT(Import(graph, {.batch_size = 65}),
              HasSubstr("batch_size 65 breaks the bounds of dim \"batch\""));
  EXPECT_THAT(Import(graph, {.dim_bindings = {{"s", 1}}}), HasSubstr("which is no dim"));
  auto built = ImportOpGraph(graph);
  EXPECT_EQ(built->symbols()[1].likely, (std::vector<int64_t>{128}));
  graph.mutable_symbols(1)->set_name("batch");
  EXPECT_THAT(Import(graph), HasSubstr("symbol \"batch\" is declared twice"));
  graph.mutable_symbols(1)->set_name("");
  EXPECT_THAT(Import(graph), HasSubstr("symbol 1 has no name"));
  graph = Parse(kSymbolic);
  graph.mutable_symbols(0)->set_max(-1);
  EXPECT_THAT(Import(graph), HasSubstr("symbol \"batch\": min 1, max -1"));
  graph = Parse(kSymbolic);
  graph.mutable_symbols(1)->set_likely(0, 100);
  EXPECT_THAT(Import(graph), HasSubstr("likely value 100 breaks its bounds"));
  graph = Parse(kSymbolic);
  graph.mutable_tensors(0)->mutable_dims(0)->mutable_terms(0)->set_symbol(2);
  EXPECT_THAT(Import(graph), HasSubstr("has a dim of symbol 2, the graph has 2"));
  graph = Parse(kSymbolic);
  graph.mutable_tensors(0)->mutable_dims(0)->mutable_terms(0)->set_coefficient(
      std::numeric_limits<int64_t>::min());
  EXPECT_THAT(Import(graph), HasSubstr("coefficient"));
}

TEST(ImportOpGraph, AbsentOptionalInputsAndUnwantedOutputs) {
  v1::OpGraph graph = Parse(R"(
    tensors { id: 1 kind: KIND_INPUT data_type: DATA_TYPE_F32 dims { value: 6 } }
    tensors { id: 2 kind: KIND_CONSTANT data_type: DATA_TYPE_F32 data: "\000\000\000\000" }
    nodes { op: "Clip" inputs: 1 inputs: 0 inputs: 2 outputs: 3 }
    nodes { op: "Split" inputs: 3 outputs: 0 outputs: 4 }
    inputs: 1 outputs: 4
  )");
  EXPECT_EQ(Import(graph), "Clip Split f32[3]");
}

TEST(ImportOpGraph, KeptOutputs) {
  v1::OpGraph graph = Parse(kMlp);
  EXPECT_EQ(Import(graph, {.keep_outputs = {"h", "y"}}),
            "MatMul Mul Softmax{axis=1} f32[8,6] f32[8,6]");
  EXPECT_THAT(Import(graph, {.keep_outputs = {"w"}}),
              HasSubstr("keep_outputs names \"w\", which no node"));
  graph.mutable_tensors(3)->set_name("y");
  EXPECT_THAT(Import(graph, {.keep_outputs = {"y"}}), HasSubstr("which several tensors are"));
}

}  // namespace
}  // namespace fusion
