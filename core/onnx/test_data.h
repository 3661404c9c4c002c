#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/tensor/host_tensor.h"

namespace fusion {

struct NamedTensor {
  std::string name;
  HostTensor value;
};

/// Whether a tensor is wanted, by what its file says of it; an error if not. The name is empty
/// where the file has none.
using TensorCheck =
    std::function<absl::Status(const std::string& name, DType dtype, const Dims& dims)>;

/// One file that holds a tensor: a serialised TensorProto (*.pb), as ONNX keeps test inputs and
/// outputs, or, by its name, an array of NumPy's (*.npy), which has no name. What the file says of
/// the tensor is read first, and `check` is asked before its elements are. NotFound if there is no
/// such file; InvalidArgument if it is no tensor, is no regular file, or holds more bytes than its
/// extents want; ResourceExhausted if there is no memory; else what `check` says.
absl::StatusOr<NamedTensor> LoadTensorFile(const std::string& path,
                                           const TensorCheck& check = nullptr);
/// What such a file says of its tensor, without its elements.
struct NamedType {
  std::string name;
  DType dtype = DType::kF32;
  Dims dims;
};
absl::StatusOr<NamedType> ReadTensorType(const std::string& path);
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

/// The files of such a set, by number.
struct TestDataFiles {
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
};
/// Finds input_k.pb or input_k.npy, and the same of output_k, of `directory` for k = 0, 1, ... An
/// empty set is no error. InvalidArgument for a number that is there twice or has none before it,
/// and for other files of these kinds: nobody would read them.
absl::StatusOr<TestDataFiles> FindTestData(const std::string& directory);

/// Reads the files of FindTestData. `check` is asked for each as LoadTensorFile says.
/// InvalidArgument if two inputs, or two outputs, have one name.
using DataCheck = std::function<absl::Status(bool is_output, size_t k, const NamedType& type)>;
absl::StatusOr<TestDataSet> LoadTestDataSet(const std::string& directory,
                                            const DataCheck& check = nullptr);

/// Writes them, as files of `suffix` (".pb" or ".npy"); creates `directory` (not its parents) if it
/// is missing.
absl::Status SaveTestDataSet(const std::string& directory, const TestDataSet& data,
                             std::string_view suffix = ".pb");

/// The data sets of a case directory: its test_data_set_<n>, by ascending n.
std::vector<std::string> FindTestDataSets(const std::string& case_directory);

}  // namespace fusion
