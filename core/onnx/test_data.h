#pragma once

#include <string>
#include <vector>

#include "core/tensor/host_tensor.h"

namespace fusion {

struct NamedTensor {
  std::string name;
  HostTensor value;
};

/// One file that holds a serialised TensorProto (*.pb), as ONNX keeps test inputs and outputs.
/// NotFound if there is no such file; InvalidArgument if it is no tensor.
absl::StatusOr<NamedTensor> LoadTensorFile(const std::string& path);
absl::Status SaveTensorFile(const std::string& path, const NamedTensor& tensor);

/// A test data set of ONNX's layout:
///
///   <case>/model.onnx
///   <case>/test_data_set_0/input_0.pb, input_1.pb, ..., output_0.pb, ...
///
/// Numbers follow the graph's inputs and outputs.
struct TestDataSet {
  std::vector<NamedTensor> inputs;
  std::vector<NamedTensor> outputs;
};

/// Reads input_k.pb and output_k.pb of `directory` for k = 0, 1, ... while they exist. An empty set
/// is no error.
absl::StatusOr<TestDataSet> LoadTestDataSet(const std::string& directory);

/// Writes them; creates `directory` (not its parents) if it is missing.
absl::Status SaveTestDataSet(const std::string& directory, const TestDataSet& data);

/// The data sets of a case directory: its test_data_set_<n>, by ascending n.
std::vector<std::string> FindTestDataSets(const std::string& case_directory);

}  // namespace fusion
