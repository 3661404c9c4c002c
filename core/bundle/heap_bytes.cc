#include "core/bundle/heap_bytes.h"

namespace fusion {
namespace {

template <typename T>
int64_t ArrayBytes(const std::vector<T>& values) {
  return static_cast<int64_t>(values.capacity() * sizeof(T)) + kAllocationBytes;
}

int64_t BytesOf(const std::vector<RuleStep>& steps) {
  int64_t bytes = ArrayBytes(steps);
  for (const RuleStep& step : steps) {
    bytes += HeapBytes(step.level) + HeapBytes(step.name) + HeapBytes(step.absent_word);
  }
  return bytes;
}

int64_t BytesOf(const Rule& rule) {
  int64_t bytes = HeapBytes(rule.name) + ArrayBytes(rule.nodes) + ArrayBytes(rule.edges) +
                  ArrayBytes(rule.inputs) + ArrayBytes(rule.when);
  for (const RuleNode& node : rule.nodes) bytes += HeapBytes(node.id) + HeapBytes(node.ops);
  for (const RuleEdge& edge : rule.edges) bytes += HeapBytes(edge.through);
  for (const RuleInput& input : rule.inputs) bytes += HeapBytes(input.nodes);
  for (const RuleCondition& condition : rule.when) {
    bytes += HeapBytes(condition.text) + BytesOf(condition.left) + BytesOf(condition.right) +
             HeapBytes(condition.word);
  }
  return bytes;
}

}  // namespace

int64_t HeapBytes(const PlanOptions& options) {
  constexpr int64_t kMapNodeBytes = 128;  // with its key and value
  int64_t bytes = HeapBytes(options.keep_outputs) + HeapBytes(options.custom_ops) +
                  HeapBytes(options.tenant) + ArrayBytes(options.shared_buffers) +
                  ArrayBytes(options.bound_strides) + ArrayBytes(options.rules);
  for (const auto& [name, value] : options.dim_bindings) bytes += kMapNodeBytes + HeapBytes(name);
  for (const auto& [name, range] : options.dim_ranges) bytes += kMapNodeBytes + HeapBytes(name);
  for (const SharedNames& names : options.shared_buffers) {
    bytes += HeapBytes(names.input) + HeapBytes(names.output);
  }
  for (const NamedStrides& bound : options.bound_strides) {
    bytes += HeapBytes(bound.tensor) + HeapBytes(bound.strides);
  }
  for (const Rule& rule : options.rules) bytes += BytesOf(rule);
  return bytes;
}

}  // namespace fusion
