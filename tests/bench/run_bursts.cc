// Our side of tests/bench/peers.sh: loads a model once and times bursts of runs on demand.
//
//   run_bursts SERVER MODEL.onnx THREADS [--isa ISA] [--numerics fp32-accumulate|fast]
//              [--opt-level 0..3]
//
// For each number on stdin so many runs, and one line on stdout: a JSON list of the microseconds of
// each, the first one left out (it finds threads parked and caches cold). Outputs are written into
// the same tensors every time.
#include <charconv>
#include <cstdio>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "client/client.h"
#include "client/detect_target.h"
#include "client/fused_model.h"
#include "tests/bench/plain_values.h"

namespace fusion {
namespace {

absl::Status Burst(const FusedModel& model, const std::vector<const HostTensor*>& inputs,
                   const std::vector<HostTensor*>& outputs, int runs) {
  std::vector<std::string> times;
  for (int i = 0; i <= runs; ++i) {
    Nanoseconds begin = Clock::Real().Now();
    RETURN_IF_ERROR(model.RunInto(inputs, outputs));
    Nanoseconds took = Clock::Real().Now() - begin;
    if (i > 0) times.push_back(StrCat(ToMicroseconds(took)));
  }
  std::printf("[%s]\n", StrJoin(times, ", ").c_str());
  std::fflush(stdout);
  return absl::OkStatus();
}

// What to run, and how.
struct Job {
  std::string server;
  std::string model;
  FusedModelOptions options;
};

// nullopt for words that are no job.
std::optional<Job> ParseJob(const std::vector<std::string>& words) {
  if (words.size() < 3 || words.size() % 2 == 0) return std::nullopt;
  Job job{words[0], words[1], {}};
  int threads = 0;
  std::from_chars(words[2].data(), words[2].data() + words[2].size(), threads);
  if (threads < 1) return std::nullopt;
  job.options.target = DetectTarget(threads);
  for (size_t i = 3; i < words.size(); i += 2) {
    const std::string& value = words[i + 1];
    if (words[i] == "--isa") {
      job.options.target->isa = value;
    } else if (words[i] == "--numerics" && (value == "fast" || value == "fp32-accumulate")) {
      job.options.plan.numerics = value == "fast" ? Numerics::kFast : Numerics::kFp32Accumulate;
    } else if (words[i] == "--opt-level") {
      int& level = job.options.plan.opt_level;
      const auto read = std::from_chars(value.data(), value.data() + value.size(), level);
      const bool whole = read.ec == std::errc() && read.ptr == value.data() + value.size();
      if (!whole || level < 0 || level > kMaxOptLevel) return std::nullopt;
    } else {
      return std::nullopt;
    }
  }
  return job;
}

absl::Status Serve(const Job& job) {
  ASSIGN_OR_RETURN(std::unique_ptr<Client> client, Client::Connect(job.server));
  ASSIGN_OR_RETURN(std::unique_ptr<FusedModel> model,
                   FusedModel::Load(*client, job.model, job.options));
  std::vector<HostTensor> inputs;
  for (int position : model->plan().inputs) {
    // What the graph does not read may be anything.
    inputs.push_back(position < 0
                         ? HostTensor()
                         : PlainValues(model->plan().tensors[static_cast<size_t>(position)]));
  }
  ASSIGN_OR_RETURN(std::vector<HostTensor> outputs, model->MakeOutputs());
  std::vector<const HostTensor*> in;
  std::vector<HostTensor*> out;
  for (const HostTensor& tensor : inputs) in.push_back(&tensor);
  for (HostTensor& tensor : outputs) out.push_back(&tensor);
  for (int runs = 0; std::cin >> runs;) RETURN_IF_ERROR(Burst(*model, in, out, runs));
  return absl::OkStatus();
}

}  // namespace
}  // namespace fusion

int main(int argc, char** argv) {
  const std::optional<fusion::Job> job = fusion::ParseJob({argv + 1, argv + argc});
  if (!job) {
    std::fprintf(stderr,
                 "usage: run_bursts SERVER MODEL.onnx THREADS [--isa ISA] [--numerics "
                 "fp32-accumulate|fast] [--opt-level 0..3]\n");
    return 2;
  }
  absl::Status status = fusion::Serve(*job);
  if (status.ok()) return 0;
  std::fprintf(stderr, "run_bursts: %s\n", std::string(fusion::Message(status)).c_str());
  return 1;
}
