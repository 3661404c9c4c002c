#include "client/fallback/op_by_op_model.h"

#include <algorithm>
#include <set>

#include "core/graph/evaluate/evaluate.h"
#include "core/import/import.h"
#include "core/onnx/open_dim.h"

namespace fusion {

absl::StatusOr<std::unique_ptr<OpByOpModel>> OpByOpModel::Load(onnx::ModelProto bare,
                                                               WeightReader weights,
                                                               const OpByOpOptions& options) {
  std::unique_ptr<OpByOpModel> out(new OpByOpModel);
  out->bare_ = std::move(bare);
  out->weights_ = std::move(weights);
  out->options_ = options;
  ASSIGN_OR_RETURN(out->custom_ops_, CustomOps::Parse(options.plan.custom_ops));
  const onnx::GraphProto& graph = out->bare_.graph();
  std::set<std::string_view> constants;
  for (const onnx::TensorProto& tensor : graph.initializer()) constants.insert(tensor.name());
  for (const onnx::ValueInfoProto& input : graph.input()) {
    if (constants.contains(input.name())) continue;
    out->declared_.push_back(&input);
    out->inputs_.push_back(input.name());
  }
  for (const onnx::ValueInfoProto& output : graph.output()) out->outputs_.push_back(output.name());
  for (const std::string& name : options.plan.keep_outputs) {
    const std::vector<std::string>& all = out->outputs_;
    if (std::find(all.begin(), all.end(), name) == all.end()) out->outputs_.push_back(name);
  }
  // Reports errors of the model here, not in the first run.
  std::map<std::string, int64_t> dims = options.plan.dim_bindings;
  for (const auto& [name, range] : options.plan.dim_ranges) {
    dims.emplace(name, range.likely > 0 ? range.likely : range.most);
  }
  ASSIGN_OR_RETURN(Graph imported, out->Import(dims));
  MutexLock lock(&out->mutex_);
  out->dims_ = std::move(dims);
  out->graph_ = std::make_shared<const Graph>(std::move(imported));
  return out;
}

absl::StatusOr<Graph> OpByOpModel::Import(const std::map<std::string, int64_t>& dims) const {
  return ImportOnnx(bare_, {.dim_bindings = dims,
                            .batch_size = options_.plan.hints.batch_size,
                            .keep_outputs = options_.plan.keep_outputs,
                            .custom_ops = &custom_ops_,
                            .allow_fused = options_.allow_fused});
}

// The graph for the dims of these inputs.
absl::StatusOr<std::shared_ptr<const Graph>> OpByOpModel::GraphFor(
    const std::vector<HostTensor>& inputs) const {
  if (inputs.size() != declared_.size()) {
    return InvalidArgument(inputs.size(), " inputs given, the model has ", declared_.size());
  }
  std::map<std::string, int64_t> dims = options_.plan.dim_bindings;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const onnx::ValueInfoProto& declared = *declared_[i];
    const int rank = declared.type().tensor_type().shape().dim_size();
    for (int d = 0; d < std::min(rank, static_cast<int>(inputs[i].dims().size())); ++d) {
      const std::optional<std::string> name = OpenDimName(declared, d);
      const bool batch = d == 0 && options_.plan.hints.batch_size > 0;
      if (name && !batch) dims.emplace(*name, inputs[i].dims()[static_cast<size_t>(d)]);
    }
  }
  {
    MutexLock lock(&mutex_);
    if (dims == dims_) return graph_;
  }
  ASSIGN_OR_RETURN(Graph imported, Import(dims));
  auto graph = std::make_shared<const Graph>(std::move(imported));
  MutexLock lock(&mutex_);
  dims_ = std::move(dims);
  graph_ = graph;
  return graph;
}

absl::StatusOr<const HostTensor*> OpByOpModel::Weight(const std::string& name) const {
  MutexLock lock(&mutex_);
  auto it = held_.find(name);
  if (it == held_.end()) {
    ASSIGN_OR_RETURN(HostTensor bytes, weights_(name));
    it = held_.emplace(name, std::move(bytes)).first;
  }
  return &it->second;
}

absl::StatusOr<std::vector<HostTensor>> OpByOpModel::Run(
    const std::vector<HostTensor>& inputs) const {
  ASSIGN_OR_RETURN(std::shared_ptr<const Graph> graph, GraphFor(inputs));
  auto weight = [&](TensorId id) { return Weight(graph->tensor(id).name); };
  return Evaluate(*graph, inputs, weight, {.threads = options_.threads});
}

}  // namespace fusion
