// How fast the reference evaluator is, on one thread. It judges every kernel, so it must reach at
// least 0.5 GFLOP/s a core on MatMul; `evaluate_bench --benchmark_filter=MatMul` shows the figure,
// and `evaluate_bench --check-floor` exits with 1 below the floor.
#include <benchmark/benchmark.h>

#include <chrono>
#include <cstdio>
#include <cstring>

#include "core/graph/build/builder.h"
#include "core/graph/evaluate/evaluate.h"

namespace fusion {
namespace {

constexpr double kFloorGflops = 0.5;

// A graph of one op on f32 inputs of these shapes.
Graph OneOp(const char* op, const std::vector<Dims>& shapes, AttrMap attrs = {}) {
  GraphBuilder builder;
  std::vector<TensorId> inputs;
  for (const Dims& dims : shapes)
    inputs.push_back(builder.AddInput("x", {DType::kF32, Shape(dims)}));
  builder.MarkOutput(builder.AddNode(op, inputs, std::move(attrs)).value());
  return builder.Build().value();
}

std::vector<HostTensor> Inputs(const Graph& graph) {
  std::vector<HostTensor> out;
  for (TensorId id : graph.inputs()) {
    HostTensor t(DType::kF32, graph.tensor(id).type.shape.ToDims());
    for (int64_t i = 0; i < t.elements(); ++i) t.SetDouble(i, static_cast<double>(i % 17) / 8 - 1);
    out.push_back(std::move(t));
  }
  return out;
}

absl::StatusOr<const HostTensor*> NoWeights(TensorId) { return NotFound("no weights"); }

void RunGraph(benchmark::State& state, const Graph& graph, double operations) {
  std::vector<HostTensor> inputs = Inputs(graph);
  for (auto _ : state) {
    auto out = Evaluate(graph, inputs, NoWeights);
    if (!out.ok()) state.SkipWithError(std::string(Message(out.status())).c_str());
    benchmark::DoNotOptimize(out);
  }
  state.counters["GFLOP/s"] = benchmark::Counter(
      operations * 1e-9 * static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}

void MatMul(benchmark::State& state) {
  int64_t m = state.range(0);
  int64_t n = state.range(1);
  int64_t k = state.range(2);
  RunGraph(state, OneOp("MatMul", {{m, k}, {k, n}}), 2.0 * static_cast<double>(m * n * k));
}
BENCHMARK(MatMul)
    ->Args({128, 768, 768})
    ->Args({128, 3072, 768})
    ->Args({128, 768, 3072})
    ->Args({1, 768, 768})
    ->Args({512, 64, 64})
    ->Args({16, 16, 16})
    ->Unit(benchmark::kMillisecond);

// Scores of attention as exporters write them: k transposed before the product.
void BatchedMatMul(benchmark::State& state) {
  int64_t heads = 12;
  int64_t seq = state.range(0);
  RunGraph(state, OneOp("MatMul", {{1, heads, seq, 64}, {1, heads, 64, seq}}),
           2.0 * static_cast<double>(heads * seq * seq * 64));
}
BENCHMARK(BatchedMatMul)->Arg(128)->Arg(512)->Unit(benchmark::kMillisecond);

// b's rows run along k: the form that Gemm with transB gives.
void GemmTransposed(benchmark::State& state) {
  int64_t m = state.range(0);
  RunGraph(state, OneOp("Gemm", {{m, 768}, {768, 768}}, {{"transB", int64_t{1}}}),
           2.0 * static_cast<double>(m * 768 * 768));
}
BENCHMARK(GemmTransposed)->Arg(128)->Arg(1)->Unit(benchmark::kMillisecond);

void Softmax(benchmark::State& state) {
  RunGraph(state, OneOp("Softmax", {{1536, 512}}), 5.0 * 1536 * 512);
}
BENCHMARK(Softmax)->Unit(benchmark::kMillisecond);

void Erf(benchmark::State& state) { RunGraph(state, OneOp("Erf", {{128, 3072}}), 128.0 * 3072); }
BENCHMARK(Erf)->Unit(benchmark::kMillisecond);

void ReduceSum(benchmark::State& state) {
  RunGraph(state,
           OneOp("ReduceSum", {{1024, 768}}, {{"axes", std::vector<int64_t>{state.range(0)}}}),
           1024.0 * 768);
}
BENCHMARK(ReduceSum)->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);

// Best of a few runs of a BERT-sized product, in GFLOP/s.
double MeasureMatMul() {
  Graph graph = OneOp("MatMul", {{128, 768}, {768, 768}});
  std::vector<HostTensor> inputs = Inputs(graph);
  double best = 0;
  for (int i = 0; i < 5; ++i) {
    auto start = std::chrono::steady_clock::now();
    auto out = Evaluate(graph, inputs, NoWeights);
    std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    if (!out.ok()) return 0;
    best = std::max(best, 2e-9 * 128 * 768 * 768 / seconds.count());
  }
  return best;
}

int CheckFloor() {
  double gflops = MeasureMatMul();
  std::printf("evaluator, MatMul 128x768x768, one thread: %.2f GFLOP/s, floor %.2f\n", gflops,
              kFloorGflops);
  return gflops >= kFloorGflops ? 0 : 1;
}

}  // namespace
}  // namespace fusion

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--check-floor") == 0) return fusion::CheckFloor();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
