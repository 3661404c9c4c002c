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
  std::string name;   // where it is from, or "random inputs"
  bool given = true;  // some of it, at least
  std::vector<HostTensor> inputs;
  std::vector<HostTensor> outputs;  // expected; empty if the directory has none
};

/// The data sets of --data: the directory `path` itself, or its test_data_set_<n>, or the one set
/// of a .npz file. Tensors belong to the input or output of their name, else to that of their
/// number. An initialiser that is an input (ModelFile::IsOverridden) has the model's value in a set
/// that has none. Bad input, naming tensor and file, if one is missing, of another type than the
/// model declares, or neither input nor output of the model; found out before it is read.
absl::StatusOr<std::vector<RunData>> LoadData(const std::string& path, const ModelFile& model);

/// The inputs that --input names, in the order of the model's; nullopt for others. Bad input if the
/// model has no such input, or a file is not what the model declares for it.
absl::StatusOr<std::vector<std::optional<HostTensor>>> LoadInputs(
    const std::map<std::string, std::string>& files, const ModelFile& model);

/// Bad input unless a tensor of this type, from `where`, is what the model declares; open dims take
/// anything, and bf16 may be bits in u16.
absl::Status CheckInputType(const onnx::ValueInfoProto& declared, const std::string& where,
                            DType dtype, const Dims& dims);
/// The same for the tensor itself. Bits in u16 become bf16 where the model has that.
absl::Status CheckInput(const onnx::ValueInfoProto& declared, const std::string& where,
                        HostTensor* tensor);

/// The options of a request that runs on `inputs`: symbolic dims that `options` leaves open get the
/// extents the inputs have.
PlanOptions BindToData(const PlanOptions& options, const std::vector<HostTensor>& inputs,
                       const ModelFile& model);
/// The same where only some inputs are known.
PlanOptions BindToData(const PlanOptions& options,
                       const std::vector<std::optional<HostTensor>>& inputs,
                       const ModelFile& model);

/// The model as the evaluator wants it. Errors are bad input.
absl::StatusOr<Graph> ImportModel(const ModelFile& model, const PlanOptions& options);

/// Seeded random inputs: floats near standard normal, integers and bools 0 or 1, which are fine as
/// masks, ids and positions. Bad input if a dim is open.
absl::StatusOr<std::vector<HostTensor>> RandomData(const Graph& graph, uint64_t seed);
/// The same for a run of `model`, of which `graph` is made: initialisers that are inputs have its
/// values.
absl::StatusOr<std::vector<HostTensor>> RandomData(const Graph& graph, const ModelFile& model,
                                                   uint64_t seed);

/// How far values of this type may be from those they are compared with: --atol and --rtol for
/// floats.
Tolerance ToleranceFor(const Arguments& arguments, DType dtype);

/// What the reference evaluator makes of `inputs`: one tensor per output of `graph`. Errors are bad
/// input, or there is no memory.
absl::StatusOr<std::vector<HostTensor>> EvaluateModel(const Graph& graph, const ModelFile& model,
                                                      const std::vector<HostTensor>& inputs,
                                                      int threads);

}  // namespace fusion
