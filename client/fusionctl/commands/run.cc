#include <filesystem>
#include <nlohmann/json.hpp>

#include "client/fusionctl/args/arguments.h"
#include "client/fusionctl/commands/commands.h"
#include "client/fusionctl/input/model_file.h"
#include "client/fusionctl/measure/contender.h"
#include "client/fusionctl/measure/intermediates.h"
#include "client/fusionctl/measure/kernel_times.h"
#include "client/fusionctl/measure/output_summary.h"
#include "client/fusionctl/measure/resilient_run.h"
#include "client/fusionctl/measure/statistics.h"
#include "client/fusionctl/measure/steps.h"
#include "client/fusionctl/measure/trace.h"
#include "client/fusionctl/output/plan_output.h"
#include "client/fusionctl/output/print.h"
#include "client/fusionctl/output/terminal.h"
#include "client/fusionctl/service/plan_subject.h"
#include "client/fusionctl/service/session.h"
#include "core/onnx/test_data.h"

namespace fusion {
namespace {

// Profiled runs; the timeline shows the median one.
constexpr int kProfiledRuns = 15;

Json RunJson(const Arguments& arguments, const RunInputs& inputs, const Contender& contender) {
  const Plan& plan = contender.ran();
  Json out = {{"data", inputs.data.name},
              {"target", plan.target},
              {"isa", plan.isa},
              {"threads", plan.threads},
              {"fusion", FusionName(arguments.options.fusion)},
              {"plan_key", contender.reply().plan_key.ToHex()},
              {"cache", CacheOutcomeName(contender.reply().cache)},
              {"latency_us", LatencyJson(contender.latency_us())},
              {"variant", contender.variant() < 0 ? Json() : Json(contender.variant())},
              {"totals", TotalsJson(plan.totals)},
              {"outputs", OutputsJson(contender.model().outputs(), contender.outputs())}};
  if (arguments.per_kernel) out["kernels"] = KernelTimesJson(contender);
  return out;
}

std::string RunText(const Arguments& arguments, const RunInputs& inputs,
                    const Contender& contender) {
  const Plan& plan = contender.ran();
  return StrCat(Bold(arguments.model), ": ", Count(plan.totals.kernels, "kernel"), " on ",
                TargetText(plan), ", ", SourceText(inputs),
                contender.variant() < 0 ? "" : ", the plan's variant", "\n\n",
                OutputsText(contender.model().outputs(), contender.outputs()),
                arguments.per_kernel ? StrCat("\n", KernelTable(contender)) : std::string(),
                "\nlatency: ", LatencyText(contender.latency_us()),
                "; see fusionctl bench for measurements\n");
}

// Times the launches of `contender` and, for a timeline, of the plan with one kernel per node,
// which the timeline shows too.
absl::Status ProfileLaunches(const Arguments& arguments, const ModelFile& file,
                             const Client& client, const RunInputs& inputs, Progress* progress,
                             Contender* contender) {
  std::vector<Contender*> plans = {contender};
  std::optional<Contender> op_by_op;
  if (!arguments.trace.empty() && arguments.options.fusion != FusionMode::kOpByOp) {
    PlanOptions options = inputs.options;
    options.fusion = FusionMode::kOpByOp;
    options.lock.reset();
    ASSIGN_OR_RETURN(op_by_op, Contender::Load(arguments, file, client, options, progress));
    plans.push_back(&*op_by_op);
  }
  progress->Show("timing kernels");
  const std::vector<const HostTensor*> in = inputs.pointers();
  for (Contender* plan : plans) RETURN_IF_ERROR(plan->Run(in, /*counts=*/false));
  for (int i = 0; i < kProfiledRuns; ++i) {
    for (Contender* plan : plans) RETURN_IF_ERROR(plan->Profile(in));
  }
  if (arguments.trace.empty()) return absl::OkStatus();
  return WriteOptionFile(
      "--trace", arguments.trace,
      TraceOf({plans.begin(), plans.end()}).dump(-1, ' ', false, Json::error_handler_t::replace) +
          "\n");
}

}  // namespace

absl::StatusOr<ExitCode> RunRun(const Arguments& arguments, Progress* progress) {
  ASSIGN_OR_RETURN(std::unique_ptr<ModelFile> file, ModelFile::Load(arguments.model, arguments));
  ASSIGN_OR_RETURN(RunInputs inputs, LoadRunInputs(arguments, *file));
  if (IsResilient(arguments)) return RunResilient(arguments, *file, inputs, progress);
  return WithService(arguments, progress, [&](const Client& client) -> absl::StatusOr<ExitCode> {
    // A timeline, comparisons and steps need the weights again.
    const bool last = arguments.trace.empty() && !arguments.compare &&
                      arguments.dump_tensors.empty() && arguments.steps == 0;
    const auto weights = last ? Contender::Weights::kTaken : Contender::Weights::kLeft;
    ASSIGN_OR_RETURN(Contender contender,
                     Contender::Load(arguments, *file, client, inputs.options, progress, weights));
    std::vector<const HostTensor*> in = inputs.pointers();
    // The first run touches arenas and outputs, and wakes the threads.
    RETURN_IF_ERROR(contender.Run(in, /*counts=*/false));
    for (int i = 0; i < arguments.repeat; ++i) {
      if (i % 64 == 0 && arguments.repeat > 1) progress->Show("running", i, arguments.repeat);
      RETURN_IF_ERROR(contender.Run(in, /*counts=*/true));
    }
    if (arguments.per_kernel || !arguments.trace.empty()) {
      RETURN_IF_ERROR(ProfileLaunches(arguments, *file, client, inputs, progress, &contender));
    }
    if (!arguments.out.empty()) {
      RETURN_IF_ERROR(SaveOutputs(arguments, contender.model().outputs(), contender.outputs()));
    }
    std::optional<Intermediates> intermediates;
    if (arguments.compare || !arguments.dump_tensors.empty()) {
      ASSIGN_OR_RETURN(intermediates,
                       LookAtIntermediates(arguments, *file, client, inputs, contender, progress));
    }
    std::vector<StepTime> steps;
    if (arguments.steps > 0) {
      ASSIGN_OR_RETURN(steps, RunSteps(arguments, *file, inputs, contender, progress));
    }
    progress->Clear();
    if (arguments.json) {
      Json out = RunJson(arguments, inputs, contender);
      if (!steps.empty()) out["steps"] = StepsJson(steps);
      if (intermediates) AddIntermediatesJson(arguments, *intermediates, &out);
      PrintJson(out);
    } else {
      Print(RunText(arguments, inputs, contender));
      if (!steps.empty()) Print(StrCat("\n", StepsText(steps)));
      if (intermediates) Print(StrCat("\n", IntermediatesText(arguments, *intermediates)));
    }
    return !intermediates || intermediates->pass ? kExitOk : kExitMismatch;
  });
}

}  // namespace fusion
