// Throughput cost of every scalar function relative to an addition, as ScalarInfo::cost wants it:
// the time a chain of the function adds to a copy of an array in L1, over that of a chain of
// additions. Functions that need many registers may take several kernels; their loads are then part
// of the cost.
//
//   scalar_cost [DEVICE]       for every generic spec this machine runs, or for one
#include <algorithm>
#include <cstdio>
#include <functional>

#include "core/graph/build/builder.h"
#include "core/graph/build/canonical.h"
#include "core/graph/evaluate/test_values.h"
#include "tests/support/kernel_harness.h"

namespace fusion {
namespace {

constexpr int64_t kElements = 2048;  // 8 KiB in, 8 KiB out
constexpr int kCalls = 2000;         // of the kernel, in one measurement
constexpr int kRuns = 15;

// `count` applications of `op` in a chain.
absl::StatusOr<Graph> Chain(const std::string& op, int arity, int count) {
  GraphBuilder builder;
  TensorType type{DType::kF32, Shape{kElements}};
  TensorId x = builder.AddInput("x", type);
  TensorId y = builder.AddInput("y", type);
  TensorId at = x;
  for (int i = 0; i < count; ++i) {
    std::vector<TensorId> inputs = {at};
    if (arity > 1) inputs.push_back(y);
    ASSIGN_OR_RETURN(at, builder.AddNode(op, inputs));
  }
  // The copy that every chain has in common.
  ASSIGN_OR_RETURN(at, builder.AddNode("Sub", {at, y}));
  builder.MarkOutput(at);
  return builder.Build();
}

absl::StatusOr<double> CallNanoseconds(const Graph& graph, const DeviceSpec& device) {
  ASSIGN_OR_RETURN(CanonicalGraph canonical, Canonicalise(graph));
  ASSIGN_OR_RETURN(PlannedModel model, MakePlan(canonical.graph, device, {}));
  ASSIGN_OR_RETURN(std::unique_ptr<Executor> executor, CompilePlan(model, device));
  RETURN_IF_ERROR(executor->Prepare(
      [](int) -> absl::StatusOr<const HostTensor*> { return Internal("no weights"); }));
  std::vector<HostTensor> inputs;
  for (TensorId id : canonical.graph.inputs()) {
    HostTensor input = RandomTensor(canonical.graph.tensor(id).type, 3);
    for (float& v : input.data<float>()) v = 0.5f + 0.1f * std::min(std::max(v, -3.0f), 3.0f);
    inputs.push_back(std::move(input));
  }
  std::vector<HostTensor> outputs = executor->MakeOutputs().value();
  std::vector<const HostTensor*> in;
  std::vector<HostTensor*> out;
  for (const HostTensor& t : inputs) in.push_back(&t);
  for (HostTensor& t : outputs) out.push_back(&t);
  std::vector<double> runs;
  for (int run = 0; run < kRuns; ++run) {
    Nanoseconds start = Clock::Real().Now();
    for (int call = 0; call < kCalls; ++call) RETURN_IF_ERROR(executor->RunInto(in, out));
    runs.push_back(static_cast<double>((Clock::Real().Now() - start).count()) / kCalls);
  }
  std::sort(runs.begin(), runs.end());
  return runs[runs.size() / 2];
}

absl::Status Measure(const std::string& device_name) {
  DeviceSpec device = DeviceNamed(device_name);
  constexpr int kAdds = 16;
  ASSIGN_OR_RETURN(Graph empty, Chain("Add", 2, 0));
  ASSIGN_OR_RETURN(Graph adds, Chain("Add", 2, kAdds));
  ASSIGN_OR_RETURN(double copy, CallNanoseconds(empty, device));
  ASSIGN_OR_RETURN(double added, CallNanoseconds(adds, device));
  double add = (added - copy) / kAdds;
  std::printf("%s: one addition %.3f ns a vector of %d\n", device_name.c_str(),
              add * device.vector_bytes / 4 / static_cast<double>(kElements),
              device.vector_bytes / 4);
  struct Function {
    const char* op;
    int arity;
  };
  for (const Function& f : std::initializer_list<Function>{
           {"Sub", 2},   {"Mul", 2},  {"Div", 2},    {"Max", 2},        {"Min", 2}, {"Pow", 2},
           {"Neg", 1},   {"Abs", 1},  {"Sign", 1},   {"Exp", 1},        {"Log", 1}, {"Sqrt", 1},
           {"Erf", 1},   {"Tanh", 1}, {"Sin", 1},    {"Reciprocal", 1}, {"Cos", 1}, {"Floor", 1},
           {"Round", 1}, {"Ceil", 1}, {"Sigmoid", 1}}) {
    constexpr int kCount = 4;
    ASSIGN_OR_RETURN(Graph chain, Chain(f.op, f.arity, kCount));
    ASSIGN_OR_RETURN(double with, CallNanoseconds(chain, device));
    std::printf("  %-12s %6.1f\n", f.op, (with - copy) / kCount / add);
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace fusion

int main(int argc, char** argv) {
  std::vector<std::string> devices = fusion::RunnableDevices();
  if (argc > 1) devices = {argv[1]};
  for (const std::string& device : devices) {
    absl::Status status = fusion::Measure(device);
    if (!status.ok()) {
      std::fprintf(stderr, "scalar_cost: %s\n", std::string(status.message()).c_str());
      return 1;
    }
  }
  return 0;
}
