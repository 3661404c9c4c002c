// What reporting of latencies costs a run: pairs of runs of one model with and without reports.
//
//   report_overhead SERVER MODEL.onnx THREADS SECONDS
//
// Each round loads two copies of the model. One copy reports each second (the default is 30 s).
// Their runs alternate, the order within a pair too; the first pairs do not count. Where a copy
// lies in memory can make it some percent faster, so copies are fresh in each round. On stdout one
// JSON object: the number of pairs; the median over rounds of the ratio of the times minus one,
// with its 95 % interval; the median time of a run without reports. A report that is being sent
// slows runs of both copies: that is a call each second, on another thread.
#include <charconv>
#include <cstdio>
#include <string>
#include <vector>

#include "client/client.h"
#include "client/detect_target.h"
#include "client/fused_model.h"
#include "core/base/statistics/median_interval.h"
#include "tests/bench/plain_values.h"

namespace fusion {
namespace {

constexpr int kWarmPairs = 20;
constexpr int kRounds = 20;
constexpr Nanoseconds kReportInterval = std::chrono::seconds(1);

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
                              : PlainValues(model.plan().tensors[static_cast<size_t>(position)]));
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

// Pairs of runs of two fresh copies.
struct Round {
  std::vector<double> with_us;
  std::vector<double> without_us;
};

absl::StatusOr<Round> RunRound(const Client& client, const std::string& path, int threads,
                               bool reports_first, Nanoseconds time) {
  ASSIGN_OR_RETURN(const auto a, LoadCopy(client, path, threads, reports_first));
  ASSIGN_OR_RETURN(const auto b, LoadCopy(client, path, threads, !reports_first));
  const FusedModel& with = reports_first ? *a : *b;
  const FusedModel& without = reports_first ? *b : *a;
  Tensors tensors;
  RETURN_IF_ERROR(MakeTensors(with, &tensors));
  Round out;
  const Nanoseconds end = Clock::Real().Now() + time;
  for (int i = 0; i <= kWarmPairs || Clock::Real().Now() < end; ++i) {
    const bool first = i % 2 == 0;
    ASSIGN_OR_RETURN(const double one, TimeRun(first ? with : without, tensors));
    ASSIGN_OR_RETURN(const double other, TimeRun(first ? without : with, tensors));
    if (i < kWarmPairs) continue;
    out.with_us.push_back(first ? one : other);
    out.without_us.push_back(first ? other : one);
  }
  return out;
}

absl::Status Measure(const std::string& server, const std::string& path, int threads, int seconds) {
  ASSIGN_OR_RETURN(std::unique_ptr<Client> client, Client::Connect(server));
  std::vector<double> rounds;
  std::vector<double> run_us;
  size_t pairs = 0;
  const Nanoseconds time = std::chrono::seconds(seconds);
  for (int r = 0; r < kRounds; ++r) {
    ASSIGN_OR_RETURN(const Round round,
                     RunRound(*client, path, threads, r % 2 == 0, time / kRounds));
    rounds.push_back(MedianOf(Ratios(round.with_us, round.without_us)).median);
    run_us.push_back(MedianOf(round.without_us).median);
    pairs += round.with_us.size();
  }
  const MedianInterval ratio = MedianOf(rounds);
  std::printf(
      "{\"pairs\": %zu, \"median\": %.6f, \"low95\": %.6f, \"high95\": %.6f, \"run_us\": %.2f}\n",
      pairs, ratio.median - 1, ratio.low - 1, ratio.high - 1, MedianOf(run_us).median);
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
