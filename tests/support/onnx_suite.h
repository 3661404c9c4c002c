#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/graph/graph.h"

namespace fusion {

/// What came of many cases.
struct Tally {
  int passed = 0;
  int failed = 0;
  int beside = 0;  // of the skipped: not over tensors, or not determined by their inputs
  std::map<std::string, int> skipped;  // by reason

  void Print(const std::string& title) const;
  /// Also as properties of the running test: passed, in_scope, beside; left_0, left_1, ..: "COUNT:
  /// REASON" of what was skipped.
  void Record() const;
};

/// The bytes of a weight, by the client's name.
using NamedWeight = std::function<absl::StatusOr<const HostTensor*>(const std::string& name)>;

/// Computes the outputs of a graph in some way. Unimplemented: the case is skipped.
using GraphRunner = std::function<absl::StatusOr<std::vector<HostTensor>>(
    const Graph& graph, const std::vector<HostTensor>& inputs, const NamedWeight& weight)>;

/// Imports the model of a case directory, runs it on each of its data sets and compares with the
/// stored outputs; books the result, and fails the running test where they differ. A light model
/// that has outputs for random weights (test_data_set_rw) runs with those.
void RunOnnxCase(const std::string& directory, int64_t inline_limit, const GraphRunner& run,
                 Tally* tally);

/// $`variable`, or `fallback`.
std::string FromEnvironment(const char* variable, const std::string& fallback);

/// The cases of ONNX's own tests: one model a directory, of nodes, exported by PyTorch and simple
/// ones; empty if package libonnx-testdata, or $FUSION_ONNX_TESTS, is not there.
std::vector<std::string> OnnxTests();

}  // namespace fusion
