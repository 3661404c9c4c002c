// What reporting of latencies costs a run: pairs of runs of one model with and without reports.
//
//   report_overhead SERVER MODEL.onnx THREADS SECONDS
//
// Two copies of the model are loaded, one reports each second (by default it is each 30 s). Their
// runs alternate, the order within a pair too; the first pairs do not count. On stdout one JSON
// object: the number of pairs, the median of the ratio of their times minus one with its 95 %
// interval, and the median time of a run without reports. A report that is being sent slows runs of
// both copies: that is a call each second, on another thread.
#include <charconv>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "client/client.h"
#include "client/detect_target.h"
#include "client/fused_model.h"
#include "core/base/statistics/median_interval.h"

namespace fusion {
namespace {

constexpr int kWarmPairs = 20;
constexpr Nanoseconds kReportInterval = std::chrono::seconds(1);

// Floats are normal, everything else ones: good as masks, ids and positions.
HostTensor OverheadInput(const PlanTensor& tensor) {
  std::mt19937 random(1);
  std::normal_distribution<double> normal;
  HostTensor out(tensor.dtype, tensor.dims);
  for (int64_t i = 0; i < out.elements(); ++i) {
    if (IsFloat(tensor.dtype)) {
      out.SetDouble(i, normal(random));
    } else {
      out.SetInt(i, 1);
    }
  }
  return out;
}

// What both copies read and write, so that no place in memory favours one of them.
struct Tensors {
  std::vector<HostTensor> in, out;
  std::vector<const HostTensor*> inputs;
  std::vector<HostTensor*> outputs;
};

absl::Status MakeTensors(const FusedModel& model, Tensors* tensors) {
  for (size_t i = 0; i < model.inputs().size(); ++i) {
    const int position = model.plan().inputs[i];
    tensors->in.push_back(position < 0
                              ? HostTensor()
                              : OverheadInput(model.plan().tensors[static_cast<size_t>(position)]));
  }
  ASSIGN_OR_RETURN(tensors->out, model.MakeOutputs());
  for (const HostTensor& tensor : tensors->in) tensors->inputs.push_back(&tensor);
  for (HostTensor& tensor : tensors->out) tensors->outputs.push_back(&tensor);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<FusedModel>> LoadCopy(const Client& client, const std::string& path,
                                                     int threads, bool reports) {
  FusedModelOptions options;
  options.target = DetectTarget();
  options.target->threads = threads;
  options.reports.enabled = reports;
  options.reports.every = kReportInterval;
  return FusedModel::Load(client, path, options);
}

// Microseconds.
absl::StatusOr<double> TimeRun(const FusedModel& model, const Tensors& tensors) {
  const Nanoseconds begin = Clock::Real().Now();
  RETURN_IF_ERROR(model.RunInto(tensors.inputs, tensors.outputs));
  return ToMicroseconds(Clock::Real().Now() - begin);
}

absl::Status Measure(const std::string& server, const std::string& path, int threads, int seconds) {
  ASSIGN_OR_RETURN(std::unique_ptr<Client> client, Client::Connect(server));
  ASSIGN_OR_RETURN(const auto with, LoadCopy(*client, path, threads, true));
  ASSIGN_OR_RETURN(const auto without, LoadCopy(*client, path, threads, false));
  Tensors tensors;
  RETURN_IF_ERROR(MakeTensors(*with, &tensors));
  std::vector<double> with_us;
  std::vector<double> without_us;
  const Nanoseconds end = Clock::Real().Now() + std::chrono::seconds(seconds);
  for (int i = 0; i < kWarmPairs || Clock::Real().Now() < end; ++i) {
    const bool first = i % 2 == 0;
    ASSIGN_OR_RETURN(const double one, TimeRun(first ? *with : *without, tensors));
    ASSIGN_OR_RETURN(const double other, TimeRun(first ? *without : *with, tensors));
    if (i < kWarmPairs) continue;
    with_us.push_back(first ? one : other);
    without_us.push_back(first ? other : one);
  }
  if (with_us.empty()) return FailedPrecondition("no time for a pair; expected more seconds");
  const MedianInterval ratio = MedianOf(Ratios(with_us, without_us));
  std::printf(
      "{\"pairs\": %zu, \"median\": %.6f, \"low95\": %.6f, \"high95\": %.6f, \"run_us\": %.2f}\n",
      with_us.size(), ratio.median - 1, ratio.low - 1, ratio.high - 1, MedianOf(without_us).median);
  return absl::OkStatus();
}

bool ToNumber(std::string_view word, int* number) {
  const auto end = word.data() + word.size();
  const auto read = std::from_chars(word.data(), end, *number);
  return read.ec == std::errc() && read.ptr == end && *number > 0;
}

int OverheadMain(int argc, char** argv) {
  int threads = 0;
  int seconds = 0;
  if (argc != 5 || !ToNumber(argv[3], &threads) || !ToNumber(argv[4], &seconds)) {
    std::fprintf(stderr, "usage: report_overhead SERVER MODEL.onnx THREADS SECONDS\n");
    return 2;
  }
  const absl::Status status = Measure(argv[1], argv[2], threads, seconds);
  if (status.ok()) return 0;
  std::fprintf(stderr, "report_overhead: %s\n", std::string(Message(status)).c_str());
  return 1;
}

}  // namespace
}  // namespace fusion

int main(int argc, char** argv) { return fusion::OverheadMain(argc, argv); }
