#pragma once

#include <vector>

#include "client/fusionctl/args/arguments.h"
#include "client/fusionctl/input/model_file.h"
#include "client/fusionctl/measure/contender.h"
#include "client/fusionctl/output/print.h"
#include "client/fusionctl/output/terminal.h"

namespace fusion {

/// One run of a model whose outputs lie in the memory of inputs: what it found there and took.
struct StepTime {
  int64_t rows = 0;  // of the first shared buffer, before the run
  double us = 0;
};

/// run --steps: as many runs, one after the other, each with the caches that the one before left.
/// The first one has the given inputs, later ones random ones of the sizes that go with their
/// caches. Bad input if nothing is shared, or the plan is for the first sizes only.
absl::StatusOr<std::vector<StepTime>> RunSteps(const Arguments& arguments, const ModelFile& file,
                                               const RunInputs& inputs, const Contender& contender,
                                               Progress* progress);

std::string StepsText(const std::vector<StepTime>& steps);
Json StepsJson(const std::vector<StepTime>& steps);

}  // namespace fusion
