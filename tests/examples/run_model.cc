// Runs an ONNX model as fused kernels: the C++ client library from connecting to outputs.
// client/README.md shows Run() below.
//
//   run_model SERVER MODEL.onnx     SERVER: HOST:PORT or unix:/PATH of a fusiond
//
// Every input is filled with ones; the first elements of every output are printed.

#include "client/client.h"
#include "client/fused_model.h"
#include "tests/examples/example.h"

namespace fusion {
namespace {

absl::Status Run(const std::string& server, const std::string& path) {
  ASSIGN_OR_RETURN(std::unique_ptr<Client> client, Client::Connect(server));
  // Sends the model without its weights, waits for the kernels, checks their digests, packs
  // weights.
  ASSIGN_OR_RETURN(std::unique_ptr<FusedModel> model, FusedModel::Load(*client, path));

  std::map<std::string, HostTensor> inputs;
  for (size_t i = 0; i < model->inputs().size(); ++i) {
    int position = model->plan().inputs[i];
    if (position < 0) continue;  // an input that the graph does not read
    const PlanTensor& tensor = model->plan().tensors[static_cast<size_t>(position)];
    inputs[model->inputs()[i]] = Ones(tensor.dtype, tensor.dims);
  }
  ASSIGN_OR_RETURN(std::vector<HostTensor> outputs, model->Run(inputs));
  for (size_t i = 0; i < outputs.size(); ++i) Print(model->outputs()[i], outputs[i]);
  return absl::OkStatus();
}

}  // namespace
}  // namespace fusion

int main(int argc, char** argv) { return fusion::RunExample("run_model", argc, argv, fusion::Run); }
