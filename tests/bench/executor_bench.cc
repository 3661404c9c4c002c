// What the executor itself costs: a launch of a kernel that does nothing, and latency sampling.
//
//   executor_bench [--threads N]... [--launches N] [--runs N] [--pairs N] [--json]
//
// Dispatch: nanoseconds per launch over a chain of launches, and per phase where one launch has as
// many phases, median, p10 and p90 of many runs.
// Sampling: time with sampling over time without, blocks of runs in pairs, alternating; median of
// the pairs with its 95 % interval. "none" compares two executors that both do not sample: what the
// method cannot see.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "client/fusionctl/measure/statistics.h"
#include "client/fusionctl/output/print.h"
#include "core/runtime/executor.h"
#include "tests/support/hand_made_kernel.h"

namespace fusion {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  std::vector<int> threads = {1, 2};
  int launches = 50;
  int runs = 5000;
  int pairs = 600;
  bool json = false;
};

constexpr int64_t kElements = 64;

// input -> launch 0 -> ... -> output, through two places in the arena.
Plan ChainPlan(int launches, int threads) {
  Plan plan;
  plan.threads = threads;
  auto tensor = [&](Space space, int64_t offset) {
    plan.tensors.push_back({.dims = {kElements},
                            .strides = {1},
                            .space = space,
                            .offset = offset,
                            .bytes = kElements * 4});
    return static_cast<int>(plan.tensors.size()) - 1;
  };
  plan.inputs = {tensor(Space::kInput, 0)};
  plan.outputs = {tensor(Space::kOutput, 0)};
  int places[] = {tensor(Space::kArena, 0), tensor(Space::kArena, kElements * 4)};
  plan.arena_bytes = 2 * kElements * 4;
  int from = plan.inputs[0];
  for (int i = 0; i < launches; ++i) {
    int to = i + 1 == launches ? plan.outputs[0] : places[i % 2];
    plan.kernels.push_back({.symbol = StrCat("kernel_", i), .label = "Work", .scratch_bytes = 256});
    plan.groups.push_back({.label = "Work", .kernel = i});
    plan.launches.push_back({.group = i, .kernel = i, .tensors = {from, to}});
    from = to;
  }
  return plan;
}

// Each task multiplies and adds `steps` times, one after the other.
HandMadeKernel::Body Work(int64_t steps) {
  return [steps](const HandMadeKernel::Call& call) {
    float x = Floats(call, 0)[0];
    for (int64_t i = 0; i < steps; ++i) x = x * 0.999f + 1.0f;
    Floats(call, 1)[call.task] = x;
  };
}

// Steps of Work() that take a microsecond.
double StepsPerMicrosecond() {
  constexpr int64_t kSteps = 1'000'000;
  float in = 1;
  float out = 0;
  FusionTensor tensors[] = {{&in, nullptr}, {&out, nullptr}};
  FusionKernelArgs args{};
  args.tensors = tensors;
  HandMadeKernel kernel(2, TaskCount<1>, Work(kSteps));
  double best_us = 1e9;
  for (int i = 0; i < 20; ++i) {
    Nanoseconds begin = Clock::Real().Now();
    bool ok = kernel.Run(args, 0, 0, 1, 0).ok() && out > 1;  // read, so that it is computed
    FUSION_CHECK(ok, "a kernel of ours does not fail");
    best_us = std::min(best_us, ToMicroseconds(Clock::Real().Now() - begin));
  }
  return static_cast<double>(kSteps) / best_us;
}

// One executor with its tensors.
class Runner {
 public:
  Runner(int threads, bool sample, std::vector<std::shared_ptr<const LoadedKernel>> kernels) {
    ExecutorOptions options{.threads = threads, .sample_latencies = sample};
    Plan plan = ChainPlan(static_cast<int>(kernels.size()), threads);
    for (size_t k = 0; k < kernels.size(); ++k) {
      plan.kernels[k].phases = kernels[k]->descriptor().phases;
    }
    auto executor = Executor::Create(std::move(plan), std::move(kernels), std::move(options));
    FUSION_CHECK(executor.ok(), Message(executor.status()));
    executor_ = *std::move(executor);
    FUSION_CHECK(executor_->Prepare([](int) { return nullptr; }).ok(), "there are no weights");
    outputs_ = executor_->MakeOutputs().value();
    out_ = {&outputs_[0]};
    for (int i = 0; i < 50; ++i) Run();
  }

  void Run() { FUSION_CHECK(executor_->RunInto(in_, out_).ok(), "kernels of ours do not fail"); }
  double RunsUs(int runs) {
    Nanoseconds begin = Clock::Real().Now();
    for (int i = 0; i < runs; ++i) Run();
    return ToMicroseconds(Clock::Real().Now() - begin);
  }
  LatencySamples TakeSamples() { return executor_->TakeSamples(); }

 private:
  std::unique_ptr<Executor> executor_;
  HostTensor input_{DType::kF32, {kElements}};
  std::vector<HostTensor> outputs_;
  std::vector<const HostTensor*> in_{&input_};
  std::vector<HostTensor*> out_;
};

template <int64_t kTasks>
std::vector<std::shared_ptr<const LoadedKernel>> Kernels(int n, int64_t steps) {
  auto kernel = std::make_shared<HandMadeKernel>(
      2, TaskCount<kTasks>, steps == 0 ? [](const HandMadeKernel::Call&) {} : Work(steps));
  return std::vector<std::shared_ptr<const LoadedKernel>>(static_cast<size_t>(n), kernel);
}

