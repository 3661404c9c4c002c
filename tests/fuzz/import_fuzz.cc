// libFuzzer target: bytes of a stranger through both importers, and whatever comes out through
// everything that reads a graph: verification, text form and back, canonical form, and the
// evaluator where it is cheap. Any crash, sanitizer report, slow or memory-hungry input is a bug,
// and so is an imported graph that does not verify.
//
// Byte 0: bit 0 says what follows (ONNX or OpGraph), the other bits choose import options and
// whether weights are references.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "core/graph/build/canonical.h"
#include "core/graph/build/text.h"
#include "core/graph/evaluate/evaluate.h"
#include "core/import/import.h"
#include "core/onnx/model_io.h"
#include "core/onnx/reference_weights.h"
#include "core/onnx/weight_source.h"
#include "tests/fuzz/proto_mutator.h"
#include "tests/fuzz/require.h"

namespace fusion {
namespace {

// Of byte 0.
constexpr char kByReference = '\x80';

ImportOptions OptionsFor(uint8_t choice) {
  ImportOptions options;
  if ((choice & 2) != 0) options.batch_size = 2;
  if ((choice & 4) != 0) options.dim_bindings = {{"N", 3}};
  if ((choice & 8) != 0) options.keep_outputs = {"y"};
  if ((choice & 16) != 0) options.inline_limit_bytes = int64_t{1} << 40;
  options.allow_fused = (choice & 32) != 0;
  options.short_repeats = (choice & 64) != 0;
  return options;
}

// Runs graphs that are small enough on zeros.
void EvaluateIfCheap(const Graph& graph) {
  constexpr double kPoints = 1e5;
  constexpr int64_t kElements = 1 << 16;
  std::vector<HostTensor> inputs;
  int64_t total = 0;
  for (const Tensor& t : graph.tensors()) {
    if (!t.type.shape.is_static()) return;
    total += NumElements(t.type.shape.ToDims());
    if (total > kElements) return;
  }
  auto program = BuildProgram(graph);
  if (!program.ok()) return;
  std::vector<Box> boxes;
  for (ValueId id : program->outputs)
    boxes.push_back(Box::Whole(program->value(id).type.shape.ToDims()));
  if (EvaluationPoints(*program, boxes) > kPoints) return;
  for (TensorId id : graph.inputs()) {
    inputs.emplace_back(graph.tensor(id).type.dtype, graph.tensor(id).type.shape.ToDims());
  }
  std::map<TensorId, HostTensor> weights;
  auto weight = [&](TensorId id) -> absl::StatusOr<const HostTensor*> {
    const TensorType& type = graph.tensor(id).type;
    return &weights.emplace(id, HostTensor(type.dtype, type.shape.ToDims())).first->second;
  };
  // A gather may be out of range; nothing else can go wrong.
  (void)Evaluate(graph, inputs, weight);
}

void UseGraph(const absl::StatusOr<Graph>& graph) {
  if (!graph.ok()) {
    RequireBlamesText(graph.status());
    return;
  }
  absl::Status verified = Verify(*graph);
  Require(verified.ok(), "an imported graph does not verify", verified);
  std::string text = ToString(*graph);
  if (text.size() < (1 << 20)) {
    auto parsed = ParseGraph(text);
    Require(parsed.ok(), "the text form does not parse", parsed.status());
    Require(ToString(*parsed) == text, "the text form does not read back");
  }
  auto canonical = Canonicalise(*graph);
  Require(canonical.ok(), "no canonical form", canonical.status());
  EvaluateIfCheap(*graph);
}

// `by_reference`: as a client sends it, weights by name.
void FuzzOnnx(std::string_view bytes, const ImportOptions& options, bool by_reference) {
  auto model = ParseModel(bytes);
  if (!model.ok()) return;
  if (by_reference) {
    auto request = ReferenceWeights(*model, {.directory = "/nonexistent"});
    if (request.ok()) UseGraph(ImportOnnx(*request, options));
    return;
  }
  UseGraph(ImportOnnx(*model, options));
  WeightSource source(*std::move(model), "/nonexistent");
  for (const std::string& name : source.names()) (void)source.Take(name);
}

void FuzzOpGraph(std::string_view bytes, const ImportOptions& options) {
  v1::OpGraph graph;
  if (!graph.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return;
  UseGraph(ImportOpGraph(graph, options));
}

// A graph to start from, as there is no corpus of our own message.
v1::OpGraph SeedGraph() {
  v1::OpGraph graph;
  auto tensor = [&graph](uint32_t id, v1::Tensor::Kind kind, std::initializer_list<int64_t> dims) {
    v1::Tensor* t = graph.add_tensors();
    t->set_id(id);
    t->set_kind(kind);
    t->set_name(StrCat("t", id));
    t->set_data_type(v1::DATA_TYPE_F32);
    for (int64_t d : dims) t->add_dims()->set_value(d);
    return t;
  };
  tensor(1, v1::Tensor::KIND_INPUT, {0, 4})->mutable_dims(0)->add_terms()->set_symbol(0);
  tensor(2, v1::Tensor::KIND_WEIGHT, {4, 6});
  tensor(3, v1::Tensor::KIND_CONSTANT, {1})->set_data(std::string("\0\0\0\100", 4));
  graph.add_symbols()->set_name("N");
  const char* ops[] = {"MatMul", "Mul", "Softmax", "Reshape", "Transpose", "Concat"};
  uint32_t next = 4;
  for (const char* op : ops) {
    v1::Node* node = graph.add_nodes();
    node->set_op(op);
    node->add_inputs(next == 4 ? 1 : next - 1);
    if (next < 6) node->add_inputs(next == 4 ? 2 : 3);
    node->add_outputs(next++);
  }
  v1::Attribute* shape = graph.mutable_nodes(3)->add_attributes();
  shape->set_name("shape");
  for (int64_t d : {0, 2, 3}) shape->mutable_ints()->add_values(d);
  v1::Attribute* axis = graph.mutable_nodes(5)->add_attributes();
  axis->set_name("axis");
  axis->set_i(0);
  graph.add_inputs(1);
  graph.add_outputs(next - 1);
  return graph;
}

// Fills a corpus directory from a directory of ONNX models.
void WriteModels(const std::string& corpus, const std::string& models) {
  int count = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(models)) {
    if (entry.path().filename() != "model.onnx" || entry.file_size() > (1 << 15)) continue;
    std::ifstream in(entry.path(), std::ios::binary);
    std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    WriteSeed(corpus, StrCat("onnx_", count), std::string(1, '\0') + bytes);
    WriteSeed(corpus, StrCat("onnx_by_reference_", count++), std::string(1, kByReference) + bytes);
  }
}

template <typename Message>
size_t MutateAs(Message message, uint8_t* data, size_t max_size, uint32_t seed) {
  MutateMessage(&message, seed, max_size - 1);
  std::string bytes = message.SerializeAsString();
  if (bytes.size() + 1 > max_size) return 0;
  std::copy(bytes.begin(), bytes.end(), data + 1);
  return bytes.size() + 1;
}

}  // namespace
}  // namespace fusion

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

