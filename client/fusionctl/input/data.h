#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "client/fusionctl/args/arguments.h"
#include "client/fusionctl/input/model_file.h"
#include "core/graph/graph.h"
#include "core/tensor/compare.h"

namespace fusion {

/// Tensors for one run of a model, in the order of its inputs and outputs.
struct RunData {
  std::string name;   // its source for display: a path, "random inputs"
  bool given = true;  // false: all inputs are random
  std::vector<HostTensor> inputs;
  std::vector<HostTensor> outputs;  // expected; empty if the directory has none
};

/// Reads the data sets of --data, at least one: `path` is a directory that is a data set or has
/// subdirectories test_data_set_<n>, or a .npz file with one set. Tensors are assigned by name,
/// else by number. An overridden initialiser (ModelFile::IsOverridden) that a set lacks gets the
/// model's value. Bad input, naming tensor and file: a tensor is missing, has another type than the
/// model declares, or is not an input or output of the model. Types are checked before elements are
/// read.
absl::StatusOr<std::vector<RunData>> LoadData(const std::string& path, const ModelFile& model);

/// Reads the files of --input. The result has an entry for each of model.inputs(), nullopt for
/// those not named. Bad input if the model has no such input or a file does not match its
/// declaration.
absl::StatusOr<std::vector<std::optional<HostTensor>>> LoadInputs(
    const std::map<std::string, std::string>& files, const ModelFile& model);

/// Bad input unless a tensor of this type matches the declaration. Open dims match any extent. A
/// type that NumPy lacks may be given as bits: bf16 in u16, narrower types in u8 or i8. `where`:
/// the source, for messages.
absl::Status CheckInputType(const onnx::ValueInfoProto& declared, const std::string& where,
                            DType dtype, const Dims& dims);
/// The same for a tensor; converts bits to the declared type in place.
absl::Status CheckInput(const onnx::ValueInfoProto& declared, const std::string& where,
                        HostTensor* tensor);

/// `options` for a request that runs on `inputs`: symbolic dims without a binding are bound to the
/// extents of the inputs.
PlanOptions BindToData(const PlanOptions& options, const std::vector<HostTensor>& inputs,
                       const ModelFile& model);
/// The same if only some inputs are known.
PlanOptions BindToData(const PlanOptions& options,
                       const std::vector<std::optional<HostTensor>>& inputs,
                       const ModelFile& model);

/// Imports the model for the reference evaluator. Errors are bad input.
absl::StatusOr<Graph> ImportModel(const ModelFile& model, const PlanOptions& options);

/// Random inputs, determined by `seed`: floats near standard normal; integers and bools 0 or 1,
/// which are valid masks, ids and positions. Bad input if a dim is open.
absl::StatusOr<std::vector<HostTensor>> RandomData(const Graph& graph, uint64_t seed);
/// The same for a run of `model`, from which `graph` was imported: overridden initialisers get the
/// model's values.
absl::StatusOr<std::vector<HostTensor>> RandomData(const Graph& graph, const ModelFile& model,
                                                   uint64_t seed);

/// The tolerance of comparisons of this type; --atol and --rtol apply to floats.
Tolerance ToleranceFor(const Arguments& arguments, DType dtype);

/// Evaluates the model with the reference evaluator: one tensor per output of `graph`. Errors are
/// bad input, or ResourceExhausted: no memory.
absl::StatusOr<std::vector<HostTensor>> EvaluateModel(const Graph& graph, const ModelFile& model,
                                                      const std::vector<HostTensor>& inputs,
                                                      int threads);

}  // namespace fusion
