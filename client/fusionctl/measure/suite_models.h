#pragma once

#include <onnx/onnx_pb.h>

#include <string>
#include <vector>

#include "core/bundle/options.h"

namespace fusion {

/// A model that `fusionctl bench --suite` measures.
struct SuiteModel {
  std::string name;  // for people
  onnx::ModelProto model;
  Numerics numerics = Numerics::kFp32Accumulate;
};

/// Six small models, each of one kind that fusion changes: causal attention, a masked softmax,
/// bias, residual and LayerNorm, a chain of element-wise operators, an encoder layer and one step
/// of a decoder. Their weights are random; equal calls give equal models.
std::vector<SuiteModel> SuiteModels();

}  // namespace fusion
