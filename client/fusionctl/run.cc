#include <nlohmann/json.hpp>

#include "client/fusionctl/data.h"
#include "client/fusionctl/plan_output.h"
#include "client/fusionctl/session.h"
#include "client/fusionctl/statistics.h"
#include "core/tensor/compare.h"

namespace fusion {
namespace {

// Runs before the first that counts: they touch arenas and outputs, and wake the threads.
constexpr int kWarmUpRuns = 3;

/// One of the two models that are measured, with its tensors.
struct Contender {
  std::unique_ptr<FusedModel> model;
  std::vector<HostTensor> outputs;
  std::vector<double> latency_us;

  absl::Status Run(const std::vector<const HostTensor*>& inputs, bool count) {
    std::vector<HostTensor*> out;
    for (HostTensor& tensor : outputs) out.push_back(&tensor);
    Nanoseconds begin = Clock::Real().Now();
    RETURN_IF_ERROR(model->RunInto(inputs, out));
    if (count) latency_us.push_back(ToMicroseconds(Clock::Real().Now() - begin));
    return absl::OkStatus();
  }
};

absl::StatusOr<Contender> LoadContender(const Arguments& arguments, const ModelFile& file,
                                        const Client& client, PlanOptions options,
                                        FusionMode fusion) {
  options.fusion = fusion;
  Contender out;
  ASSIGN_OR_RETURN(
      out.model, FusedModel::Load(client, file.Request(arguments, options),
                                  [&file](const std::string& name) { return file.Weight(name); }));
  ASSIGN_OR_RETURN(out.outputs, out.model->MakeOutputs());
  return out;
}

/// Pairs of runs one after the other, so that what disturbs the machine disturbs both; who goes
/// first alternates.
absl::Status Measure(int repeat, const std::vector<HostTensor>& inputs, Progress* progress,
                     Contender* fused, Contender* op_by_op) {
  std::vector<const HostTensor*> in;
  for (const HostTensor& tensor : inputs) in.push_back(&tensor);
  for (int i = -kWarmUpRuns; i < repeat; ++i) {
    if (i % 16 == 0) progress->Show(StrCat("running ", i, " of ", repeat));
    Contender* first = i % 2 == 0 ? fused : op_by_op;
    Contender* second = i % 2 == 0 ? op_by_op : fused;
    RETURN_IF_ERROR(first->Run(in, i >= 0));
    RETURN_IF_ERROR(second->Run(in, i >= 0));
  }
  progress->Clear();
  return absl::OkStatus();
}

std::vector<double> Ratios(const Contender& a, const Contender& b) {
  std::vector<double> out;
  for (size_t i = 0; i < a.latency_us.size(); ++i) {
    out.push_back(a.latency_us[i] / b.latency_us[i]);
  }
  return out;
}

double LargestDifference(const Contender& a, const Contender& b) {
  double out = 0;
  for (size_t i = 0; i < a.outputs.size(); ++i) {
    out = std::max(out, Compare(a.outputs[i], b.outputs[i]).max_rel);
  }
  return out;
}

Json IntervalJson(const MedianInterval& m) {
  return {{"median", m.median}, {"low95", m.low}, {"high95", m.high}};
}

Json ContenderJson(const Contender& c) {
  return {{"latency_us", IntervalJson(MedianOf(c.latency_us))},
          {"totals", TotalsJson(c.model->plan().totals)},
          {"cache", CacheOutcomeName(c.model->reply().cache)}};
}

std::string ResultText(const Arguments& arguments, const Contender& fused,
                       const Contender& op_by_op) {
  Table table({{""},
               {"median", Table::kRight},
               {"95 % interval", Table::kRight},
               {"kernels", Table::kRight},
               {"launches", Table::kRight},
               {"traffic", Table::kRight},
               {"estimate", Table::kRight}});
  auto row = [&table](std::string_view name, const Contender& c) {
    MedianInterval m = MedianOf(c.latency_us);
    const PlanTotals& t = c.model->plan().totals;
    table.Add({std::string(name), HumanMicroseconds(m.median),
               StrCat(HumanMicroseconds(m.low), " .. ", HumanMicroseconds(m.high)),
               StrCat(t.kernels), StrCat(t.launches), HumanBytes(t.activation_bytes),
               HumanMicroseconds(t.estimated_us)});
  };
  // "fused", unless the arguments ask for the other one: then it is measured against itself.
  row(FusionName(arguments.options.fusion), fused);
  row(FusionName(FusionMode::kOpByOp), op_by_op);
  MedianInterval ratio = MedianOf(Ratios(fused, op_by_op));
  table.Add({"ratio", ShortNumber(ratio.median),
             StrCat(ShortNumber(ratio.low), " .. ", ShortNumber(ratio.high)), "", "", "", ""});
  const Plan& plan = fused.model->plan();
  return StrCat(Bold(arguments.model), ": ", Count(arguments.repeat, "pair"), " of runs on ",
                TargetText(plan), "\n\n", table.ToString(),
                "\nlargest difference between the two: ",
                ShortNumber(LargestDifference(fused, op_by_op)), " of max|b|\n");
}

}  // namespace

absl::StatusOr<ExitCode> RunRun(const Arguments& arguments, Progress* progress) {
  ASSIGN_OR_RETURN(std::unique_ptr<ModelFile> file, ModelFile::Load(arguments.model));
  RunData data;
  PlanOptions options = arguments.options;
  if (!arguments.data.empty()) {
    ASSIGN_OR_RETURN(std::vector<RunData> sets, LoadData(arguments.data, *file));
    data = std::move(sets.front());
    options = BindToData(options, data.inputs, *file);
  } else {
    ASSIGN_OR_RETURN(Graph graph, ImportModel(*file, options));
    ASSIGN_OR_RETURN(data.inputs, RandomData(graph, arguments.seed));
  }
  return WithService(arguments, progress, [&](const Client& client) -> absl::StatusOr<ExitCode> {
    progress->Show("planning and compiling");
    ASSIGN_OR_RETURN(Contender fused,
                     LoadContender(arguments, *file, client, options, arguments.options.fusion));
    ASSIGN_OR_RETURN(Contender op_by_op,
                     LoadContender(arguments, *file, client, options, FusionMode::kOpByOp));
    RETURN_IF_ERROR(Measure(arguments.repeat, data.inputs, progress, &fused, &op_by_op));
    if (arguments.json) {
      const Plan& plan = fused.model->plan();
      PrintJson(Json{{"repeat", arguments.repeat},
                     {"target", plan.target},
                     {"isa", plan.isa},
                     {"threads", plan.threads},
                     {"fusion", FusionName(arguments.options.fusion)},
                     {"fused", ContenderJson(fused)},
                     {"op_by_op", ContenderJson(op_by_op)},
                     {"ratio", IntervalJson(MedianOf(Ratios(fused, op_by_op)))},
                     {"max_rel_between", LargestDifference(fused, op_by_op)}});
    } else {
      Print(ResultText(arguments, fused, op_by_op));
    }
    return kExitOk;
  });
}

}  // namespace fusion
