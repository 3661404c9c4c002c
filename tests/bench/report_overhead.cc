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

struct Runner {
  std::unique_ptr<FusedModel> model;
  std::vector<HostTensor> in, out;
  std::vector<const HostTensor*> inputs;
  std::vector<HostTensor*> outputs;
  std::vector<double> us;

  absl::Status Run(bool counts) {
    const Nanoseconds begin = Clock::Real().Now();
    RETURN_IF_ERROR(model->RunInto(inputs, outputs));
    if (counts) us.push_back(ToMicroseconds(Clock::Real().Now() - begin));
    return absl::OkStatus();
  }
};

absl::StatusOr<Runner> Load(const Client& client, const std::string& path, int threads,
                            bool reports) {
  FusedModelOptions options;
  options.target = DetectTarget();
  options.target->threads = threads;
  options.reports.enabled = reports;
  options.reports.every = kReportInterval;
  Runner out;
  ASSIGN_OR_RETURN(out.model, FusedModel::Load(client, path, options));
  for (size_t i = 0; i < out.model->inputs().size(); ++i) {
    const int position = out.model->plan().inputs[i];
    out.in.push_back(position < 0
                         ? HostTensor()
                         : OverheadInput(out.model->plan().tensors[static_cast<size_t>(position)]));
  }
  ASSIGN_OR_RETURN(out.out, out.model->MakeOutputs());
  for (const HostTensor& tensor : out.in) out.inputs.push_back(&tensor);
  for (HostTensor& tensor : out.out) out.outputs.push_back(&tensor);
  return out;
}

absl::Status Measure(const std::string& server, const std::string& path, int threads, int seconds) {
  ASSIGN_OR_RETURN(std::unique_ptr<Client> client, Client::Connect(server));
  ASSIGN_OR_RETURN(Runner with, Load(*client, path, threads, true));
  ASSIGN_OR_RETURN(Runner without, Load(*client, path, threads, false));
  const Nanoseconds end = Clock::Real().Now() + std::chrono::seconds(seconds);
  for (int i = 0; i < kWarmPairs || Clock::Real().Now() < end; ++i) {
    const bool counts = i >= kWarmPairs;
    RETURN_IF_ERROR((i % 2 == 0 ? with : without).Run(counts));
    RETURN_IF_ERROR((i % 2 == 0 ? without : with).Run(counts));
  }
  if (with.us.empty()) return FailedPrecondition("no time for a pair; expected more seconds");
  const MedianInterval ratio = MedianOf(Ratios(with.us, without.us));
  std::printf(
      "{\"pairs\": %zu, \"median\": %.6f, \"low95\": %.6f, \"high95\": %.6f, \"run_us\": %.2f}\n",
      with.us.size(), ratio.median - 1, ratio.low - 1, ratio.high - 1, MedianOf(without.us).median);
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
