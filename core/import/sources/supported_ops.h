#pragma once

#include <string>
#include <vector>

namespace fusion {

/// An ONNX operator that import accepts.
struct SupportedOp {
  std::string name;
  int min_opset = 1;  // first and last supported version of ONNX's operator set
  int max_opset = 1;
};

/// All of them, by name: the ops of core/op/defs and those that import itself replaces.
std::vector<SupportedOp> SupportedOps();

}  // namespace fusion
