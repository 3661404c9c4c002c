#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/bundle/options.h"
#include "core/device/device_spec.h"

namespace fusion {

/// How stages run.
struct StageOptions {
  DeviceSpec device;
  PlanOptions plan;
};

/// The text form of what a stage made.
struct StageText {
  std::string stage;
  std::string text;
};

/// Names of the stages and what each prints, in the order in which they make sense; one line each.
std::string StageList();

/// The stages of `list` ("canonicalise,plan"). InvalidArgument names one that does not exist.
absl::StatusOr<std::vector<std::string>> ParseStages(std::string_view list);

/// Reads the text form of a graph and runs `stages` on it, each on what those before it left;
/// values that a stage needs and nothing made yet are made from the graph. Appends the text of each
/// stage to `texts`, also of those before a failure. Calls the functions that the service calls,
/// through RunStage: results are verified. Kernels are named k0, k1, ... instead of by a key, which
/// would need a compiler.
///
///   std::vector<StageText> texts;
///   RETURN_IF_ERROR(RunStages(R"(graph "g" { ... })", {"canonicalise", "plan"}, options, &texts));
///
/// Pure; any thread. A text that does not parse: line and column. Otherwise the failing stage's
/// error with its name in front.
absl::Status RunStages(std::string_view graph, const std::vector<std::string>& stages,
                       const StageOptions& options, std::vector<StageText>* texts);

}  // namespace fusion
