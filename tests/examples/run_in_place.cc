// Runs a model of one input "x", f32[4,8], whose rows lie 16 numbers apart in the program's memory:
// nothing is copied. core/tensor/README.md shows Run() below.
//
//   run_in_place SERVER MODEL.onnx     SERVER: HOST:PORT or unix:/PATH of a fusiond
#include "client/client.h"
#include "client/fused_model.h"
#include "tests/examples/example.h"

namespace fusion {
namespace {

BoundTensor Bound(const Dims& dims, std::vector<float>& memory) {
  return {DType::kF32, &dims, reinterpret_cast<std::byte*>(memory.data()),
          static_cast<int64_t>(memory.size() * sizeof(float))};
}

BoundTensor Bound(HostTensor& tensor) {
  return {tensor.dtype(), &tensor.dims(), tensor.bytes(), tensor.byte_size()};
}

absl::Status Run(const std::string& server, const std::string& path) {
  ASSIGN_OR_RETURN(std::unique_ptr<Client> client, Client::Connect(server));
  FusedModelOptions options;
  options.plan.bound_strides = {{"x", {16, 1}}};  // rows of 8 numbers, 16 apart
  ASSIGN_OR_RETURN(std::unique_ptr<FusedModel> model, FusedModel::Load(*client, path, options));
  const Dims dims = {4, 8};
  std::vector<float> rows(4 * 16, 1);
  HostTensor result(DType::kF32, dims);
  RETURN_IF_ERROR(model->RunInPlace({Bound(dims, rows)}, {Bound(result)}));
  Print(model->outputs()[0], result);
  return absl::OkStatus();
}

}  // namespace
}  // namespace fusion

int main(int argc, char** argv) {
  return fusion::RunExample("run_in_place", argc, argv, fusion::Run);
}
