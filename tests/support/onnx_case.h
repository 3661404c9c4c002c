#pragma once

#include <onnx/onnx_pb.h>

#include <string>
#include <vector>

#include "core/import/import.h"
#include "core/onnx/test_data.h"

namespace fusion {

/// A test case directory of ONNX's layout: model.onnx and data sets.
struct OnnxCase {
  std::string directory;
  onnx::ModelProto model;
};
absl::StatusOr<OnnxCase> LoadOnnxCase(const std::string& directory);

/// Sub-directories that hold a model.onnx, sorted.
std::vector<std::string> FindOnnxCases(const std::string& directory);

/// "Op" or "domain.Op" of nodes whose op fusiond does not have (functions of the model aside),
/// sorted, each once.
std::vector<std::string> UnsupportedOps(const onnx::ModelProto& model);

/// Why a model is not one over tensors with outputs that follow from its inputs: "sequence",
/// "optional", "map", "sparse", "string", "random", "training"; "" if it is one.
std::string BesideTensors(const onnx::ModelProto& model);

/// Inputs that some node takes as a parameter (the shape of a Reshape, axes, ...), or that one is
/// computed from, become initialisers with the values of `data`: tests of single nodes pass them as
/// graph inputs, which no plan can be made for.
void FixParameterInputs(const TestDataSet& data, onnx::ModelProto* model);

/// Values for the symbolic dims of the model's inputs, from the extents of the data.
std::map<std::string, int64_t> BindingsFor(const onnx::ModelProto& model, const TestDataSet& data);

/// What ONNX's own data hold as bf16, which NumPy lacks: bits in u16. Everything else as it is.
HostTensor AsDeclared(const HostTensor& data, DType type);

/// The data in the order of the graph's inputs: by name, or by position in the model's inputs where
/// names are missing.
absl::StatusOr<std::vector<HostTensor>> OrderInputs(const Graph& graph,
                                                    const onnx::ModelProto& model,
                                                    const TestDataSet& data);

}  // namespace fusion
