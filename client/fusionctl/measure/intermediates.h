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

/// One tensor that a node gives, as a plan that keeps it has it.
struct Intermediate {
  std::string name;
  std::string node;  // that gives it; empty: without a name
  std::string op;
  std::string type;  // "f32[4,8]"
  int64_t elements = 0;
  bool is_output = false;                // of the model; else the plan was asked to keep it
  Digest kernel;                         // that wrote it
  std::string group;                     // its ops
  std::optional<Difference> difference;  // not set: not compared
  std::string file;                      // of --dump-tensors; empty: none
};

/// What run --compare and --dump-tensors found.
struct Intermediates {
  std::vector<Intermediate> tensors;  // in the order in which the model computes them
  /// Of `tensors`, the first that differs; -1: none.
  int first_divergent = -1;
  /// Outputs of the plan as it runs, with nothing kept, that differ.
  std::vector<std::string> divergent_outputs;
  /// Nodes inside functions and loops, or without names: what they give cannot be asked for.
  int64_t out_of_reach = 0;
  int64_t without_reference = 0;  // of `tensors`: not in the directory of --reference
  bool pass = true;
};

/// Makes plans that keep the intermediate tensors of --tensor, or all, a bounded number of bytes at
/// a time, runs each once on `inputs`, and compares and writes what --compare and --dump-tensors
/// ask for. `contender`: the plan as it is, after a run. Bad input: a name that the model does not
/// have, files that cannot be read or written.
absl::StatusOr<Intermediates> LookAtIntermediates(const Arguments& arguments, const ModelFile& file,
                                                  const Client& client, const RunInputs& inputs,
                                                  const Contender& contender, Progress* progress);

/// Adds what --json says about them.
void AddIntermediatesJson(const Arguments& arguments, const Intermediates& found,
                          nlohmann::ordered_json* out);
/// A table for people, and the verdict of --compare.
std::string IntermediatesText(const Arguments& arguments, const Intermediates& found);

}  // namespace fusion
