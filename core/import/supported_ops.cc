#include "core/import/supported_ops.h"

#include <algorithm>

#include "core/op/op_def.h"

namespace fusion {

std::vector<SupportedOp> SupportedOps() {
  std::vector<SupportedOp> ops;
  int newest = 1;
  for (const OpDef* op : AllOps()) {
    newest = std::max(newest, op->max_opset);
    if (!op->internal) ops.push_back({op->name, op->min_opset, op->max_opset});
  }
  // A Constant becomes a tensor of the graph, a Dropout what it is at inference: an Identity.
  for (const char* name : {"Constant", "Dropout"}) ops.push_back({name, 1, newest});
  std::sort(ops.begin(), ops.end(),
            [](const SupportedOp& a, const SupportedOp& b) { return a.name < b.name; });
  return ops;
}

}  // namespace fusion
