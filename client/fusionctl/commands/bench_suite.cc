#include "client/fusionctl/commands/bench_suite.h"

#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "client/detect_target.h"
#include "client/fusionctl/measure/bench_pairs.h"
#include "client/fusionctl/measure/output_summary.h"
#include "client/fusionctl/measure/statistics.h"
#include "client/fusionctl/measure/suite_models.h"
#include "client/fusionctl/output/print.h"
#include "client/fusionctl/service/session.h"
#include "core/bundle/text.h"

namespace fusion {
namespace {

// Default of --seconds, for the pairs of one model with one number of threads.
constexpr double kSecondsOfARow = 2;

/// The figures of one plan.
struct SuitePlan {
  std::vector<double> latency_us;
  PlanTotals totals;
};

struct SuiteRow {
  std::string id, name;
  std::string isa;
  Numerics numerics = Numerics::kFp32Accumulate;
  int threads = 0;
  SuitePlan op_by_op, fused;
  MedianInterval ratio;
  double largest_difference = 0;

  /// The fraction of op-by-op traffic that fusion saves.
  double saved() const {
    const auto before = static_cast<double>(op_by_op.totals.activation_bytes);
    return before > 0 ? 1 - static_cast<double>(fused.totals.activation_bytes) / before : 0;
  }
};

SuitePlan ShownOf(const Contender& contender) {
  return {contender.latency_us(), contender.ran().totals};
}

// One thread and all; or --threads.
std::vector<int> ThreadCounts(const Arguments& arguments) {
  if (arguments.threads > 0) return {arguments.threads};
  const int all = DetectTarget(0).threads;
  return all > 1 ? std::vector<int>{1, all} : std::vector<int>{1};
}

absl::StatusOr<SuiteRow> MeasureRow(const Arguments& arguments, const SuiteModel& one,
                                    const ModelFile& file, const Client& client,
                                    Progress* progress) {
  ASSIGN_OR_RETURN(RunInputs inputs, LoadRunInputs(arguments, file));
  ASSIGN_OR_RETURN(BenchResult result, MeasurePlans(arguments, file, inputs, client, progress));
  return SuiteRow{.id = one.model.graph().name(),
                  .name = one.name,
                  .isa = result.fused.plan().isa,
                  .numerics = one.numerics,
                  .threads = arguments.threads,
                  .op_by_op = ShownOf(result.op_by_op),
                  .fused = ShownOf(result.fused),
                  .ratio = result.ratio(),
                  .largest_difference = result.largest_difference()};
}

absl::StatusOr<std::vector<SuiteRow>> MeasureSuite(const Arguments& given, const Client& client,
                                                   Progress* progress) {
  std::vector<SuiteRow> rows;
  for (const SuiteModel& one : SuiteModels()) {
    Arguments arguments = given;
    arguments.model = one.name;
    arguments.seconds = given.seconds.value_or(kSecondsOfARow);
    arguments.options.numerics = one.numerics;
    arguments.report = false;  // reports about these plans are of no use
    ASSIGN_OR_RETURN(std::unique_ptr<ModelFile> file,
                     ModelFile::Make(one.model, one.name, arguments));
    for (int threads : ThreadCounts(given)) {
      arguments.threads = threads;
      absl::StatusOr<SuiteRow> row = MeasureRow(arguments, one, *file, client, progress);
      if (!row.ok()) return Annotate(row.status(), one.name);
      rows.push_back(*std::move(row));
    }
  }
  return rows;
}

Json PlanJson(const SuitePlan& plan) {
  return {{"latency_us", LatencyJson(plan.latency_us)},
          {"kernels", plan.totals.kernels},
          {"activation_bytes", plan.totals.activation_bytes}};
}

Json SuiteJson(const std::vector<SuiteRow>& rows) {
  Json out = {{"device", DeviceName()}, {"models", Json::array()}};
  for (const SuiteRow& row : rows) {
    out["models"].push_back(
        {{"id", row.id},
         {"model", row.name},
         {"numerics", NumericsName(row.numerics)},
         {"threads", row.threads},
         {"isa", row.isa},
         {"pairs", row.fused.latency_us.size()},
         {"op_by_op", PlanJson(row.op_by_op)},
         {"fused", PlanJson(row.fused)},
         {"ratio", RatioJson(row.ratio)},
         {"traffic_saved", row.saved()},
         {"max_rel_between", DifferenceJson({.max_rel = row.largest_difference})["max_rel"]}});
  }
  return out;
}

std::string SuiteText(const std::vector<SuiteRow>& rows) {
  Table table({{"model"},
               {"threads", Table::kRight},
               {"op by op", Table::kRight},
               {"fused", Table::kRight},
               {"ratio", Table::kRight},
               {"95 % interval", Table::kRight, /*spare=*/2},
               {"kernels", Table::kRight, /*spare=*/3},
               {"traffic", Table::kRight, /*spare=*/1},
               {"saved", Table::kRight}});
  for (const SuiteRow& row : rows) {
    const PlanTotals& before = row.op_by_op.totals;
    const PlanTotals& after = row.fused.totals;
    table.Add(
        {row.name, StrCat(row.threads), HumanMicroseconds(MedianOf(row.op_by_op.latency_us).median),
         HumanMicroseconds(MedianOf(row.fused.latency_us).median), ShortNumber(row.ratio.median),
         StrCat(ShortNumber(row.ratio.low), " .. ", ShortNumber(row.ratio.high)),
         StrCat(before.kernels, " -> ", after.kernels),
         StrCat(HumanBytes(before.activation_bytes), " -> ", HumanBytes(after.activation_bytes)),
         HumanPercent(row.saved())});
  }
  return StrCat(Bold("fused against op by op"), " on ", DeviceName(),
                ", random weights and inputs\n\n", table.ToString(),
                "\nratio: time of the fused plan by that of op by op, median of pairs of runs; "
                "kernels and traffic (activations that move off chip): op by op -> fused\n");
}

}  // namespace

absl::StatusOr<ExitCode> RunBenchSuite(const Arguments& arguments, Progress* progress) {
  return WithService(arguments, progress, [&](const Client& client) -> absl::StatusOr<ExitCode> {
    ASSIGN_OR_RETURN(std::vector<SuiteRow> rows, MeasureSuite(arguments, client, progress));
    if (arguments.json) {
      PrintJson(SuiteJson(rows));
    } else {
      Print(SuiteText(rows));
    }
    return kExitOk;
  });
}

}  // namespace fusion
