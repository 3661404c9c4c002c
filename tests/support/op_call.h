#pragma once

#include <string>
#include <vector>

#include "core/op/derive.h"

namespace fusion {

/// A use of an op, which must exist, on inputs of these types.
inline OpCall Call(std::string_view op, std::vector<TensorType> inputs, AttrMap attrs = {},
                   int outputs = 1) {
  std::vector<std::optional<TensorType>> types(inputs.begin(), inputs.end());
  return OpCall(*FindOp(op), std::move(types), std::move(attrs), outputs);
}

/// The types of its outputs, or why it has none.
inline std::string TypeOf(const OpCall& call) {
  auto types = InferOutputTypes(call);
  return types.ok() ? StrJoin(*types, " ", [](const TensorType& t) { return t.ToString(); })
                    : std::string(Message(types.status()));
}

}  // namespace fusion
