#include "core/onnx/weight_source.h"

#include "core/onnx/constant_node.h"
#include "core/onnx/external_data.h"

namespace fusion {
namespace {

// The tensor of a Constant node with attribute `value`, else nullptr.
onnx::TensorProto* TensorOf(onnx::NodeProto* node) {
  if (node->attribute_size() != 1 || !node->attribute(0).has_t()) return nullptr;
  return node->mutable_attribute(0)->mutable_t();
}

void FreeBytes(onnx::TensorProto* tensor) {
  // Clearing keeps a string's or a list's memory; replacing the message frees it.
  onnx::TensorProto bare;
  bare.set_name(tensor->name());
  bare.set_data_type(tensor->data_type());
  *bare.mutable_dims() = tensor->dims();
  tensor->Swap(&bare);
}

}  // namespace

WeightSource::WeightSource(onnx::ModelProto model, std::string directory)
    : model_(std::move(model)), directory_(std::move(directory)) {
  onnx::GraphProto* graph = model_.mutable_graph();
  auto add = [this](const std::string& name, Entry entry) {
    bool added = entries_.insert_or_assign(name, entry).second;
    if (added) names_.push_back(name);
  };
  for (onnx::TensorProto& tensor : *graph->mutable_initializer()) {
    add(tensor.name(), {.initializer = &tensor});
  }
  for (onnx::NodeProto& node : *graph->mutable_node()) {
    if (IsConstantNode(node) && node.output_size() > 0) add(node.output(0), {.node = &node});
  }
}

absl::StatusOr<const WeightSource::Entry*> WeightSource::Find(const std::string& name) const {
  auto it = entries_.find(name);
  if (it == entries_.end()) {
    return NotFound("weight ", Quote(name), ": the model has no constant of this name");
  }
  if (it->second.taken) {
    return FailedPrecondition("weight ", Quote(name), ": its bytes were taken before");
  }
  return &it->second;
}

absl::StatusOr<HostTensor> WeightSource::Load(const std::string& name) const {
  ASSIGN_OR_RETURN(const Entry* entry, Find(name));
  std::string what = StrCat("weight ", Quote(name));
  if (entry->initializer != nullptr) return ReadTensor(*entry->initializer, directory_, what);
  if (const onnx::TensorProto* tensor = TensorOf(entry->node)) {
    return ReadTensor(*tensor, directory_, what);
  }
  ASSIGN_OR_RETURN(onnx::TensorProto list, ConstantNodeTensor(*entry->node, what));
  return ReadTensor(list, directory_, what);
}

absl::StatusOr<HostTensor> WeightSource::Take(const std::string& name) {
  ASSIGN_OR_RETURN(HostTensor out, Load(name));
  Entry& entry = entries_[name];
  onnx::TensorProto* tensor =
      entry.initializer != nullptr ? entry.initializer : TensorOf(entry.node);
  if (tensor != nullptr && !IsExternal(*tensor)) {
    FreeBytes(tensor);
    entry.taken = true;
  }
  return out;
}

}  // namespace fusion
