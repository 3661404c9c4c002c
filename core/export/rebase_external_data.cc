#include "core/export/rebase_external_data.h"

#include <filesystem>
#include <functional>
#include <vector>

#include "core/onnx/external_data.h"
#include "core/onnx/model_io.h"
#include "core/onnx/tensor_proto.h"

namespace fusion {
namespace {

namespace fs = std::filesystem;

using TensorVisit = std::function<void(onnx::TensorProto*)>;

// Every tensor of some nodes and of their bodies, which are nested no deeper than protobuf parses.
void VisitTensors(google::protobuf::RepeatedPtrField<onnx::NodeProto>* nodes,
                  const TensorVisit& visit);

void VisitTensors(onnx::GraphProto* graph, const TensorVisit& visit) {
  for (onnx::TensorProto& tensor : *graph->mutable_initializer()) visit(&tensor);
  for (onnx::SparseTensorProto& sparse : *graph->mutable_sparse_initializer()) {
    visit(sparse.mutable_values());
    visit(sparse.mutable_indices());
  }
  VisitTensors(graph->mutable_node(), visit);
}

void VisitTensors(google::protobuf::RepeatedPtrField<onnx::NodeProto>* nodes,
                  const TensorVisit& visit) {
  for (onnx::NodeProto& node : *nodes) {
    for (onnx::AttributeProto& attribute : *node.mutable_attribute()) {
      if (attribute.has_t()) visit(attribute.mutable_t());
      for (onnx::TensorProto& tensor : *attribute.mutable_tensors()) visit(&tensor);
      if (attribute.has_g()) VisitTensors(attribute.mutable_g(), visit);
      for (onnx::GraphProto& graph : *attribute.mutable_graphs()) VisitTensors(&graph, visit);
    }
  }
}

// The location of an external tensor that is a file; nullptr for others.
std::string* FileOf(onnx::TensorProto* tensor) {
  if (!IsExternal(*tensor)) return nullptr;
  for (onnx::StringStringEntryProto& entry : *tensor->mutable_external_data()) {
    if (entry.key() != "location") continue;
    return entry.value() == kClientWeightLocation ? nullptr : entry.mutable_value();
  }
  return nullptr;
}

}  // namespace

absl::Status RebaseExternalData(const std::string& from, const std::string& to,
                                onnx::ModelProto* model) {
  std::error_code error;
  const fs::path source = fs::canonical(from, error);
  if (error) return NotFound("directory ", Quote(from), ": ", error.message());
  const std::string directory = ModelDirectory(to);
  const fs::path target = fs::canonical(directory, error);
  if (error || !fs::is_directory(target, error)) {
    return NotFound("directory ", Quote(directory), ": ", error ? error.message() : "is none");
  }
  const fs::path written = target / fs::path(to).filename();
  absl::Status status;
  std::vector<std::pair<std::string*, std::string>> changes;
  auto visit = [&](onnx::TensorProto* tensor) {
    std::string* file = FileOf(tensor);
    if (file == nullptr || !status.ok()) return;
    const fs::path held = (source / *file).lexically_normal();
    if (held == written || fs::equivalent(held, written, error)) {
      status = InvalidArgument(Quote(to), " holds weights of the model: tensor ",
                               QuoteShort(tensor->name()), "; expected another file");
    }
    if (source == target || fs::path(*file).is_absolute()) return;
    std::string name = held.lexically_relative(target).generic_string();
    if (name.empty() || name == ".." || name.compare(0, 3, "../") == 0) {
      status = InvalidArgument(
          "tensor ", QuoteShort(tensor->name()), " lies in ", QuoteShort(held.string()),
          ", and a model may name files of its own directory and below only; expected a file in ",
          Quote(from), " or above it, got ", Quote(to));
    }
    changes.emplace_back(file, std::move(name));
  };
  VisitTensors(model->mutable_graph(), visit);
  for (onnx::FunctionProto& function : *model->mutable_functions()) {
    VisitTensors(function.mutable_node(), visit);
  }
  RETURN_IF_ERROR(status);
  for (auto& [file, name] : changes) *file = std::move(name);
  return absl::OkStatus();
}

}  // namespace fusion
