// How long fusiond takes for a PlanFusion call it has answered before:
//
//   warm_plan --model bert_layer --calls 2000 [--vary]
//
// With --vary every call names its graph differently: other bytes, same plan.
//
// Prints medians in milliseconds: each stage, the server's whole time from the request's arrival to
// its answer (from its log), and what the caller sees on one connection.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "core/base/statistics/quantile.h"
#include "tests/service/fusion_caller.h"
#include "tests/support/daemon.h"

namespace fusion {
namespace {

void Print(const std::string& name, const std::vector<double>& values) {
  if (values.empty()) return;
  std::printf("%-14s p50 %.3f ms   p99 %.3f ms\n", name.c_str(), Quantile(values, 0.5),
              Quantile(values, 0.99));
}

// The server's own account of warm calls.
std::vector<double> LoggedTimes(const std::string& log) {
  std::vector<double> times;
  for (std::string_view text : StrSplit(log, '\n')) {
    nlohmann::json line = nlohmann::json::parse(text, nullptr, false);
    if (line.is_object() && line["event"] == "rpc" && line["cache"] == "memory") {
      times.push_back(line["ms"].get<double>());
    }
  }
  return times;
}

int Run(const std::string& model, int calls, bool vary) {
  absl::StatusOr<std::unique_ptr<TestDaemon>> daemon = TestDaemon::Start(FUSIOND);
  if (!daemon.ok()) {
    std::fprintf(stderr, "%s\n", std::string(Message(daemon.status())).c_str());
    return 1;
  }
  FusionCaller caller((*daemon)->address());
  onnx::ModelProto sent = SentModel(model);
  v1::PlanFusionRequest request = RequestFor(sent);
  v1::PlanFusionResponse response;
  std::map<std::string, std::vector<double>> stages;
  std::vector<std::string> order;
  std::vector<double> seen;
  for (int i = -1; i < calls; ++i) {
    if (vary) {
      sent.mutable_graph()->set_name(StrCat("graph ", i));
      request.set_onnx_model(sent.SerializeAsString());
    }
    Nanoseconds start = Clock::Real().Now();
    grpc::Status status = caller.Plan(request, &response);
    if (!status.ok()) {
      std::fprintf(stderr, "%s\n", status.error_message().c_str());
      return 1;
    }
    if (i < 0) continue;  // the cold one
    seen.push_back(ToMilliseconds(Clock::Real().Now() - start));
    for (const v1::StageTime& stage : response.stages()) {
      if (i == 0) order.push_back(stage.stage());
      stages[stage.stage()].push_back(stage.milliseconds());
    }
  }
  std::printf("%s: request %zu bytes, response %zu bytes, %d warm calls\n", model.c_str(),
              request.ByteSizeLong(), response.ByteSizeLong(), calls);
  for (const std::string& stage : order) Print(stage, stages[stage]);
  Print("server", LoggedTimes((*daemon)->Stop().output));
  Print("caller", seen);
  return 0;
}

}  // namespace
}  // namespace fusion

int main(int argc, char** argv) {
  CLI::App app("Times warm PlanFusion calls.");
  std::string model = "bert_layer";
  int calls = 2000;
  app.add_option("--model", model, "generated model")->capture_default_str();
  app.add_option("--calls", calls, "warm calls")->check(CLI::PositiveNumber)->capture_default_str();
  bool vary = false;
  app.add_flag("--vary", vary, "other bytes in every call");
  CLI11_PARSE(app, argc, argv);
  return fusion::Run(model, calls, vary);
}
