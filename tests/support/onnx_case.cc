#include "tests/support/onnx_case.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <set>

#include "core/import/sources/supported_ops.h"
#include "core/onnx/constant_node.h"
#include "core/onnx/model_io.h"

namespace fusion {

absl::StatusOr<OnnxCase> LoadOnnxCase(const std::string& directory) {
  ASSIGN_OR_RETURN(onnx::ModelProto model, LoadModel(directory + "/model.onnx"));
  return OnnxCase{directory, std::move(model)};
}

std::vector<std::string> FindOnnxCases(const std::string& directory) {
  std::vector<std::string> out;
  std::error_code error;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory, error)) {
    if (entry.path().filename() == "model.onnx") out.push_back(entry.path().parent_path().string());
  }
  std::sort(out.begin(), out.end());
  return out;
}

namespace {

// Every node of the model, those of bodies and functions too.
void VisitNodes(const onnx::ModelProto& model,
                const std::function<void(const onnx::NodeProto&)>& visit) {
  std::vector<const onnx::GraphProto*> graphs = {&model.graph()};
  auto look = [&](const onnx::NodeProto& node) {
    visit(node);
    for (const auto& attribute : node.attribute()) {
      if (attribute.has_g()) graphs.push_back(&attribute.g());
    }
  };
  for (const onnx::FunctionProto& f : model.functions()) {
    for (const onnx::NodeProto& node : f.node()) look(node);
  }
  while (!graphs.empty()) {
    const onnx::GraphProto* graph = graphs.back();
    graphs.pop_back();
    for (const onnx::NodeProto& node : graph->node()) look(node);
  }
}

std::string BesideTensors(const onnx::TypeProto& type) {
  switch (type.value_case()) {
    case onnx::TypeProto::kSequenceType:
      return "sequence";
    case onnx::TypeProto::kOptionalType:
      return "optional";
    case onnx::TypeProto::kMapType:
      return "map";
    case onnx::TypeProto::kSparseTensorType:
      return "sparse";
    case onnx::TypeProto::kTensorType:
      return type.tensor_type().elem_type() == onnx::TensorProto::STRING ? "string" : "";
    default:
      return "";
  }
}

std::string BesideTensors(const onnx::NodeProto& node) {
  const std::string& op = node.op_type();
  static const std::set<std::string> kRandom = {"RandomNormal",  "RandomNormalLike",
                                                "RandomUniform", "RandomUniformLike",
                                                "Multinomial",   "Bernoulli"};
  if (kRandom.count(op) != 0) return "random";
  if (node.domain().find("training") != std::string::npos) return "training";
  for (const auto& attribute : node.attribute()) {
    if (attribute.name() == "training_mode" && attribute.i() != 0) return "training";
  }
  for (const auto& attribute : node.attribute()) {
    if (attribute.has_t() && attribute.t().data_type() == onnx::TensorProto::STRING) {
      return "string";
    }
  }
  return "";
}

}  // namespace

std::vector<std::string> UnsupportedOps(const onnx::ModelProto& model) {
  std::set<std::pair<std::string, std::string>> functions;
  for (const onnx::FunctionProto& f : model.functions()) functions.emplace(f.domain(), f.name());
  const std::vector<SupportedOp> supported = SupportedOps();
  std::set<std::string> out;
  VisitNodes(model, [&](const onnx::NodeProto& node) {
    const std::string& op = node.op_type();
    const std::string name = IsDefaultDomain(node.domain()) ? op : node.domain() + "." + op;
    const bool known = functions.count({node.domain(), op}) != 0 ||
                       std::any_of(supported.begin(), supported.end(),
                                   [&](const SupportedOp& s) { return s.name == name; });
    if (!known) out.insert(name);
  });
  return {out.begin(), out.end()};
}

std::string BesideTensors(const onnx::ModelProto& model) {
  std::string out;
  for (const auto* values : {&model.graph().input(), &model.graph().output()}) {
    for (const onnx::ValueInfoProto& value : *values) {
      if (out.empty()) out = BesideTensors(value.type());
    }
  }
  VisitNodes(model, [&](const onnx::NodeProto& node) {
    if (out.empty()) out = BesideTensors(node);
  });
  return out;
}

