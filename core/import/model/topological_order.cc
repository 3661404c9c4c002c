#include "core/import/model/topological_order.h"

#include <algorithm>
#include <functional>
#include <queue>

#include "core/graph/graph.h"

namespace fusion {
namespace {

// The node that gives a value, or -1.
int ProducerOf(const FlatModel& model, ValueRef value) {
  if (value == kNoValueRef) return -1;
  const FlatValue& v = model.values[static_cast<size_t>(value)];
  return v.kind == FlatValue::kNode ? v.index : -1;
}

const FlatNode& NodeAt(const FlatModel& model, int node) {
  return model.nodes[static_cast<size_t>(node)];
}

absl::Status CheckInputs(const FlatModel& model, int node) {
  const FlatNode& n = NodeAt(model, node);
  for (size_t i = 0; i < n.inputs.size(); ++i) {
    if (n.inputs[i] == kNoValueRef) continue;
    const FlatValue& v = model.values[static_cast<size_t>(n.inputs[i])];
    if (v.kind != FlatValue::kUndefined) continue;
    return InvalidArgument(DescribeNode(n.name, n.op), ": input ", i, " ", QuoteShort(v.name),
                           " is given by no node, input or initializer");
  }
  return absl::OkStatus();
}

// Marks the nodes that `wanted` needs.
absl::StatusOr<std::vector<bool>> LiveNodes(const FlatModel& model,
                                            const std::vector<ValueRef>& wanted) {
  std::vector<bool> live(model.nodes.size(), false);
  std::vector<int> open;
  auto want = [&](ValueRef value) {
    int producer = ProducerOf(model, value);
    if (producer < 0 || live[static_cast<size_t>(producer)]) return;
    live[static_cast<size_t>(producer)] = true;
    open.push_back(producer);
  };
  for (ValueRef value : wanted) want(value);
  while (!open.empty()) {
    int node = open.back();
    open.pop_back();
    RETURN_IF_ERROR(CheckInputs(model, node));
    for (ValueRef value : NodeAt(model, node).inputs) want(value);
  }
  return live;
}

// Among nodes that all wait for each other, walking from input to input must come back somewhere.
absl::Status DescribeCycle(const FlatModel& model, const std::vector<int>& waiting) {
  auto start = std::find_if(waiting.begin(), waiting.end(), [](int n) { return n > 0; });
  std::vector<int> path;
  std::vector<int> position(model.nodes.size(), -1);
  int at = static_cast<int>(start - waiting.begin());
  while (position[static_cast<size_t>(at)] < 0) {
    position[static_cast<size_t>(at)] = static_cast<int>(path.size());
    path.push_back(at);
    for (ValueRef value : NodeAt(model, at).inputs) {
      int producer = ProducerOf(model, value);
      if (producer >= 0 && waiting[static_cast<size_t>(producer)] > 0) {
        at = producer;
        break;
      }
    }
  }
  path.erase(path.begin(), path.begin() + position[static_cast<size_t>(at)]);
  std::reverse(path.begin(), path.end());  // as the data flows
  constexpr size_t kShown = 8;
  size_t length = path.size();
  path.resize(std::min(length, kShown));
  return InvalidArgument(
      "the graph has a cycle of ", length, " nodes: ",
      StrJoin(path, " -> ",
              [&](int n) { return DescribeNode(NodeAt(model, n).name, NodeAt(model, n).op); }),
      length > kShown ? " -> ..." : "");
}

}  // namespace

absl::StatusOr<std::vector<int>> TopologicalOrder(const FlatModel& model,
                                                  const std::vector<ValueRef>& wanted) {
  ASSIGN_OR_RETURN(std::vector<bool> live, LiveNodes(model, wanted));
  std::vector<int> waiting(model.nodes.size(), 0);  // number of inputs not given yet
  std::vector<std::vector<int>> readers(model.nodes.size());
  std::priority_queue<int, std::vector<int>, std::greater<>> ready;
  size_t count = 0;
  for (size_t n = 0; n < model.nodes.size(); ++n) {
    if (!live[n]) continue;
    ++count;
    for (ValueRef value : model.nodes[n].inputs) {
      int producer = ProducerOf(model, value);
      if (producer < 0) continue;
      ++waiting[n];
      readers[static_cast<size_t>(producer)].push_back(static_cast<int>(n));
    }
    if (waiting[n] == 0) ready.push(static_cast<int>(n));
  }
  std::vector<int> order;
  while (!ready.empty()) {
    int node = ready.top();
    ready.pop();
    order.push_back(node);
    for (int reader : readers[static_cast<size_t>(node)]) {
      if (--waiting[static_cast<size_t>(reader)] == 0) ready.push(reader);
    }
  }
  if (order.size() != count) return DescribeCycle(model, waiting);
  return order;
}

}  // namespace fusion
