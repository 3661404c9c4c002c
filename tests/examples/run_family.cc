// Runs an ONNX model of open dims "batch" and "seq" at several lengths without compiling again.
// core/pipeline/README.md shows Run() below.
//
//   run_family SERVER MODEL.onnx     SERVER: HOST:PORT or unix:/PATH of a fusiond
//
// Every input is filled with ones; the first elements of every output are printed.
#include "client/client.h"
#include "client/family_model.h"
#include "core/bundle/symbol_values.h"
#include "tests/examples/example.h"

namespace fusion {
namespace {

std::map<std::string, HostTensor> Inputs(const FusedModel& model, int64_t batch, int64_t seq) {
  std::map<std::string, HostTensor> inputs;
  for (size_t i = 0; i < model.inputs().size(); ++i) {
    int position = model.plan().inputs[i];
    if (position < 0) continue;  // an input that the graph does not read
    const PlanTensor& tensor = model.plan().tensors[static_cast<size_t>(position)];
    inputs[model.inputs()[i]] = Ones(tensor.dtype, DimsAt(tensor, {batch, seq}));
  }
  return inputs;
}

absl::Status Run(const std::string& server, const std::string& path) {
  ASSIGN_OR_RETURN(std::unique_ptr<Client> client, Client::Connect(server));
  FamilyModelOptions options;
  options.model.plan.dim_ranges = {{"batch", {.least = 1, .most = 8, .likely = 1}},
                                   {"seq", {.least = 1, .most = 512, .likely = 128}}};
  ASSIGN_OR_RETURN(std::unique_ptr<FamilyModel> model, FamilyModel::Load(*client, path, options));
  for (int64_t seq : {7, 128, 512}) {
    std::map<std::string, HostTensor> inputs = Inputs(*model->parts()[0].model, 2, seq);
    ASSIGN_OR_RETURN(std::vector<HostTensor> outputs, model->Run(inputs));
    for (size_t i = 0; i < outputs.size(); ++i) Print(model->outputs()[i], outputs[i]);
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace fusion

int main(int argc, char** argv) {
  return fusion::RunExample("run_family", argc, argv, fusion::Run);
}
