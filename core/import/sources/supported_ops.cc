#include "core/import/sources/supported_ops.h"

#include <algorithm>

#include "core/import/bodies/control_flow.h"
#include "core/import/bodies/sequences.h"
#include "core/op/op_def.h"

namespace fusion {

std::vector<SupportedOp> SupportedOps() {
  std::vector<SupportedOp> ops;
  int newest = 1;
  for (const OpDef* op : AllOps()) {
    newest = std::max(newest, op->max_opset);
    if (!op->internal) ops.push_back({op->name, op->min_opset, op->max_opset});
  }
  // A Constant becomes a tensor of the graph, a Dropout what it is at inference: an Identity; of
  // control flow its bodies are left.
  for (const char* name : {"Constant", "Dropout", "If", "Loop"}) ops.push_back({name, 1, newest});
  ops.push_back({"Scan", kFirstOpsetOfScan, newest});
  // Its bodies become nodes.
  ops.push_back({"ai.onnx.preview.FlexAttention", 1, newest});
  // Sequences and optionals whose elements are known when a model is imported.
  for (const CollectionOp& op : CollectionOps()) {
    ops.push_back({std::string(op.name), op.first_opset, newest});
  }
  std::sort(ops.begin(), ops.end(),
            [](const SupportedOp& a, const SupportedOp& b) { return a.name < b.name; });
  return ops;
}

}  // namespace fusion
