// Every model of the generator through the importer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/graph/build/canonical.h"
#include "core/graph/build/text.h"
#include "core/graph/evaluate/evaluate.h"
#include "core/import/import.h"
#include "core/onnx/reference_weights.h"
#include "core/onnx/weight_source.h"
#include "core/tensor/compare.h"
#include "tests/models/models.h"

namespace fusion {
namespace {

absl::StatusOr<Graph> ImportStripped(const onnx::ModelProto& model,
                                     const ImportOptions& options = {}) {
  ASSIGN_OR_RETURN(onnx::ModelProto request, ReferenceWeights(model));
  return ImportOnnx(request, options);
}

// Nodes that compute nothing a run could change, and nodes that ask for a shape: what must have
// been folded.
std::string LeftOverArithmetic(const Graph& graph) {
  for (NodeId n = 0; n < static_cast<NodeId>(graph.nodes().size()); ++n) {
    bool fixed = true;
    for (TensorId id : graph.node(n).inputs) {
      fixed &= id == kNoTensor || graph.tensor(id).kind == TensorKind::kConstant;
    }
    const std::string& op = graph.node(n).def->name;
    if (fixed || op == "Shape" || op == "Size") return graph.Describe(n);
  }
  return "";
}

absl::StatusOr<std::vector<HostTensor>> Evaluated(const GeneratedModel& generated,
                                                  const ImportOptions& options,
                                                  uint64_t data_seed) {
  ASSIGN_OR_RETURN(Graph graph, ImportStripped(generated.model, options));
  WeightSource source(generated.model);
  std::map<TensorId, HostTensor> weights;
  auto weight = [&](TensorId id) -> absl::StatusOr<const HostTensor*> {
    ASSIGN_OR_RETURN(weights[id], source.Load(graph.tensor(id).name));
    return &weights[id];
  };
  return Evaluate(graph, GenerateInputs(generated.inputs, data_seed), weight, {.threads = 2});
}

TEST(GeneratedModels, ImportWithoutShapeArithmetic) {
  for (const ModelSpec& spec : AllModels()) {
    if (spec.name == "bert_12l") continue;  // bert_layer twelve times
    auto generated = GenerateModel(spec.name);
    ASSERT_TRUE(generated.ok()) << generated.status();
    auto graph = ImportStripped(generated->model);
    ASSERT_TRUE(graph.ok()) << spec.name << ": " << graph.status();
    EXPECT_TRUE(Verify(*graph).ok()) << spec.name << ": " << Verify(*graph);
    EXPECT_EQ(LeftOverArithmetic(*graph), "") << spec.name;
    EXPECT_EQ(ToString(*ParseGraph(ToString(*graph))), ToString(*graph)) << spec.name;
    EXPECT_EQ(graph->inputs().size(), generated->inputs.size());
  }
}

TEST(GeneratedModels, BertHasItsFiftyFiveNodes) {
  auto bert = GenerateModel("bert_layer");
  ASSERT_TRUE(bert.ok());
  EXPECT_EQ(bert->model.graph().node_size(), 55);
  auto graph = ImportStripped(bert->model);
  ASSERT_TRUE(graph.ok());
  EXPECT_EQ(graph->nodes().size(), 55u);
  int weights = 0;
  for (const Tensor& t : graph->tensors()) weights += t.kind == TensorKind::kWeight ? 1 : 0;
  EXPECT_EQ(weights, 16);
}

TEST(GeneratedModels, SharedLayersHaveOneSetOfWeights) {
  auto albert = GenerateModel("albert_12l");
  ASSERT_TRUE(albert.ok());
  auto graph = ImportStripped(albert->model);
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_GT(graph->nodes().size(), 600u);
  int weights = 0;
  for (const Tensor& t : graph->tensors()) weights += t.kind == TensorKind::kWeight ? 1 : 0;
  EXPECT_EQ(weights, 16);
}

TEST(GeneratedModels, TwelveLayersAreASmallRequest) {
  ModelParams params = FindModel("bert_12l")->defaults;
  auto bert = GenerateModel(*FindModel("bert_12l"), params);
  ASSERT_TRUE(bert.ok());
  auto request = ReferenceWeights(bert->model);
  ASSERT_TRUE(request.ok());
  EXPECT_LT(request->ByteSizeLong(), 100000u);
  auto graph = ImportOnnx(*request);
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(graph->nodes().size(), 605u);
}

TEST(GeneratedModels, SeedsChangeWeightsAndNothingElse) {
  const ModelSpec* spec = FindModel("bert_tiny");
  ModelParams params = spec->defaults;
  auto first = GenerateModel(*spec, params);
  auto again = GenerateModel(*spec, params);
  params.seed = 2;
  auto second = GenerateModel(*spec, params);
  ASSERT_TRUE(first.ok() && again.ok() && second.ok());
  EXPECT_EQ(first->model.SerializeAsString(), again->model.SerializeAsString());
  EXPECT_NE(first->model.SerializeAsString(), second->model.SerializeAsString());
  // With weights stripped nothing of them is left: not in the request, not in what a plan is made
  // from.
  auto a = ImportStripped(first->model);
  auto b = ImportStripped(second->model);
  EXPECT_EQ(Canonicalise(*a)->key_text, Canonicalise(*b)->key_text);
  // Nor does it matter who stripped them.
  EXPECT_EQ(Canonicalise(*ImportOnnx(second->model))->key_text, Canonicalise(*a)->key_text);
  EXPECT_NE(GenerateInputs(first->inputs, 1)[0], GenerateInputs(first->inputs, 2)[0]);
}

TEST(GeneratedModels, DynamicEqualsStatic) {
  for (const char* name : {"bert_tiny", "llama_small", "llama_small_decode"}) {
    const ModelSpec* spec = FindModel(name);
    ModelParams params = spec->defaults;
    params.batch = 2;
    params.seq = params.seq == 1 ? 1 : 10;
    params.past = params.past > 0 ? 6 : 0;
    params.hidden = 64;
    params.heads = 4;
    params.kv_heads = params.kv_heads == spec->defaults.heads ? 4 : 2;
    params.ff = 96;
    auto fixed = GenerateModel(*spec, params);
    params.dynamic = true;
    auto dynamic = GenerateModel(*spec, params);
    ASSERT_TRUE(fixed.ok() && dynamic.ok());
    ImportOptions options{.dim_bindings = {{"seq", params.seq}}, .batch_size = 2};
    if (params.past > 0) options.dim_bindings["past"] = params.past;
    auto graph = ImportStripped(dynamic->model, options);
    ASSERT_TRUE(graph.ok()) << name << ": " << graph.status();
    EXPECT_EQ(LeftOverArithmetic(*graph), "");
    EXPECT_EQ(graph->nodes().size(), ImportStripped(fixed->model)->nodes().size());
    EXPECT_EQ(Canonicalise(*graph)->key_text, Canonicalise(*ImportStripped(fixed->model))->key_text)
        << name;
    // Unbound, the shape arithmetic cannot vanish: that is said, with the dim.
    auto open = ImportStripped(dynamic->model);
    EXPECT_EQ(open.status().code(), absl::StatusCode::kUnimplemented);
    EXPECT_THAT(std::string(Message(open.status())),
                ::testing::HasSubstr("dim \"batch\" is symbolic"));
  }
}

TEST(GeneratedModels, RunToFiniteNumbers) {
  struct Case {
    const char* name;
    ModelParams params;
  };
  auto small = [](const char* name) {
    ModelParams p = FindModel(name)->defaults;
    p.seq = std::min<int64_t>(p.seq, 12);
    p.past = std::min<int64_t>(p.past, 7);
    p.hidden = 48;
    p.kv_heads = p.kv_heads == p.heads ? 4 : 2;
    p.heads = 4;
    p.ff = std::min<int64_t>(p.ff, 80);
    p.rows = std::min<int64_t>(p.rows, 9);
    p.cols = std::min<int64_t>(p.cols, 33);
    p.source = 5;
    p.channels = 6;
    p.image = p.image >= 100 ? 32 : 9;
    return p;
  };
  for (const ModelSpec& spec : AllModels()) {
    auto generated = GenerateModel(spec, small(spec.name.c_str()));
    ASSERT_TRUE(generated.ok()) << generated.status();
    auto outputs = Evaluated(*generated, {}, 3);
    ASSERT_TRUE(outputs.ok()) << spec.name << ": " << outputs.status();
    for (const HostTensor& out : *outputs) {
      double largest = 0;
      for (int64_t i = 0; i < out.elements(); ++i) {
        ASSERT_TRUE(std::isfinite(out.GetDouble(i))) << spec.name;
        largest = std::max(largest, std::fabs(out.GetDouble(i)));
      }
      EXPECT_GT(largest, 0) << spec.name;
    }
  }
}

TEST(GeneratedModels, BadParametersAreRefused) {
  ModelParams params = FindModel("bert_layer")->defaults;
  params.heads = 7;
  EXPECT_EQ(GenerateModel(*FindModel("bert_layer"), params).status().code(),
            absl::StatusCode::kInvalidArgument);
  ModelParams vit = FindModel("vit_patch")->defaults;
  vit.image = 15;
  EXPECT_EQ(GenerateModel(*FindModel("vit_patch"), vit).status().code(),
            absl::StatusCode::kInvalidArgument);
  params.heads = 0;
  EXPECT_FALSE(GenerateModel(*FindModel("bert_layer"), params).ok());
  EXPECT_EQ(GenerateModel("bert").status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace fusion
