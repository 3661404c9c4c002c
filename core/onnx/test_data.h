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

/// Called before the elements of a tensor are read; an error rejects the tensor. The name is empty
/// if the file has none.
using TensorCheck =
    std::function<absl::Status(const std::string& name, DType dtype, const Dims& dims)>;

/// Reads a file with one tensor: *.npy is a NumPy array, without a name; every other file is a
/// serialised TensorProto (*.pb), the format of ONNX's test inputs and outputs. Reads type and
/// extents, calls `check`, then reads the elements. NotFound if the file does not exist;
/// Unavailable or FailedPrecondition if it cannot be read; InvalidArgument if it is not a tensor,
/// not a regular file, or larger than its extents need; Unimplemented for an unsupported element
/// type; ResourceExhausted without memory; errors of `check`. Errors name the path.
absl::StatusOr<NamedTensor> LoadTensorFile(const std::string& path,
                                           const TensorCheck& check = nullptr);
/// Name, type and extents of the tensor in a file.
struct NamedType {
  std::string name;
  DType dtype = DType::kF32;
  Dims dims;
};
/// Reads them without the elements. Errors as LoadTensorFile.
absl::StatusOr<NamedType> ReadTensorType(const std::string& path);
/// Writes or replaces a file, in the format of LoadTensorFile; not atomic. InvalidArgument if
/// `path` is not a regular file; FailedPrecondition if it cannot be written.
absl::Status SaveTensorFile(const std::string& path, const NamedTensor& tensor);

/// A test data set of ONNX's layout:
///
///   <case>/model.onnx
///   <case>/test_data_set_0/input_0.pb, input_1.pb, ..., output_0.pb, ...
///
/// File k holds the value of graph input or output k.
struct TestDataSet {
  std::vector<NamedTensor> inputs;
  std::vector<NamedTensor> outputs;
};

/// Paths of the files of such a set; element k is file k.
struct TestDataFiles {
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
};
/// Finds input_k and output_k, each .pb or .npy, in `directory` for k = 0, 1, ... An empty set is
/// not an error. InvalidArgument if a number occurs twice or one is missing, and for *.pb and *.npy
/// files of other names, which would be ignored. NotFound if `directory` cannot be read.
absl::StatusOr<TestDataFiles> FindTestData(const std::string& directory);

/// A TensorCheck for file k of the inputs or of the outputs.
using DataCheck = std::function<absl::Status(bool is_output, size_t k, const NamedType& type)>;
/// Reads the files of FindTestData. `check`, if set, is called for each file as in LoadTensorFile.
/// InvalidArgument if two inputs, or two outputs, have the same name; else as FindTestData and
/// LoadTensorFile.
absl::StatusOr<TestDataSet> LoadTestDataSet(const std::string& directory,
                                            const DataCheck& check = nullptr);

/// Writes such a set as files with `suffix` (".pb" or ".npy") and removes the same files with the
/// other suffix. Creates `directory` (not its parents) if it is missing. Errors as SaveTensorFile.
absl::Status SaveTestDataSet(const std::string& directory, const TestDataSet& data,
                             std::string_view suffix = ".pb");

/// Paths of the data sets of a case directory: test_data_set_0, test_data_set_1, ... up to the
/// first that does not exist.
std::vector<std::string> FindTestDataSets(const std::string& case_directory);

}  // namespace fusion