// As many launches, or one launch of as many phases.
template <int64_t kTasks>
Json MeasureDispatch(const Options& options, int threads, bool in_phases) {
  std::vector<std::shared_ptr<const LoadedKernel>> kernels = Kernels<kTasks>(options.launches, 0);
  if (in_phases) {
    auto whole =
        std::make_shared<HandMadeKernel>(2, TaskCount<kTasks>, [](const HandMadeKernel::Call&) {});
    whole->own.phases = options.launches;
    kernels = {whole};
  }
  Runner runner(threads, /*sample=*/false, std::move(kernels));
  std::vector<double> ns;
  for (int i = 0; i < options.runs; ++i) {
    ns.push_back(runner.RunsUs(1) * 1e3 / options.launches);
  }
  return {{"threads", threads},
          {"tasks", kTasks},
          {"launches", options.launches},
          {in_phases ? "ns_per_phase" : "ns_per_launch", Quantile(ns, 0.5)},
          {"p10", Quantile(ns, 0.1)},
          {"p90", Quantile(ns, 0.9)}};
}

Json MeasureSampling(const Options& options, const std::string& plan, int threads, bool sample,
                     const std::vector<std::shared_ptr<const LoadedKernel>>& kernels) {
  constexpr double kBlockUs = 5000;
  Runner off(threads, false, kernels);
  Runner on(threads, sample, kernels);
  double run_us = off.RunsUs(200) / 200;
  int block = std::max(1, static_cast<int>(kBlockUs / run_us));
  on.RunsUs(block);
  LatencySamples taken = on.TakeSamples();
  std::vector<double> ratios;
  for (int i = 0; i < options.pairs; ++i) {
    double with = i % 2 == 0 ? on.RunsUs(block) : 0;
    double without = off.RunsUs(block);
    if (i % 2 != 0) with = on.RunsUs(block);
    ratios.push_back(with / without);
  }
  MedianInterval ratio = MedianOf(ratios);
  Json out = {{"plan", plan},
              {"threads", threads},
              {"launches", kernels.size()},
              {"sampling", sample ? "on" : "none"},
              {"run_us", run_us},
              {"ratio", ratio.median},
              {"low95", ratio.low},
              {"high95", ratio.high}};
  if (sample) {
    out["runs_per_sample"] = static_cast<double>(taken.runs) /
                             static_cast<double>(std::max<size_t>(1, taken.run_us.size()));
  }
  return out;
}

Json Measure(const Options& options) {
  Json out = {{"dispatch", Json::array()}, {"phases", Json::array()}, {"sampling", Json::array()}};
  for (int threads : options.threads) {
    for (bool in_phases : {false, true}) {
      Json& rows = out[in_phases ? "phases" : "dispatch"];
      rows.push_back(MeasureDispatch<1>(options, threads, in_phases));
      rows.push_back(MeasureDispatch<2>(options, threads, in_phases));
      rows.push_back(MeasureDispatch<16>(options, threads, in_phases));
    }
  }
  double steps = StepsPerMicrosecond();
  for (int threads : options.threads) {
    std::vector<std::shared_ptr<const LoadedKernel>> working;
    for (double us : {20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 100.0}) {
      working.push_back(Kernels<4>(1, static_cast<int64_t>(us * steps / 4))[0]);
    }
    for (bool sample : {false, true}) {
      out["sampling"].push_back(MeasureSampling(options, "20-100 us", threads, sample, working));
      out["sampling"].push_back(
          MeasureSampling(options, "empty", threads, sample, Kernels<1>(options.launches, 0)));
    }
  }
  return out;
}

void PrintRow(const Json& result) {
  for (const char* each : {"launch", "phase"}) {
    for (const Json& row : result[each == std::string_view("launch") ? "dispatch" : "phases"]) {
      std::printf("dispatch  %d thread(s), %2d task(s): %7.0f ns per %-6s  (p10 %.0f, p90 %.0f)\n",
                  row["threads"].get<int>(), row["tasks"].get<int>(),
                  row[StrCat("ns_per_", each)].get<double>(), each, row["p10"].get<double>(),
                  row["p90"].get<double>());
    }
  }
  for (const Json& row : result["sampling"]) {
    std::printf("sampling  %d thread(s), %2d launches, %-9s, %-4s: %.4f  (95 %%: %.4f..%.4f)",
                row["threads"].get<int>(), row["launches"].get<int>(),
                row["plan"].get<std::string>().c_str(), row["sampling"].get<std::string>().c_str(),
                row["ratio"].get<double>(), row["low95"].get<double>(),
                row["high95"].get<double>());
    if (row.contains("runs_per_sample")) {
      std::printf("  one run in %.0f timed", row["runs_per_sample"].get<double>());
    }
    std::printf("\n");
  }
}

}  // namespace
}  // namespace fusion

int main(int argc, char** argv) {
  fusion::Options options;
  CLI::App app("What the executor itself costs: dispatch and latency sampling");
  app.add_option("--threads", options.threads, "numbers of threads to measure with")
      ->check(CLI::PositiveNumber);
  app.add_option("--launches", options.launches, "of the chain of empty kernels")
      ->check(CLI::PositiveNumber);
  app.add_option("--runs", options.runs, "of each chain")->check(CLI::PositiveNumber);
  app.add_option("--pairs", options.pairs, "of blocks with and without sampling")
      ->check(CLI::PositiveNumber);
  app.add_flag("--json", options.json, "for programs");
  CLI11_PARSE(app, argc, argv);
  fusion::Json result = fusion::Measure(options);
  if (options.json) {
    std::printf("%s\n", result.dump(2).c_str());
  } else {
    fusion::PrintRow(result);
  }
  return 0;
}
