// Runs a decoder with caches of keys and values step by step; what a step adds to the caches is all
// that it writes there. core/tensor/README.md shows Run() below.
//
//   run_decoder SERVER MODEL.onnx     SERVER: HOST:PORT or unix:/PATH of a fusiond
//
// MODEL takes hidden states, positions, an attention mask, and past_key_0, past_value_0 of "past"
// tokens; it gives present_key_0 and present_value_0. Every input is filled with ones.
#include "client/client.h"
#include "client/fused_model.h"
#include "core/bundle/symbol_values.h"
#include "tests/examples/example.h"

namespace fusion {
namespace {

// The inputs of a step that are not in the caches.
std::map<std::string, HostTensor> Inputs(const FusedModel& model, int64_t past) {
  std::map<std::string, HostTensor> inputs;
  for (size_t i = 0; i < model.inputs().size(); ++i) {
    const std::string& name = model.inputs()[i];
    int position = model.plan().inputs[i];
    if (position < 0 || name.starts_with("past_")) continue;
    const PlanTensor& tensor = model.plan().tensors[static_cast<size_t>(position)];
    inputs[name] = Ones(tensor.dtype, DimsAt(tensor, {past}));
  }
  return inputs;
}

absl::Status Run(const std::string& server, const std::string& path) {
  ASSIGN_OR_RETURN(std::unique_ptr<Client> client, Client::Connect(server));
  FusedModelOptions options;
  options.plan.dim_bindings = {{"batch", 1}, {"seq", 1}};
  options.plan.dim_ranges = {{"past", {.least = 0, .most = 255}}};
  options.plan.shared_buffers = {{"past_key_0", "present_key_0"},
                                 {"past_value_0", "present_value_0"}};
  ASSIGN_OR_RETURN(std::unique_ptr<FusedModel> model, FusedModel::Load(*client, path, options));
  ASSIGN_OR_RETURN(SharedMemory caches, model->MakeMemory());
  for (int64_t past = 0; past < 4; ++past) {
    ASSIGN_OR_RETURN(std::vector<HostTensor> outputs, model->Run(Inputs(*model, past), &caches));
    Print("cached", RowsOf(model->plan(), caches, 0));
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (outputs[i].elements() > 0) Print(model->outputs()[i], outputs[i]);
    }
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace fusion

int main(int argc, char** argv) {
  return fusion::RunExample("run_decoder", argc, argv, fusion::Run);
}
