#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "client/fusionctl/args/arguments.h"
#include "client/fusionctl/input/model_file.h"
#include "client/fusionctl/measure/contender.h"
#include "client/fusionctl/output/terminal.h"
#include "core/tensor/compare.h"

namespace fusion {

/// One output tensor of a node, from a plan that keeps it.
struct Intermediate {
  std::string name;
  std::string node;  // that computes it; empty: the node has no name
  std::string op;
  std::string type;  // "f32[4,8]"
  int64_t elements = 0;
  bool is_output = false;                // an output of the model; else kept on request
  Digest kernel;                         // that wrote it
  std::string group;                     // ops of that kernel's group
  std::optional<Difference> difference;  // nullopt: not compared
  std::string file;                      // of --dump-tensors; empty: none
};

/// The results of run --compare and --dump-tensors.
struct Intermediates {
  std::vector<Intermediate> tensors;  // in the order in which the model computes them
  /// Index in `tensors` of the first that differs; -1: none.
  int first_divergent = -1;
  /// Outputs that differ in the plan as it normally runs, without kept tensors.
  std::vector<std::string> divergent_outputs;
  /// Number of nodes inside functions and loops, or with unnamed outputs: these cannot be kept.
  int64_t out_of_reach = 0;
  int64_t without_reference = 0;  // number of `tensors` that the directory of --reference lacks
  bool pass = true;
};

/// Runs plans that keep the intermediate tensors of --tensor, or all: each plan keeps a bounded
/// number of bytes and runs once on `inputs`. Compares the tensors (--compare) and writes them
/// (--dump-tensors). `contender`: the normal plan, after a run. Bad input: unknown names, files
/// that cannot be read or written.
absl::StatusOr<Intermediates> LookAtIntermediates(const Arguments& arguments, const ModelFile& file,
                                                  const Client& client, const RunInputs& inputs,
                                                  const Contender& contender, Progress* progress);

/// Adds the results to the object of --json.
void AddIntermediatesJson(const Arguments& arguments, const Intermediates& found,
                          nlohmann::ordered_json* out);
/// The results as a table, with the verdict of --compare.
std::string IntermediatesText(const Arguments& arguments, const Intermediates& found);

}  // namespace fusion
