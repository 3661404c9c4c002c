// Predicted against measured latency of every kernel of a plan, fused and op-by-op, in one process.
//
//   kernel_bench MODEL... [--device NAME] [--threads N] [--runs N] [--op-by-op]
//
// MODEL: a model of fusion-modelgen by name ("bert_layer"), or a .onnx file without large weights.
// Prints one line a kernel and a total; medians in microseconds.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "core/graph/build/canonical.h"
#include "core/graph/evaluate/test_values.h"
#include "core/import/import.h"
#include "core/onnx/model_io.h"
#include "tests/models/models.h"
#include "tests/support/kernel_harness.h"

namespace fusion {
namespace {

struct Options {
  std::vector<std::string> models;
  std::string device = "intel-skylake-server";
  int threads = 1;
  int runs = 30;
  bool op_by_op = false;
};

absl::StatusOr<CanonicalGraph> LoadGraph(const std::string& name) {
  onnx::ModelProto model;
  if (name.ends_with(".onnx")) {
    ASSIGN_OR_RETURN(model, LoadModel(name));
  } else {
    ASSIGN_OR_RETURN(GeneratedModel generated, GenerateModel(name));
    model = std::move(generated.model);
  }
  ASSIGN_OR_RETURN(Graph graph, ImportOnnx(model));
  return Canonicalise(graph);
}

// Weights of a size that keeps results near 1, whatever the model.
HostTensor RandomWeight(const TensorType& type, uint64_t seed) {
  HostTensor weight = RandomTensor(type, seed);
  if (type.dtype != DType::kF32) return weight;
  float scale = weight.dims().size() > 1
                    ? 1.0f / std::sqrt(static_cast<float>(std::max<int64_t>(weight.dims()[0], 1)))
                    : 0.1f;
  for (float& v : weight.data<float>()) v *= scale;
  return weight;
}

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<int64_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

void Print(const Plan& plan, const std::vector<std::vector<double>>& launch_us,
           const std::vector<double>& total_us, bool every_kernel) {
  for (size_t i = 0; every_kernel && i < plan.launches.size(); ++i) {
    const PlanGroup& group = plan.groups[static_cast<size_t>(plan.launches[i].group)];
    double measured = Median(launch_us[i]);
    const Estimate& e = group.estimate;
    std::printf("  %-70.70s %9.1f us, predicted %9.1f, %7.1f Gflop/s, %6.2f GB/s\n",
                group.label.c_str(), measured, e.time_us, e.flops / measured / 1e3,
                static_cast<double>(e.activation_bytes + e.weight_bytes) / measured / 1e3);
  }
  std::printf("  %-70s %9.1f us, predicted %9.1f\n",
              plan.fusion == FusionMode::kFused ? "fused" : "op-by-op", Median(total_us),
              plan.totals.estimated_us);
}

absl::Status Measure(const std::string& name, const Options& options) {
  ASSIGN_OR_RETURN(CanonicalGraph canonical, LoadGraph(name));
  const Graph& graph = canonical.graph;
  DeviceSpec device = DeviceNamed(options.device, options.threads);
  std::vector<HostTensor> inputs;
  std::vector<HostTensor> weights;
  for (TensorId id : graph.inputs()) {
    inputs.push_back(RandomTensor(graph.tensor(id).type, 7 + static_cast<uint64_t>(id)));
  }
  for (const Tensor& t : graph.tensors()) {
    if (t.kind == TensorKind::kWeight) weights.push_back(RandomWeight(t.type, weights.size()));
  }
  std::vector<std::unique_ptr<Executor>> executors;
  for (FusionMode mode : {FusionMode::kFused, FusionMode::kOpByOp}) {
    ASSIGN_OR_RETURN(PlannedModel model, MakePlan(graph, device, {.fusion = mode}));
    ASSIGN_OR_RETURN(std::unique_ptr<Executor> executor, CompilePlan(model, device));
    RETURN_IF_ERROR(executor->Prepare([&](int i) -> absl::StatusOr<const HostTensor*> {
      return &weights[static_cast<size_t>(i)];
    }));
    executors.push_back(std::move(executor));
  }
  std::vector<std::vector<double>> total_us(executors.size());
  std::vector<std::vector<std::vector<double>>> launch_us(executors.size());
  for (int run = 0; run < options.runs; ++run) {
    for (size_t e = 0; e < executors.size(); ++e) {
      RunProfile profile;
      RETURN_IF_ERROR(executors[e]->Run(inputs, &profile).status());
      total_us[e].push_back(profile.total_us);
      launch_us[e].resize(profile.launch_us.size());
      for (size_t i = 0; i < profile.launch_us.size(); ++i) {
        launch_us[e][i].push_back(profile.launch_us[i]);
      }
    }
  }
  std::printf("%s, %s, %d thread(s), %d runs\n", name.c_str(), device.name.c_str(), options.threads,
              options.runs);
  for (size_t e = 0; e < executors.size(); ++e) {
    Print(executors[e]->plan(), launch_us[e], total_us[e], e == 0 || options.op_by_op);
  }
  std::vector<double> ratio;
  for (size_t i = 0; i < total_us[0].size(); ++i) ratio.push_back(total_us[0][i] / total_us[1][i]);
  std::printf("  fused / op-by-op, median of pairs: %.3f\n", Median(ratio));
  return absl::OkStatus();
}

}  // namespace
}  // namespace fusion

int main(int argc, char** argv) {
  fusion::Options options;
  CLI::App app("Predicted against measured latency of every kernel of a plan");
  app.add_option("models", options.models, "generated models by name, or .onnx files")->required();
  app.add_option("--device", options.device, "device spec to plan with");
  app.add_option("--threads", options.threads, "threads that run the plan");
  app.add_option("--runs", options.runs, "runs of each plan, alternating");
  app.add_flag("--op-by-op", options.op_by_op, "also each kernel of the op-by-op plan");
  CLI11_PARSE(app, argc, argv);
  for (const std::string& model : options.models) {
    absl::Status status = fusion::Measure(model, options);
    if (!status.ok()) {
      std::fprintf(stderr, "kernel_bench: %s: %s\n", model.c_str(),
                   std::string(status.message()).c_str());
      return 1;
    }
  }
  return 0;
}
