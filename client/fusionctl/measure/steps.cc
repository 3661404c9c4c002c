#include "client/fusionctl/measure/steps.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "client/fused_model.h"
#include "client/fusionctl/args/arguments.h"
#include "client/fusionctl/input/model_file.h"
#include "client/fusionctl/measure/statistics.h"
#include "client/fusionctl/output/print.h"
#include "client/fusionctl/output/terminal.h"
#include "core/onnx/open_dim.h"

namespace fusion {
namespace {

// Maximum number of steps listed one by one.
constexpr size_t kShownSteps = 8;

// The options of the next step: dims that give the fill of a shared buffer are updated. `added`:
// rows that the last run has appended, by shared buffer.
PlanOptions NextOptions(const PlanOptions& options, const ModelFile& file, const Plan& plan,
                        const SharedMemory& memory, const std::vector<int64_t>& added) {
  PlanOptions out = options;
  for (size_t s = 0; s < plan.shared_buffers.size(); ++s) {
    const SharedBuffer& shared = plan.shared_buffers[s];
    const onnx::ValueInfoProto& input = *file.inputs()[static_cast<size_t>(shared.input)];
    const std::optional<std::string> name = OpenDimName(input, shared.dim);
    if (!name) continue;
    out.dim_bindings[*name] = memory.rows[s];
    if (shared.output >= file.bare().graph().output_size()) continue;
    const auto& total = file.bare().graph().output(shared.output).type().tensor_type().shape();
    if (shared.dim >= total.dim_size()) continue;
    auto bound = out.dim_bindings.find(total.dim(shared.dim).dim_param());
    if (bound != out.dim_bindings.end()) bound->second = memory.rows[s] + added[s];
  }
  // A sum of dims that was bound to the data has changed.
  std::erase_if(out.dim_bindings, [](const auto& binding) {
    return binding.first.find_first_of("+-*") != std::string::npos;
  });
  return out;
}

}  // namespace

absl::StatusOr<std::vector<StepTime>> RunSteps(const Arguments& arguments, const ModelFile& file,
                                               const RunInputs& inputs, const Contender& contender,
                                               Progress* progress) {
  const FusedModel& model = contender.model();
  const Plan& plan = model.plan();
  if (plan.shared_buffers.empty()) {
    return InvalidArgument("--steps: the model appends to nothing; --share says what it does");
  }
  ASSIGN_OR_RETURN(SharedMemory memory, LoadSharedMemory(plan, inputs.pointers()));
  std::vector<StepTime> out;
  std::vector<HostTensor> random;
  std::vector<const HostTensor*> in = inputs.pointers();
  std::vector<int64_t> added = memory.rows;
  // A plan for one length allows only one step.
  const std::string hint =
      plan.symbols.empty() ? " (a plan for growing caches leaves their dim open: --range)" : "";
  auto in_step = [&](const absl::Status& status, int step) {
    return Annotate(status, StrCat("step ", step, hint));
  };
  for (int step = 0; step < arguments.steps; ++step) {
    progress->Show("running", step, arguments.steps);
    if (step > 0) {
      ASSIGN_OR_RETURN(Graph graph,
                       ImportModel(file, NextOptions(inputs.options, file, plan, memory, added)));
      ASSIGN_OR_RETURN(random,
                       RandomData(graph, file, arguments.seed + static_cast<uint64_t>(step)));
      for (size_t i = 0; i < in.size(); ++i) in[i] = &random[i];
    }
    absl::StatusOr<std::vector<HostTensor>> outputs = model.MakeOutputs(in, &memory);
    if (!outputs.ok()) return in_step(outputs.status(), step);
    std::vector<HostTensor*> results;
    for (HostTensor& tensor : *outputs) results.push_back(&tensor);
    const std::vector<int64_t> before = memory.rows;
    const Nanoseconds begin = Clock::Real().Now();
    absl::Status ran = model.RunShared(in, results, &memory);
    if (!ran.ok()) return in_step(ran, step);
    out.push_back({before[0], ToMicroseconds(Clock::Real().Now() - begin)});
    for (size_t s = 0; s < before.size(); ++s) added[s] = memory.rows[s] - before[s];
  }
  return out;
}

std::string StepsText(const std::vector<StepTime>& steps) {
  Table table({{"step", Table::kRight}, {"cached", Table::kRight}, {"latency", Table::kRight}});
  std::vector<double> all;
  for (size_t s = 0; s < steps.size(); ++s) {
    all.push_back(steps[s].us);
    const bool shown = steps.size() <= kShownSteps || s + 2 < kShownSteps || s + 1 == steps.size();
    if (shown) {
      table.Add({StrCat(s), StrCat(steps[s].rows), HumanMicroseconds(steps[s].us)});
    } else if (s + 2 == kShownSteps) {
      table.Add({"...", "", ""});
    }
  }
  return StrCat(table.ToString(), "median of a step: ", HumanMicroseconds(MedianOf(all).median),
                "\n");
}

Json StepsJson(const std::vector<StepTime>& steps) {
  Json out = Json::array();
  for (const StepTime& step : steps) {
    out.push_back({{"cached", step.rows}, {"latency_us", step.us}});
  }
  return out;
}

}  // namespace fusion
