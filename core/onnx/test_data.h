#pragma once

#include <string>
#include <vector>

#include "core/tensor/host_tensor.h"

namespace fusion {

struct NamedTensor {
  std::string name;
  HostTensor value;
};

/// One file that holds a tensor: a serialised TensorProto (*.pb), as ONNX keeps test inputs and
/// outputs, or, by its name, an array of NumPy's (*.npy), which has no name. NotFound if there is
/// no such file; InvalidArgument if it is no tensor.
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

/// Reads input_k.pb, or else input_k.npy, and the same of output_k, of `directory` for k = 0, 1,
/// ... while they exist. An empty set is no error.
absl::StatusOr<TestDataSet> LoadTestDataSet(const std::string& directory);

/// Writes them, as files of `suffix` (".pb" or ".npy"); creates `directory` (not its parents) if it
/// is missing.
absl::Status SaveTestDataSet(const std::string& directory, const TestDataSet& data,
                             std::string_view suffix = ".pb");

/// The data sets of a case directory: its test_data_set_<n>, by ascending n.
std::vector<std::string> FindTestDataSets(const std::string& case_directory);

}  // namespace fusion
