#pragma once

#include <string>
#include <vector>

namespace fusion {

/// An operator of ONNX that a model may contain.
struct SupportedOp {
  std::string name;
  int min_opset = 1;  // first and last version of ONNX's operator set whose meaning is known
  int max_opset = 1;
};

/// Every operator that import takes, by name: those of core/op/defs and those that import itself
/// replaces.
std::vector<SupportedOp> SupportedOps();

}  // namespace fusion