// --seeds=DIR [MODELS]: seeds from a directory of ONNX models, or of our own message.
extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  const std::string corpus = fusion::SeedsDirectory(std::min(*argc, 2), *argv);
  if (corpus.empty()) return 0;
  if (*argc > 2) {
    fusion::WriteModels(corpus, (*argv)[2]);
  } else {
    const std::string graph = fusion::SeedGraph().SerializeAsString();
    fusion::WriteSeed(corpus, "op_graph", std::string(1, '\1') + graph);
  }
  std::exit(0);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  fusion::ImportOptions options = fusion::OptionsFor(data[0]);
  if ((data[0] & 1) == 0) {
    fusion::FuzzOnnx(bytes, options, (data[0] & fusion::kByReference) != 0);
  } else {
    fusion::FuzzOpGraph(bytes, options);
  }
  return 0;
}

// Mostly changes messages as messages; now and then as bytes.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned int seed) {
  if (size > 1 && seed % 16 != 0) {
    if (seed % 7 == 0) data[0] = static_cast<uint8_t>(data[0] ^ (2u << (seed / 7 % 7)));
    size_t mutated = 0;
    onnx::ModelProto model;
    fusion::v1::OpGraph graph;
    int length = static_cast<int>(size - 1);
    if ((data[0] & 1) == 0 && model.ParseFromArray(data + 1, length)) {
      mutated = fusion::MutateAs(std::move(model), data, max_size, seed);
    } else if ((data[0] & 1) == 1 && graph.ParseFromArray(data + 1, length)) {
      mutated = fusion::MutateAs(std::move(graph), data, max_size, seed);
    }
    if (mutated > 0) return mutated;
  }
  return LLVMFuzzerMutate(data, size, max_size);
}
