// How long planning takes and how it grows with the graph.
//
//   plan_scale [--nodes N,...] [--model FILE.onnx]... [--bind NAME=NUMBER]... [--runs N]
//              [--device NAME] [--threads N] [--memory-pressure X] [--frontier]
//
// Plans transformers of about as many nodes as asked for, all layers equal, and the models given.
// Prints one JSON object: a record per graph (median milliseconds of import with folding, of
// canonical form, and of MakePlan: by the clock, and of the processor), and the exponent of the
// growth of MakePlan's processor time over the series.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>

#include "core/graph/build/canonical.h"
#include "core/import/import.h"
#include "core/onnx/model_io.h"
#include "core/plan/planner.h"
#include "tests/support/transformer_graph.h"
#include "tests/support/whole_program.h"

namespace fusion {
namespace {

struct Options {
  std::vector<int> nodes;
  std::vector<std::string> models;
  std::vector<std::string> bind;
  int runs = 3;
  std::string device = "intel-skylake-server";
  int threads = 2;
  PlanOptions plan;
};

struct Times {
  double ms = 0;      // by the clock
  double cpu_ms = 0;  // of the processor
};

double MedianOf(std::vector<double> values) {
  auto middle = values.begin() + static_cast<int64_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Medians over calls of `function`.
template <typename F>
Times Median(int runs, const F& function) {
  std::vector<double> ms;
  std::vector<double> cpu_ms;
  for (int i = 0; i < std::max(runs, 1); ++i) {
    auto start = std::chrono::steady_clock::now();
    std::clock_t cpu = std::clock();
    function();
    cpu_ms.push_back(1e3 * static_cast<double>(std::clock() - cpu) / CLOCKS_PER_SEC);
    ms.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
                     .count());
  }
  return {MedianOf(std::move(ms)), MedianOf(std::move(cpu_ms))};
}

absl::StatusOr<nlohmann::json> Measure(const std::string& name, const Graph& graph,
                                       const Options& options) {
  DeviceSpec device = DeviceNamed(options.device, options.threads);
  absl::Status status = absl::OkStatus();
  CanonicalGraph canonical;
  Times canonical_time = Median(1, [&] {
    auto made = Canonicalise(graph);
    if (made.ok()) canonical = *std::move(made);
    if (!made.ok()) status = made.status();
  });
  RETURN_IF_ERROR(status);
  Plan plan;
  Times plan_time = Median(options.runs, [&] {
    auto model = MakePlan(canonical.graph, device, options.plan);
    if (!model.ok()) status = model.status();
    if (model.ok()) plan = std::move(model->plan);
  });
  RETURN_IF_ERROR(status);
  return nlohmann::json{{"graph", name},
                        {"nodes", canonical.graph.nodes().size()},
                        {"canonical_ms", canonical_time.ms},
                        {"plan_ms", plan_time.ms},
                        {"plan_cpu_ms", plan_time.cpu_ms},
                        {"launches", plan.launches.size()},
                        {"decisions", plan.decisions.size()},
                        {"estimated_us", plan.totals.estimated_us},
                        {"op_by_op_us", plan.op_by_op.estimated_us}};
}

absl::StatusOr<nlohmann::json> MeasureModel(const std::string& file, const Options& options) {
  ASSIGN_OR_RETURN(onnx::ModelProto model, LoadModel(file));
  ImportOptions import;
  for (const std::string& bind : options.bind) {
    size_t at = bind.find('=');
    if (at == bind.npos) return InvalidArgument("--bind ", bind, ": want NAME=NUMBER");
    import.dim_bindings[bind.substr(0, at)] = std::atoll(bind.c_str() + at + 1);
  }
  absl::StatusOr<Graph> graph = InvalidArgument("not imported");
  Times import_time = Median(options.runs, [&] { graph = ImportOnnx(model, import); });
  RETURN_IF_ERROR(graph.status());
  ASSIGN_OR_RETURN(nlohmann::json record, Measure(file, *graph, options));
  record["import_ms"] = import_time.ms;
  record["model_nodes"] = model.graph().node_size();
  return record;
}

// Slope of log(time) over log(nodes), by least squares.
double Exponent(const nlohmann::json& records) {
  double n = 0, sx = 0, sy = 0, sxx = 0, sxy = 0;
  for (const nlohmann::json& r : records) {
    double x = std::log(r["nodes"].get<double>());
    double y = std::log(r["plan_cpu_ms"].get<double>());
    n += 1;
    sx += x;
    sy += y;
    sxx += x * x;
    sxy += x * y;
  }
  return n < 2 ? 0 : (n * sxy - sx * sy) / (n * sxx - sx * sx);
}

absl::Status Run(const Options& options) {
  nlohmann::json out;
  out["series"] = nlohmann::json::array();
  out["models"] = nlohmann::json::array();
  constexpr int kNodesOfALayer = 47;
  for (int nodes : options.nodes) {
    int layers = std::max(1, nodes / kNodesOfALayer);
    ASSIGN_OR_RETURN(nlohmann::json record, Measure(StrCat("transformer of ", layers, " layers"),
                                                    TransformerGraph(layers), options));
    std::fprintf(stderr, "%s\n", record.dump().c_str());
    out["series"].push_back(std::move(record));
  }
  for (const std::string& model : options.models) {
    ASSIGN_OR_RETURN(nlohmann::json record, MeasureModel(model, options));
    std::fprintf(stderr, "%s\n", record.dump().c_str());
    out["models"].push_back(std::move(record));
  }
  out["exponent"] = Exponent(out["series"]);
  std::printf("%s\n", out.dump(2).c_str());
  return absl::OkStatus();
}

}  // namespace
}  // namespace fusion

int main(int argc, char** argv) {
  fusion::Options options;
  CLI::App app{"How long planning takes and how it grows with the graph."};
  app.add_option("--nodes", options.nodes,
                 "sizes of the series; default: 1000 to 100000, or none with --model")
      ->delimiter(',');
  app.add_option("--model", options.models, "ONNX files");
  app.add_option("--bind", options.bind, "values of symbolic dims: NAME=NUMBER");
  app.add_option("--runs", options.runs, "runs of which the median is told");
  app.add_option("--device", options.device, "a built-in device spec");
  app.add_option("--threads", options.threads, "threads of the target");
  app.add_option("--memory-pressure", options.plan.hints.memory_pressure, "0 to 1");
  app.add_flag("--frontier", options.plan.frontier, "weigh more plans");
  CLI11_PARSE(app, argc, argv);
  if (options.nodes.empty() && options.models.empty()) {
    options.nodes = {1000, 3000, 10000, 30000, 100000};
  }
  absl::Status status = fusion::Run(options);
  if (!status.ok()) std::fprintf(stderr, "plan_scale: %s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