void FixParameterInputs(const TestDataSet& data, onnx::ModelProto* model) {
  onnx::GraphProto* graph = model->mutable_graph();
  std::set<std::string> parameters = {""};
  for (const onnx::NodeProto& node : graph->node()) {
    const OpDef* def = FindOp(node.op_type());
    if (node.op_type() == "Dropout" && node.input_size() > 1) {
      for (int i = 1; i < node.input_size(); ++i) parameters.insert(node.input(i));
    }
    if (node.op_type() == "Loop") {
      for (int i = 0; i < std::min(2, node.input_size()); ++i) parameters.insert(node.input(i));
    }
    if (def == nullptr) continue;
    for (const ParamSpec& param : def->params) {
      if (param.onnx_input >= 0 && param.onnx_input < node.input_size()) {
        parameters.insert(node.input(param.onnx_input));
      }
    }
  }
  // What a parameter is computed from must be known as well, values whose shape is all that matters
  // aside.
  for (int i = graph->node_size() - 1; i >= 0; --i) {
    const onnx::NodeProto& node = graph->node(i);
    bool by_shape = node.op_type() == "Shape" || node.op_type() == "Size";
    bool feeds = std::any_of(node.output().begin(), node.output().end(),
                             [&](const std::string& name) { return parameters.count(name) != 0; });
    if (!feeds || by_shape) continue;
    for (const std::string& input : node.input()) parameters.insert(input);
  }
  for (int i = 0; i < graph->input_size(); ++i) {
    auto at = static_cast<size_t>(i);
    if (parameters.count(graph->input(i).name()) == 0 || at >= data.inputs.size()) continue;
    *graph->add_initializer() = MakeTensorProto(data.inputs[at].value, graph->input(i).name());
  }
}

std::map<std::string, int64_t> BindingsFor(const onnx::ModelProto& model, const TestDataSet& data) {
  std::map<std::string, int64_t> out;
  const onnx::GraphProto& graph = model.graph();
  for (int i = 0; i < graph.input_size(); ++i) {
    auto at = static_cast<size_t>(i);
    if (at >= data.inputs.size()) break;
    const onnx::TensorShapeProto& shape = graph.input(i).type().tensor_type().shape();
    for (int d = 0; d < shape.dim_size(); ++d) {
      auto axis = static_cast<size_t>(d);
      if (shape.dim(d).has_dim_value() || axis >= data.inputs[at].value.dims().size()) continue;
      std::string name = shape.dim(d).dim_param();
      if (name.empty()) name = StrCat(graph.input(i).name(), "[", d, "]");
      out.emplace(name, data.inputs[at].value.dims()[axis]);
    }
  }
  return out;
}

HostTensor AsDeclared(const HostTensor& data, DType type) {
  if (type != DType::kBF16 || data.dtype() != DType::kU16) return data;
  return *HostTensor::FromBytes(type, data.dims(), data.byte_view());
}

absl::StatusOr<std::vector<HostTensor>> OrderInputs(const Graph& graph,
                                                    const onnx::ModelProto& model,
                                                    const TestDataSet& data) {
  std::vector<HostTensor> out;
  // Files from before IR version 4 list their initializers as inputs, which have no data here.
  std::set<std::string> initializers;
  bool all = static_cast<size_t>(model.graph().input_size()) <= data.inputs.size();
  for (const onnx::TensorProto& t : model.graph().initializer()) {
    if (!all) initializers.insert(t.name());
  }
  for (TensorId id : graph.inputs()) {
    const std::string& name = graph.tensor(id).name;
    int position = -1;
    int next = 0;
    for (const onnx::ValueInfoProto& input : model.graph().input()) {
      if (initializers.count(input.name()) != 0) continue;
      if (input.name() == name) position = next;
      ++next;
    }
    if (position < 0 || static_cast<size_t>(position) >= data.inputs.size()) {
      return InvalidArgument("no data for input ", Quote(name));
    }
    out.push_back(
        AsDeclared(data.inputs[static_cast<size_t>(position)].value, graph.tensor(id).type.dtype));
  }
  return out;
}

}  // namespace fusion
