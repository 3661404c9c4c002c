#pragma once

#include <vector>

#include "client/fusionctl/args/arguments.h"
#include "client/fusionctl/input/model_file.h"
#include "client/fusionctl/measure/contender.h"
#include "client/fusionctl/output/print.h"
#include "client/fusionctl/output/terminal.h"

namespace fusion {

/// One step of RunSteps.
struct StepTime {
  int64_t rows = 0;  // in the first shared buffer, before the run
  double us = 0;     // time of the run
};

/// run --steps: runs a model with shared buffers (caches) --steps times; each run continues with
/// the caches of the previous one. The first run has the given inputs, later ones random inputs
/// with sizes that match the caches. Bad input if the plan has no shared buffers, or is for the
/// first sizes only.
absl::StatusOr<std::vector<StepTime>> RunSteps(const Arguments& arguments, const ModelFile& file,
                                               const RunInputs& inputs, const Contender& contender,
                                               Progress* progress);

std::string StepsText(const std::vector<StepTime>& steps);
Json StepsJson(const std::vector<StepTime>& steps);

}  // namespace fusion
