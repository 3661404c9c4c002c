#include <sys/resource.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "client/detect_target.h"
#include "client/fusionctl/args/arguments.h"
#include "client/fusionctl/commands/bench_suite.h"
#include "client/fusionctl/commands/commands.h"
#include "client/fusionctl/input/model_file.h"
#include "client/fusionctl/measure/bench_pairs.h"
#include "client/fusionctl/measure/contender.h"
#include "client/fusionctl/measure/kernel_times.h"
#include "client/fusionctl/measure/output_summary.h"
#include "client/fusionctl/output/plan_output.h"
#include "client/fusionctl/output/print.h"
#include "client/fusionctl/output/terminal.h"
#include "client/fusionctl/service/session.h"
#include "core/base/statistics/quantile.h"

namespace fusion {
namespace {

/// Memory that a loaded model needs while it runs, in bytes.
struct PlanMemory {
  int64_t arena = 0;
  int64_t work = 0;  // scratch of all threads, workspace
  int64_t prepared = 0;
  int64_t weights = 0;  // that kernels read as they are
  int64_t constants = 0;
  int64_t inputs = 0;
  int64_t outputs = 0;
  int64_t peak() const { return arena + work + prepared + weights + constants + inputs + outputs; }
};

PlanMemory MemoryOf(const Plan& plan) {
  PlanMemory out{.arena = plan.arena_bytes,
                 .work = RunBytes(plan, plan.threads) - plan.arena_bytes,
                 .prepared = PreparedBytes(plan)};
  auto bytes = [&plan](int tensor) {
    return tensor < 0 ? 0 : plan.tensors[static_cast<size_t>(tensor)].bytes;
  };
  for (int tensor : plan.inputs) out.inputs += bytes(tensor);
  for (int tensor : plan.outputs) out.outputs += bytes(tensor);
  std::map<int, int64_t> weights;  // by number, those that runs read
  auto add = [&](const Plan& runs) {
    for (const auto& constant : runs.constants) out.constants += constant->byte_size();
    for (int id : TensorsOfRuns(runs)) {
      const PlanTensor& tensor = runs.tensors[static_cast<size_t>(id)];
      if (tensor.space == Space::kWeight) weights[tensor.index] = tensor.bytes;
    }
  };
  add(plan);
  for (const PlanVariant& variant : plan.variants) add(*variant.plan);
  for (const auto& [number, size] : weights) out.weights += size;
  return out;
}

int64_t ProcessPeakRssBytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return int64_t{usage.ru_maxrss} * 1024;  // KiB on Linux
}

// --- the result as text and as JSON

/// Milliseconds of a stage, if this request ran it.
std::optional<double> StageMilliseconds(const FusionReply& reply, std::string_view stage) {
  for (const StageTime& time : reply.stages) {
    if (time.stage == stage) return ToMilliseconds(time.took);
  }
  return std::nullopt;
}

Json OrNull(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

Json MemoryJson(const PlanMemory& m) {
  return {{"arena_bytes", m.arena},        {"work_bytes", m.work},
          {"prepared_bytes", m.prepared},  {"weight_bytes", m.weights},
          {"constant_bytes", m.constants}, {"input_bytes", m.inputs},
          {"output_bytes", m.outputs},     {"peak_bytes", m.peak()}};
}

Json ContenderJson(const Arguments& arguments, const Contender& c) {
  const FusionReply& reply = c.reply();
  double server_ms = 0;
  for (const StageTime& stage : reply.stages) server_ms += ToMilliseconds(stage.took);
  Json out = {{"plan_key", reply.plan_key.ToHex()},
              {"fusion", FusionName(c.plan().fusion)},
              {"latency_us", LatencyJson(c.latency_us())},
              {"totals", TotalsJson(c.ran().totals)},
              {"variant", c.variant() < 0 ? Json() : Json(c.variant())},
              {"memory", MemoryJson(MemoryOf(c.plan()))},
              {"cache", CacheOutcomeName(reply.cache)},
              {"plan_ms", OrNull(StageMilliseconds(reply, "plan"))},
              {"compile_ms", OrNull(StageMilliseconds(reply, "compile"))},
              {"server_ms", server_ms}};
  if (arguments.per_kernel) out["kernels"] = KernelTimesJson(c);
  return out;
}

Json BenchJson(const Arguments& arguments, const RunInputs& inputs, const BenchResult& result) {
  const Plan& plan = result.fused.plan();
  Json out = {
      {"model", arguments.model},
      {"data", inputs.data.name},
      {"target", plan.target},
      {"isa", plan.isa},
      {"threads", plan.threads},
      {"numerics", NumericsName(plan.numerics)},
      {"device", DeviceName()},
      {"warmup", arguments.warmup},
      {"pairs", result.fused.latency_us().size()},
      {"fused", ContenderJson(arguments, result.fused)},
      {"op_by_op", ContenderJson(arguments, result.op_by_op)},
      {"ratio", RatioJson(result.ratio())},
      {"max_rel_between", DifferenceJson({.max_rel = result.largest_difference()})["max_rel"]},
      {"process_peak_rss_bytes", ProcessPeakRssBytes()},
      {"reported_samples", Json()}};
  if (result.reported_samples) out["reported_samples"] = *result.reported_samples;
  if (!result.report_error.empty()) out["report_error"] = result.report_error;
  return out;
}

std::string LatencyTable(const BenchResult& result) {
  Table table({{""},
               {"median", Table::kRight},
               {"p10", Table::kRight, /*spare=*/1},
               {"p90", Table::kRight, /*spare=*/2},
               {"95 % interval", Table::kRight},
               {"kernels", Table::kRight},
               {"launches", Table::kRight, /*spare=*/3},
               {"traffic", Table::kRight, /*spare=*/4},
               {"weights", Table::kRight, /*spare=*/5},
               {"estimate", Table::kRight}});
  for (const Contender* c : {&result.fused, &result.op_by_op}) {
    const std::vector<double>& samples = c->latency_us();
    MedianInterval m = MedianOf(samples);
    const PlanTotals& t = c->ran().totals;
    table.Add({std::string(FusionName(c->plan().fusion)), HumanMicroseconds(m.median),
               HumanMicroseconds(Quantile(samples, 0.1)), HumanMicroseconds(Quantile(samples, 0.9)),
               StrCat(HumanMicroseconds(m.low), " .. ", HumanMicroseconds(m.high)),
               StrCat(t.kernels), StrCat(t.launches), HumanBytes(t.activation_bytes),
               HumanBytes(t.weight_bytes), HumanMicroseconds(t.estimated_us)});
  }
  MedianInterval ratio = result.ratio();
  table.Add({"ratio", ShortNumber(ratio.median), "", "",
             StrCat(ShortNumber(ratio.low), " .. ", ShortNumber(ratio.high)), "", "", "", "", ""});
  return table.ToString();
}

std::string CostTable(const BenchResult& result) {
  Table table({{""},
               {"plan", Table::kRight},
               {"compile", Table::kRight},
               {"a run", Table::kRight},
               {"packed", Table::kRight, /*spare=*/2},
               {"weights", Table::kRight},
               {"in, out", Table::kRight, /*spare=*/1},
               {"peak", Table::kRight}});
  auto time = [](const FusionReply& reply, std::string_view stage) {
    std::optional<double> ms = StageMilliseconds(reply, stage);
    return ms ? HumanMilliseconds(*ms) : std::string("cached");
  };
  for (const Contender* c : {&result.fused, &result.op_by_op}) {
    PlanMemory m = MemoryOf(c->plan());
    table.Add({std::string(FusionName(c->plan().fusion)), time(c->reply(), "plan"),
               time(c->reply(), "compile"), HumanBytes(m.arena + m.work), HumanBytes(m.prepared),
               HumanBytes(m.weights + m.constants), HumanBytes(m.inputs + m.outputs),
               HumanBytes(m.peak())});
  }
  return table.ToString();
}

std::string BenchText(const Arguments& arguments, const RunInputs& inputs,
                      const BenchResult& result) {
  const Plan& plan = result.fused.plan();
  std::string source = inputs.data.name;
  std::string out = StrCat(Bold(arguments.model), ": ",
                           Count(static_cast<int64_t>(result.fused.latency_us().size()), "pair"),
                           " of runs on ", TargetText(plan), ", ", source,
                           result.fused.variant() < 0 ? "" : ", the plan's variant", "\n\n",
                           LatencyTable(result), "\n", CostTable(result));
  if (arguments.per_kernel) {
    for (const Contender* c : {&result.fused, &result.op_by_op}) {
      if (c->ran().launches.empty()) continue;
      out += StrCat("\n", Bold(std::string(FusionName(c->plan().fusion))), "\n", KernelTable(*c));
    }
  }
  out +=
      StrCat("\nlargest difference between the two: ", ShortNumber(result.largest_difference()),
             " of max|b|; peak memory of this process: ", HumanBytes(ProcessPeakRssBytes()), "\n");
  if (result.reported_samples) {
    out += StrCat(*result.reported_samples, " samples reported for plan ",
                  result.fused.reply().plan_key.ToHex().substr(0, 16), ", see fusionctl report\n");
  }
  if (!result.report_error.empty()) out += StrCat("not reported: ", result.report_error, "\n");
  return out;
}

}  // namespace

absl::StatusOr<ExitCode> RunBench(const Arguments& arguments, Progress* progress) {
  if (arguments.suite) return RunBenchSuite(arguments, progress);
  ASSIGN_OR_RETURN(std::unique_ptr<ModelFile> file, ModelFile::Load(arguments.model, arguments));
  ASSIGN_OR_RETURN(RunInputs inputs, LoadRunInputs(arguments, *file));
  return WithService(arguments, progress, [&](const Client& client) -> absl::StatusOr<ExitCode> {
    ASSIGN_OR_RETURN(BenchResult result, MeasurePlans(arguments, *file, inputs, client, progress));
    if (arguments.json) {
      PrintJson(BenchJson(arguments, inputs, result));
    } else {
      Print(BenchText(arguments, inputs, result));
    }
    return kExitOk;
  });
}

}  // namespace fusion
