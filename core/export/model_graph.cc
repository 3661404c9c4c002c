#include "core/export/model_graph.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <string>
#include <unordered_set>

#include "core/onnx/constant_node.h"

namespace fusion {
namespace {

using Names = std::unordered_set<std::string_view>;

void VisitBodies(const onnx::NodeProto& node,
                 const std::function<void(const onnx::GraphProto&)>& visit) {
  for (const onnx::AttributeProto& attribute : node.attribute()) {
    if (attribute.has_g()) visit(attribute.g());
    for (const onnx::GraphProto& graph : attribute.graphs()) visit(graph);
  }
}

// Names that a body uses and does not define. Bodies are nested no deeper than protobuf parses.
Names NamesFromOutside(const onnx::GraphProto& body) {
  Names used, defined;
  for (const auto& output : body.output()) used.insert(output.name());
  for (const auto& input : body.input()) defined.insert(input.name());
  for (const auto& tensor : body.initializer()) defined.insert(tensor.name());
  for (const onnx::NodeProto& node : body.node()) {
    used.insert(node.input().begin(), node.input().end());
    defined.insert(node.output().begin(), node.output().end());
    VisitBodies(node, [&](const onnx::GraphProto& inner) { used.merge(NamesFromOutside(inner)); });
  }
  for (std::string_view name : defined) used.erase(name);
  return used;
}

Names NamesRead(const onnx::NodeProto& node) {
  Names out(node.input().begin(), node.input().end());
  VisitBodies(node, [&](const onnx::GraphProto& body) { out.merge(NamesFromOutside(body)); });
  out.erase("");
  return out;
}

absl::Status AddWriters(const onnx::GraphProto& graph, ModelGraph* out) {
  for (int i = 0; i < graph.node_size(); ++i) {
    for (const std::string& name : graph.node(i).output()) {
      if (name.empty()) continue;
      ModelValue& value = out->values[name];
      const bool constants = value.writer >= 0 && IsConstantNode(graph.node(i)) &&
                             IsConstantNode(graph.node(value.writer));
      if (value.writer >= 0 && !constants) {
        return InvalidArgument("tensor ", QuoteShort(name), " is given by ",
                               DescribeProto(graph.node(value.writer)), " and by ",
                               DescribeProto(graph.node(i)));
      }
      value.writer = i;
    }
  }
  return absl::OkStatus();
}

// The least node that is ready, again and again: nodes that are in order stay so.
absl::Status SetOrder(const onnx::GraphProto& graph, NodeGraph* nodes) {
  std::vector<int> awaits(nodes->readers.size(), 0);
  for (const std::vector<int>& readers : nodes->readers) {
    for (int reader : readers) ++awaits[static_cast<size_t>(reader)];
  }
  std::priority_queue<int, std::vector<int>, std::greater<>> ready;
  auto push_if_ready = [&](int node) {
    if (awaits[static_cast<size_t>(node)] == 0) ready.push(node);
  };
  for (int i = 0; i < graph.node_size(); ++i) push_if_ready(i);
  while (!ready.empty()) {
    const int node = ready.top();
    ready.pop();
    nodes->order.push_back(node);
    for (int reader : nodes->readers[static_cast<size_t>(node)]) {
      --awaits[static_cast<size_t>(reader)];
      push_if_ready(reader);
    }
  }
  for (int i = 0; i < graph.node_size(); ++i) {
    if (awaits[static_cast<size_t>(i)] == 0) continue;
    return InvalidArgument(DescribeProto(graph.node(i)),
                           ": reads what follows from its own result");
  }
  return absl::OkStatus();
}

}  // namespace

bool HasBodies(const onnx::NodeProto& node) {
  bool found = false;
  VisitBodies(node, [&](const onnx::GraphProto&) { found = true; });
  return found;
}

std::string DescribeProto(const onnx::NodeProto& node) {
  const bool by_output = node.name().empty() && node.output_size() > 0;
  return StrCat("node ", QuoteShort(by_output ? node.output(0) : node.name()), " (",
                QuoteShort(node.op_type()), ")");
}

absl::StatusOr<ModelGraph> ReadModelGraph(const onnx::GraphProto& graph) {
  ModelGraph out;
  RETURN_IF_ERROR(AddWriters(graph, &out));
  const auto count = static_cast<size_t>(graph.node_size());
  out.nodes.readers.resize(count);
  out.nodes.free.assign(count, true);
  for (const auto& output : graph.output()) out.values[output.name()].is_output = true;
  for (int i = 0; i < graph.node_size(); ++i) {
    for (std::string_view name : NamesRead(graph.node(i))) {
      ModelValue& value = out.values[name];
      value.readers.push_back(i);
      if (value.writer >= 0) {
        out.nodes.readers[static_cast<size_t>(value.writer)].push_back(i);
      }
    }
  }
  for (std::vector<int>& readers : out.nodes.readers) {
    std::sort(readers.begin(), readers.end());
    readers.erase(std::unique(readers.begin(), readers.end()), readers.end());
  }
  RETURN_IF_ERROR(SetOrder(graph, &out.nodes));
  return out;
}

}  // namespace fusion
