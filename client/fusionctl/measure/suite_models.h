#pragma once

#include <onnx/onnx_pb.h>

#include <string>
#include <vector>

#include "core/bundle/options.h"

namespace fusion {

/// A model that `fusionctl bench --suite` measures.
struct SuiteModel {
  std::string name;  // for display
  onnx::ModelProto model;
  Numerics numerics = Numerics::kFp32Accumulate;
};

/// Six small models that benefit from fusion in different ways: causal attention; a masked softmax;
/// bias, residual and LayerNorm; a chain of element-wise operators; an encoder layer; one step of a
/// decoder. Their weights are pseudo-random: every call returns the same models.
std::vector<SuiteModel> SuiteModels();

}  // namespace fusion
