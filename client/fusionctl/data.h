#pragma once

#include <string>
#include <vector>

#include "client/fusionctl/session.h"
#include "core/graph/graph.h"

namespace fusion {

/// Tensors for one run of a model, in the order of its inputs and outputs.
struct RunData {
  std::string name;  // directory, or "random inputs"
  std::vector<HostTensor> inputs;
  std::vector<HostTensor> outputs;  // expected; empty if the directory has none
};

/// The data sets of --data: `directory` itself, or its test_data_set_<n>. Tensors belong to the
/// input or output of their name, else to that of their number. Bad input, naming tensor and file,
/// if one is missing, of another type than the model declares, or no output of the model.
absl::StatusOr<std::vector<RunData>> LoadData(const std::string& directory, const ModelFile& model);

/// The options of a request that runs on `inputs`: symbolic dims that `options` leaves open get the
/// extents the inputs have.
PlanOptions BindToData(const PlanOptions& options, const std::vector<HostTensor>& inputs,
                       const ModelFile& model);

/// The model as the evaluator wants it. Errors are bad input.
absl::StatusOr<Graph> ImportModel(const ModelFile& model, const PlanOptions& options);

/// Seeded random inputs: floats near standard normal, integers and bools 0 or 1, which are fine as
/// masks, ids and positions. Bad input if a dim is open.
absl::StatusOr<std::vector<HostTensor>> RandomData(const Graph& graph, uint64_t seed);

}  // namespace fusion
