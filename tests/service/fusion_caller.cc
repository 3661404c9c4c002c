#include "tests/service/fusion_caller.h"

#include <gtest/gtest.h>

#include <future>

#include "core/device/host_isa.h"
#include "core/onnx/reference_weights.h"
#include "tests/models/models.h"

namespace fusion {
namespace {

void SetDeadline(grpc::ClientContext* context, std::chrono::milliseconds deadline) {
  context->set_deadline(std::chrono::system_clock::now() + deadline);
  context->set_wait_for_ready(true);
}

std::string BytesOf(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  buffer.Dump(&slices);
  std::string bytes;
  for (const grpc::Slice& slice : slices) {
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return bytes;
}

grpc::ByteBuffer BufferOf(const std::string& bytes) {
  grpc::Slice slice(bytes);
  return grpc::ByteBuffer(&slice, 1);
}

}  // namespace

FusionCaller::FusionCaller(const std::string& address) {
  grpc::ChannelArguments args;
  args.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  args.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  args.SetMaxReceiveMessageSize(-1);
  args.SetMaxSendMessageSize(-1);
  channel_ = grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), args);
  stub_ = v1::FusionService::NewStub(channel_);
  generic_ = std::make_unique<grpc::GenericStub>(channel_);
}

grpc::Status FusionCaller::Plan(const v1::PlanFusionRequest& request,
                                v1::PlanFusionResponse* response,
                                std::chrono::milliseconds deadline) const {
  grpc::ClientContext context;
  SetDeadline(&context, deadline);
  return stub_->PlanFusion(&context, request, response);
}

v1::PlanFusionResponse FusionCaller::Plan(const v1::PlanFusionRequest& request) const {
  v1::PlanFusionResponse response;
  grpc::Status status = Plan(request, &response);
  EXPECT_TRUE(status.ok()) << status.error_code() << ": " << status.error_message();
  return response;
}

grpc::Status FusionCaller::GetKernels(const std::vector<std::string>& keys,
                                      std::vector<StreamedKernel>* kernels,
                                      std::chrono::milliseconds deadline) const {
  grpc::ClientContext context;
  SetDeadline(&context, deadline);
  v1::GetKernelsRequest request;
  for (const std::string& key : keys) request.add_keys(key);
  auto reader = stub_->GetKernels(&context, request);
  v1::GetKernelsResponse message;
  bool last = true;
  while (reader->Read(&message)) {
    if (last) kernels->push_back({.key = message.key(), .state = message.state()});
    StreamedKernel& kernel = kernels->back();
    EXPECT_EQ(kernel.key, message.key()) << "parts of one kernel follow each other";
    kernel.content_sha256 = message.content_sha256();
    kernel.binary += message.data();
    kernel.error = message.error();
    ++kernel.messages;
    last = message.last();
  }
  return reader->Finish();
}

grpc::Status FusionCaller::CallBytes(const std::string& method, const std::string& request,
                                     std::string* response) const {
  grpc::ClientContext context;
  SetDeadline(&context, std::chrono::seconds(60));
  grpc::ByteBuffer out = BufferOf(request), in;
  std::promise<grpc::Status> done;
  generic_->UnaryCall(&context, method, grpc::StubOptions(), &out, &in,
                      [&](grpc::Status status) { done.set_value(std::move(status)); });
  grpc::Status status = done.get_future().get();
  if (status.ok()) *response = BytesOf(in);
  return status;
}

bool FusionCaller::Healthy(const std::string& service) const {
  // HealthCheckRequest{service = 1}, HealthCheckResponse{status = 1: SERVING = 1}.
  std::string request, response;
  if (!service.empty()) request = StrCat('\n', static_cast<char>(service.size()), service);
  return CallBytes("/grpc.health.v1.Health/Check", request, &response).ok() &&
         response == "\x08\x01";
}

std::string FusionCaller::Reflection() const {
  grpc::ClientContext context;
  SetDeadline(&context, std::chrono::seconds(60));
  grpc::CompletionQueue queue;
  void* tag = nullptr;
  bool ok = false;
  auto call = generic_->PrepareCall(
      &context, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", &queue);
  auto wait = [&] { return queue.Next(&tag, &ok) && ok; };
  call->StartCall(nullptr);
  if (!wait()) return "no call";
  // ServerReflectionRequest{list_services = 7: ""}
  call->WriteLast(BufferOf(std::string("\x3a\x00", 2)), grpc::WriteOptions(), nullptr);
  if (!wait()) return "not written";
  grpc::ByteBuffer answer;
  call->Read(&answer, nullptr);
  if (!wait()) return "not read";
  grpc::Status status;
  call->Finish(&status, nullptr);
  wait();
  return BytesOf(answer);
}

v1::PlanFusionRequest RequestFor(const onnx::ModelProto& model, v1::PlanMode mode) {
  v1::PlanFusionRequest request;
  request.set_onnx_model(model.SerializeAsString());
  request.mutable_target()->set_isa(std::string(HostIsaName()));
  request.mutable_target()->set_threads(1);
  request.set_mode(mode);
  request.set_request_id("test");
  return request;
}

onnx::ModelProto SentModel(const std::string& name, int64_t layers, uint64_t seed) {
  const ModelSpec* spec = FindModel(name);
  ModelParams params = spec->defaults;
  if (layers > 0) params.layers = layers;
  params.seed = seed;
  return ReferenceWeights(GenerateModel(*spec, params).value().model).value();
}

}  // namespace fusion
