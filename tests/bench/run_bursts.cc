// Our side of tests/bench/peers.sh: loads a model once and times bursts of runs on demand.
//
//   run_bursts SERVER MODEL.onnx THREADS
//
// For each number on stdin so many runs, and one line on stdout: a JSON list of the microseconds of
// each, the first one left out (it finds threads parked and caches cold). Outputs are written into
// the same tensors every time.
#include <charconv>
#include <cstdio>
#include <iostream>
#include <random>

#include "client/client.h"
#include "client/detect_target.h"
#include "client/fused_model.h"

namespace fusion {
namespace {

// Floats are normal, everything else ones: good as masks, ids and positions.
HostTensor Values(const PlanTensor& tensor) {
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

absl::Status Serve(const std::string& server, const std::string& path, int threads) {
  ASSIGN_OR_RETURN(std::unique_ptr<Client> client, Client::Connect(server));
  FusedModelOptions options;
  options.target = DetectTarget();
  options.target->threads = threads;
  ASSIGN_OR_RETURN(std::unique_ptr<FusedModel> model, FusedModel::Load(*client, path, options));
  std::vector<HostTensor> inputs;
  for (int position : model->plan().inputs) {
    // What the graph does not read may be anything.
    inputs.push_back(position < 0 ? HostTensor()
                                  : Values(model->plan().tensors[static_cast<size_t>(position)]));
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
  int threads = 0;
  if (argc == 4) std::from_chars(argv[3], argv[3] + std::string_view(argv[3]).size(), threads);
  if (threads < 1) {
    std::fprintf(stderr, "usage: run_bursts SERVER MODEL.onnx THREADS\n");
    return 2;
  }
  absl::Status status = fusion::Serve(argv[1], argv[2], threads);
  if (status.ok()) return 0;
  std::fprintf(stderr, "run_bursts: %s\n", std::string(fusion::Message(status)).c_str());
  return 1;
}
