// Runs a model of one input, f32[4,8], whether the service is there or not. client/README.md shows
// Run() below.
//
//   run_resilient SERVER MODEL.onnx     SERVER: HOST:PORT or unix:/PATH of a fusiond, or several
//                                       with commas between them; they may be away
//
// Plans and kernels are kept in the directory "cache" beside the model.
#include "client/fallback/resilient_model.h"
#include "core/onnx/model_io.h"
#include "tests/examples/example.h"

namespace fusion {
namespace {

absl::Status Run(const std::string& servers, const std::string& path) {
  ResilientOptions options;
  options.load_deadline = std::chrono::seconds(10);
  ASSIGN_OR_RETURN(options.cache, BundleCache::Open(ModelDirectory(path) + "/cache"));
  ASSIGN_OR_RETURN(auto client, ResilientClient::Create(SplitAddresses(servers), options));
  // By the plan of the service, else by the one that is cached, else op by op.
  ASSIGN_OR_RETURN(auto model, ResilientModel::Load(client, path));
  std::printf("%s %s\n", std::string(RunModeName(model->mode())).c_str(), model->reason().c_str());

  ASSIGN_OR_RETURN(auto outputs, model->Run({{model->inputs()[0], Ones(DType::kF32, {4, 8})}}));
  Print(model->outputs()[0], outputs[0]);
  return absl::OkStatus();
}

}  // namespace
}  // namespace fusion

int main(int argc, char** argv) {
  return fusion::RunExample("run_resilient", argc, argv, fusion::Run);
}
