#include "client/client.h"

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <future>

#include "client/kernel_assembly.h"
#include "core/wire/answer.h"
#include "core/wire/limits.h"
#include "core/wire/options.h"
#include "core/wire/scalars.h"
#include "core/wire/target.h"
#include "fusion/v1/fusion_service.grpc.pb.h"

namespace fusion {
namespace {

std::chrono::system_clock::time_point After(Nanoseconds timeout) {
  return std::chrono::system_clock::now() +
         std::chrono::duration_cast<std::chrono::system_clock::duration>(timeout);
}

constexpr const char* kFromService = "fusion.from-service";

// gRPC numbers its codes as Abseil does. `context`: of the call that ended.
absl::Status Translate(const grpc::Status& status, const grpc::ClientContext& context,
                       const std::string& address) {
  auto code = static_cast<absl::StatusCode>(status.error_code());
  // What gRPC itself says when nobody there knows the service.
  if (code == absl::StatusCode::kUnimplemented && status.error_message().empty()) {
    return Unavailable("the server at ", address, " is no fusiond of this version");
  }
  if (code == absl::StatusCode::kUnavailable) {
    // The service's own words or gRPC's about the connection: its codes do not tell them apart.
    return Unavailable("the service at ", address, " is unavailable: ", status.error_message());
  }
  // A server may run out of a time of its own.
  bool passed = std::chrono::system_clock::now() >= context.deadline();
  if (code == absl::StatusCode::kDeadlineExceeded && passed) {
    return DeadlineExceeded("no answer from ", address, " in time: ", status.error_message());
  }
  return {code, status.error_message()};
}

absl::Status FromGrpc(const grpc::Status& status, const grpc::ClientContext& context,
                      const std::string& address) {
  if (status.ok()) return absl::OkStatus();
  absl::Status out = Translate(status, context, address);
  out.SetPayload(kFromService, absl::Cord());
  return out;
}

std::string ServiceConfig(int attempts) {
  if (attempts < 2) return "{}";
  return StrCat(R"({"methodConfig":[{"name":[{"service":"fusion.v1.FusionService"}],)",
                R"("retryPolicy":{"maxAttempts":)", std::min(attempts, 5),
                R"(,"initialBackoff":"0.1s","maxBackoff":"2s","backoffMultiplier":2,)",
                R"("retryableStatusCodes":["UNAVAILABLE"]}}]})");
}

std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address,
                                           const ClientOptions& options) {
  auto limit = static_cast<int>(std::min<int64_t>(options.max_message_bytes, INT32_MAX));
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(limit);
  arguments.SetMaxSendMessageSize(limit);
  arguments.SetServiceConfigJSON(ServiceConfig(options.attempts));
  // A client that starts beside its server must not sit out gRPC's second.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

enum class Connected { kYes, kRefused, kTooLate };

Connected WaitForConnection(grpc::Channel& channel, const ClientOptions& options) {
  auto deadline = After(options.connect_timeout);
  auto next = deadline;
  for (;;) {
    grpc_connectivity_state state = channel.GetState(/*try_to_connect=*/true);
    if (state == GRPC_CHANNEL_READY) return Connected::kYes;
    bool refused = state == GRPC_CHANNEL_TRANSIENT_FAILURE && !options.wait_for_ready;
    if (refused && next == deadline) next = std::min(deadline, After(options.refused_for));
    if (channel.WaitForStateChange(state, next)) continue;
    return next == deadline ? Connected::kTooLate : Connected::kRefused;
  }
}

absl::Status FillRequest(const FusionRequest& request, v1::PlanFusionRequest* out) {
  if (request.onnx_model.empty() == (request.op_graph == nullptr)) {
    return InvalidArgument("a request holds either an ONNX model or an OpGraph");
  }
  for (const std::string& name : request.options.keep_outputs) {
    if (!IsUtf8(name)) return InvalidArgument("keep_outputs: ", QuoteShort(name), " is not UTF-8");
  }
  for (const auto& [name, value] : request.options.dim_bindings) {
    if (!IsUtf8(name)) return InvalidArgument("dim_bindings: ", QuoteShort(name), " is not UTF-8");
  }
  if (request.op_graph != nullptr) {
    *out->mutable_op_graph() = *request.op_graph;
  } else {
    out->set_onnx_model(request.onnx_model);
  }
  EncodeTarget(request.target, out->mutable_target());
  out->set_mode(ToWire(request.mode));
  auto wait = std::chrono::duration_cast<std::chrono::milliseconds>(request.ready_within);
  out->set_ready_within_ms(static_cast<uint32_t>(std::clamp<int64_t>(wait.count(), 0, UINT32_MAX)));
  EncodeOptions(request.options, out->mutable_options(), out->mutable_hints());
  for (DumpKind kind : request.dumps) out->add_dumps(ToWire(kind));
  out->set_request_id(TextToWire(request.request_id));
  return absl::OkStatus();
}

}  // namespace

bool IsFromService(const absl::Status& status) {
  return status.GetPayload(kFromService).has_value();
}

struct Client::Connection {
  explicit Connection(std::shared_ptr<grpc::Channel> c)
      : channel(std::move(c)), stub(v1::FusionService::NewStub(channel)) {}
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<v1::FusionService::Stub> stub;
};

Client::Client(std::string address, const ClientOptions& options)
    : address_(std::move(address)), options_(options) {}
Client::~Client() = default;

absl::StatusOr<std::unique_ptr<Client>> Client::Connect(const std::string& address,
                                                        const ClientOptions& options) {
  std::unique_ptr<Client> client(new Client(address, options));
  client->connection_ = std::make_unique<Connection>(MakeChannel(address, options));
  switch (WaitForConnection(*client->connection_->channel, options)) {
    case Connected::kYes:
      return client;
    case Connected::kRefused: {
      // Only a call is told why.
      absl::Status why =
          client->CheckHealth(std::min(options.refused_for, options.connect_timeout));
      bool ready = client->connection_->channel->GetState(false) == GRPC_CHANNEL_READY;
      if (why.ok() || ready) return client;
      return Unavailable("no fusiond answers: ", Message(why));
    }
    case Connected::kTooLate:
      break;
  }
  return Unavailable("no fusiond answers at ", address, " within ",
                     ToMilliseconds(options.connect_timeout), " ms");
}

absl::Status Client::CheckHealth(Nanoseconds timeout) const {
  // grpc.health.v1.HealthCheckResponse is {1: status}, and SERVING is 1; Debian ships no .proto.
  constexpr std::string_view kServing("\x08\x01", 2);
  grpc::ClientContext context;
  context.set_deadline(After(timeout));
  context.set_wait_for_ready(options_.wait_for_ready);
  grpc::GenericStub stub(connection_->channel);
  grpc::Slice no_fields;
  grpc::ByteBuffer request(&no_fields, 1);
  grpc::ByteBuffer response;
  std::promise<grpc::Status> done;
  stub.UnaryCall(&context, "/grpc.health.v1.Health/Check", {}, &request, &response,
                 [&done](grpc::Status status) { done.set_value(std::move(status)); });
  RETURN_IF_ERROR(FromGrpc(done.get_future().get(), context, address_));
  std::vector<grpc::Slice> slices;
  std::string bytes;
  if (!response.Dump(&slices).ok()) return DataLoss("health of ", address_, ": unreadable");
  for (const grpc::Slice& s : slices) {
    bytes.append(reinterpret_cast<const char*>(s.begin()), s.size());
  }
  if (bytes != kServing) return Unavailable("fusiond at ", address_, " does not serve");
  return absl::OkStatus();
}

absl::StatusOr<FusionReply> Client::PlanFusion(const FusionRequest& request) const {
  v1::PlanFusionRequest wire;
  RETURN_IF_ERROR(FillRequest(request, &wire));
  if (wire.ByteSizeLong() > static_cast<uint64_t>(options_.max_message_bytes)) {
    return InvalidArgument(
        "the request has ", HumanBytes(static_cast<int64_t>(wire.ByteSizeLong())), ", at most ",
        HumanBytes(options_.max_message_bytes), " can be sent; are its weights still in it?");
  }
  grpc::ClientContext context;
  context.set_deadline(After(options_.deadline));
  v1::PlanFusionResponse response;
  RETURN_IF_ERROR(
      FromGrpc(connection_->stub->PlanFusion(&context, wire, &response), context, address_));
  absl::StatusOr<FusionReply> reply = DecodeReply(response);
  if (!reply.ok()) {
    return DataLoss("malformed answer from ", address_, ": ", Message(reply.status()));
  }
  return reply;
}

absl::StatusOr<std::vector<FetchedKernel>> Client::GetKernels(
    const std::vector<Digest>& keys) const {
  std::vector<FetchedKernel> out;
  for (auto begin = keys.begin(); begin != keys.end();) {
    auto end = begin + std::min<std::ptrdiff_t>(keys.end() - begin, kMaxKernelKeys);
    RETURN_IF_ERROR(FetchKernels({begin, end}, &out));
    begin = end;
  }
  return out;
}

// Appends them; as many as one call may ask for.
absl::Status Client::FetchKernels(const std::vector<Digest>& keys,
                                  std::vector<FetchedKernel>* out) const {
  grpc::ClientContext context;
  context.set_deadline(After(options_.deadline));
  v1::GetKernelsRequest request;
  for (const Digest& key : keys) request.add_keys(DigestToWire(key));
  KernelAssembly assembly(keys, options_.max_kernel_bytes);
  std::unique_ptr<grpc::ClientReader<v1::GetKernelsResponse>> reader =
      connection_->stub->GetKernels(&context, request);
  v1::GetKernelsResponse part;
  while (reader->Read(&part)) {
    absl::Status added = assembly.Add(part);
    if (added.ok()) continue;
    context.TryCancel();
    reader->Finish();
    return added;
  }
  RETURN_IF_ERROR(FromGrpc(reader->Finish(), context, address_));
  ASSIGN_OR_RETURN(std::vector<FetchedKernel> kernels, std::move(assembly).Finish());
  std::move(kernels.begin(), kernels.end(), std::back_inserter(*out));
  return absl::OkStatus();
}

}  // namespace fusion
