#include "client/client.h"

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <future>
#include <set>

#include "client/kernel_assembly.h"
#include "client/rpc_status.h"
#include "core/base/text.h"
#include "core/bundle/rules.h"
#include "core/wire/answer.h"
#include "core/wire/error_details.h"
#include "core/wire/explanation.h"
#include "core/wire/limits.h"
#include "core/wire/options.h"
#include "core/wire/report.h"
#include "core/wire/scalars.h"
#include "core/wire/stored_texts.h"
#include "core/wire/target.h"
#include "fusion/v1/fusion_service.grpc.pb.h"

namespace fusion {
namespace {

using Deadline = std::chrono::system_clock::time_point;

Deadline After(Nanoseconds timeout) {
  return std::chrono::system_clock::now() +
         std::chrono::duration_cast<std::chrono::system_clock::duration>(timeout);
}

constexpr const char* kFromService = "fusion.from-service";

// What gRPC itself says when nobody there knows the service or the call.
bool IsUnknownCall(const grpc::Status& status) {
  return status.error_code() == grpc::StatusCode::UNIMPLEMENTED && status.error_message().empty();
}

// gRPC numbers its codes as Abseil does. `context`: of the call that ended.
absl::Status Translate(const grpc::Status& status, const grpc::ClientContext& context,
                       const std::string& address) {
  auto code = static_cast<absl::StatusCode>(status.error_code());
  if (IsUnknownCall(status)) {
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

std::string ServiceConfig(int attempts) {
  if (attempts < 2) return "{}";
  // A report that was stored and not answered would count twice: its own entry has no retries.
  return StrCat(R"({"methodConfig":[{"name":[{"service":"fusion.v1.FusionService"}],)",
                R"("retryPolicy":{"maxAttempts":)", std::min(attempts, 5),
                R"(,"initialBackoff":"0.1s","maxBackoff":"2s","backoffMultiplier":2,)",
                R"("retryableStatusCodes":["UNAVAILABLE"]}},)",
                R"({"name":[{"service":"fusion.v1.FusionService","method":"ReportLatency"}]}]})");
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

absl::Status FillRequest(const FusionRequest& request, const ClientOptions& options,
                         v1::PlanFusionRequest* out) {
  if (request.onnx_model.empty() == (request.op_graph == nullptr)) {
    return InvalidArgument("a request holds either an ONNX model or an OpGraph");
  }
  for (const std::string& name : request.options.keep_outputs) {
    if (!IsUtf8(name)) return InvalidArgument("keep_outputs: ", QuoteShort(name), " is not UTF-8");
  }
  for (const auto& [name, value] : request.options.dim_bindings) {
    if (!IsUtf8(name)) return InvalidArgument("dim_bindings: ", QuoteShort(name), " is not UTF-8");
  }
  if (!IsUtf8(request.options.custom_ops)) return InvalidArgument("custom_ops: is not UTF-8");
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
  out->set_allow_fused(request.allow_fused);
  auto bytes = static_cast<int64_t>(out->ByteSizeLong());
  if (bytes > options.max_message_bytes) {
    return InvalidArgument("the request has ", HumanBytes(bytes), ", at most ",
                           HumanBytes(options.max_message_bytes),
                           " can be sent; are its weights still in it?");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status FromGrpc(const grpc::Status& status, const grpc::ClientContext& context,
                      const std::string& address) {
  if (status.ok()) return absl::OkStatus();
  absl::Status out = Translate(status, context, address);
  out.SetPayload(kFromService, absl::Cord());
  DecodeErrorDetails(status.error_details(), &out);
  return out;
}

bool IsFromService(const absl::Status& status) {
  return status.GetPayload(kFromService).has_value();
}

std::vector<std::string> BlamedRules(const absl::Status& status) {
  absl::optional<absl::Cord> payload = status.GetPayload(kBlamedRules);
  if (!payload.has_value()) return {};
  const std::string names(*payload);
  std::vector<std::string> out;
  for (std::string_view name : StrSplit(names, ' ')) out.emplace_back(name);
  return out;
}

struct Client::Connection {
  Connection(const std::string& to, const ClientOptions& with)
      : address(to),
        options(with),
        channel(MakeChannel(to, with)),
        stub(v1::FusionService::NewStub(channel)) {}

  // Of a call that begins now.
  Deadline deadline() const { return After(options.deadline); }

  // One unary call.
  template <typename Request, typename Response>
  absl::Status Call(grpc::Status (v1::FusionService::Stub::*method)(grpc::ClientContext*,
                                                                    const Request&, Response*),
                    const Request& request, Response* response) const {
    return Call(method, request, deadline(), response);
  }
  template <typename Request, typename Response>
  absl::Status Call(grpc::Status (v1::FusionService::Stub::*method)(grpc::ClientContext*,
                                                                    const Request&, Response*),
                    const Request& request, Deadline until, Response* response) const {
    grpc::ClientContext context;
    context.set_deadline(until);
    return FromGrpc((stub.get()->*method)(&context, request, response), context, address);
  }

  // An answer that nobody can have asked for is the fault of who gave it.
  template <typename T>
  absl::StatusOr<T> Sound(absl::StatusOr<T> decoded) const {
    if (decoded.ok()) return decoded;
    return DataLoss("malformed answer from ", address, ": ", Message(decoded.status()));
  }

  const std::string address;
  const ClientOptions options;
  const std::shared_ptr<grpc::Channel> channel;
  const std::unique_ptr<v1::FusionService::Stub> stub;
};

Client::Client(std::string address, const ClientOptions& options)
    : address_(std::move(address)), options_(options) {}
Client::~Client() = default;

absl::StatusOr<std::unique_ptr<Client>> Client::Connect(const std::string& address,
                                                        const ClientOptions& options) {
  std::unique_ptr<Client> client(new Client(address, options));
  client->connection_ = std::make_unique<Connection>(address, options);
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

std::shared_ptr<grpc::Channel> Client::channel() const { return connection_->channel; }

std::unique_ptr<Client> Client::Share() const {
  std::unique_ptr<Client> other(new Client(address_, options_));
  other->connection_ = connection_;
  return other;
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
  RETURN_IF_ERROR(FillRequest(request, options_, &wire));
  v1::PlanFusionResponse response;
  RETURN_IF_ERROR(connection_->Call(&v1::FusionService::Stub::PlanFusion, wire, &response));
  return connection_->Sound(DecodeReply(response));
}

absl::StatusOr<FusionReply> Client::PlanFusion(const FusionRequest& request,
                                               const ProgressObserver& on_progress) const {
  v1::PlanFusionRequest wire;
  RETURN_IF_ERROR(FillRequest(request, options_, &wire));
  grpc::ClientContext context;
  Deadline deadline = connection_->deadline();
  context.set_deadline(deadline);
  std::unique_ptr<grpc::ClientReader<v1::PlanFusionEvent>> reader =
      connection_->stub->PlanFusionStream(&context, wire);
  std::optional<v1::PlanFusionResponse> response;
  v1::PlanFusionEvent event;
  while (reader->Read(&event)) {
    if (event.has_response()) {
      response = std::move(*event.mutable_response());
    } else if (event.has_progress() && on_progress) {
      on_progress(DecodePlanProgress(event.progress()));
    }
  }
  grpc::Status status = reader->Finish();
  if (IsUnknownCall(status)) {
    response.emplace();
    RETURN_IF_ERROR(
        connection_->Call(&v1::FusionService::Stub::PlanFusion, wire, deadline, &*response));
  } else {
    RETURN_IF_ERROR(FromGrpc(status, context, address_));
  }
  if (!response.has_value()) {
    return DataLoss("malformed answer from ", address_, ": it ends without a response");
  }
  return connection_->Sound(DecodeReply(*response));
}

absl::StatusOr<int64_t> Client::ReportLatency(const LatencyReport& report) const {
  return ReportLatency(report, CancelToken());
}

absl::StatusOr<int64_t> Client::ReportLatency(const LatencyReport& report,
                                              const CancelToken& until) const {
  constexpr std::chrono::milliseconds kLook(10);  // between two looks at `until`
  v1::ReportLatencyRequest wire;
  EncodeLatencyReport(report, &wire);
  v1::ReportLatencyResponse response;
  grpc::ClientContext context;
  context.set_deadline(
      After(std::min(until.Remaining().value_or(options_.deadline), options_.deadline)));
  std::promise<grpc::Status> done;
  connection_->stub->async()->ReportLatency(
      &context, &wire, &response,
      [&done](grpc::Status status) { done.set_value(std::move(status)); });
  std::future<grpc::Status> answer = done.get_future();
  while (answer.wait_for(kLook) == std::future_status::timeout) {
    if (!until.Check().ok()) context.TryCancel();
  }
  grpc::Status status = answer.get();
  // Not as of other calls: who reports in the background does so no more, and nothing is amiss.
  if (IsUnknownCall(status)) {
    return Unimplemented("the server at ", address_, " takes no latency reports");
  }
  RETURN_IF_ERROR(FromGrpc(status, context, address_));
  return response.accepted_samples();
}

absl::StatusOr<std::vector<PlanReport>> Client::GetReport(std::optional<Digest> plan,
                                                          int limit) const {
  v1::GetReportRequest wire;
  EncodeReportQuery({.plan = plan, .limit = limit}, &wire);
  v1::GetReportResponse response;
  RETURN_IF_ERROR(connection_->Call(&v1::FusionService::Stub::GetReport, wire, &response));
  std::vector<PlanReport> out;
  for (const v1::PlanReport& report : response.plans()) {
    ASSIGN_OR_RETURN(PlanReport decoded, connection_->Sound(DecodePlanReport(report)));
    out.push_back(std::move(decoded));
  }
  return out;
}

absl::StatusOr<PlanExplanation> Client::ExplainPlan(const Digest& plan,
                                                    const ExplainFilter& filter) const {
  v1::ExplainPlanRequest wire;
  wire.set_plan_key(DigestToWire(plan));
  EncodeExplainFilter(filter, &wire);
  return AskToExplain(wire);
}

absl::StatusOr<PlanExplanation> Client::ExplainPlan(const FusionRequest& request,
                                                    const ExplainFilter& filter) const {
  v1::ExplainPlanRequest wire;
  RETURN_IF_ERROR(FillRequest(request, options_, wire.mutable_request()));
  EncodeExplainFilter(filter, &wire);
  return AskToExplain(wire);
}

absl::StatusOr<PlanExplanation> Client::AskToExplain(const v1::ExplainPlanRequest& request) const {
  v1::ExplainPlanResponse response;
  RETURN_IF_ERROR(connection_->Call(&v1::FusionService::Stub::ExplainPlan, request, &response));
  return connection_->Sound(DecodeExplanation(response));
}

absl::StatusOr<std::vector<PlanSummary>> Client::ListPlans(int64_t limit) const {
  Deadline deadline = connection_->deadline();
  std::vector<PlanSummary> out;
  std::set<std::string> seen;  // tokens
  v1::ListPlansRequest wire;
  while (static_cast<int64_t>(out.size()) < limit) {
    int64_t left = limit - static_cast<int64_t>(out.size());
    wire.set_page_size(static_cast<int>(std::min<int64_t>(left, kMaxListedPlans)));
    v1::ListPlansResponse response;
    RETURN_IF_ERROR(
        connection_->Call(&v1::FusionService::Stub::ListPlans, wire, deadline, &response));
    for (const v1::PlanSummary& plan : response.plans()) {
      ASSIGN_OR_RETURN(PlanSummary decoded, connection_->Sound(DecodePlanSummary(plan)));
      out.push_back(std::move(decoded));
    }
    if (response.next_page_token().empty()) break;
    if (!seen.insert(response.next_page_token()).second) {
      return DataLoss("malformed answer from ", address_,
                      ": the list of plans goes round in circles");
    }
    wire.set_page_token(response.next_page_token());
  }
  if (static_cast<int64_t>(out.size()) > limit) out.resize(static_cast<size_t>(limit));
  return out;
}

absl::StatusOr<StoredPlanTexts> Client::GetStoredPlan(const Digest& plan) const {
  v1::GetStoredRequest wire;
  wire.set_plan(DigestToWire(plan));
  v1::GetStoredResponse response;
  RETURN_IF_ERROR(connection_->Call(&v1::FusionService::Stub::GetStored, wire, &response));
  return connection_->Sound(DecodeStoredTexts(response));
}

absl::StatusOr<KernelTexts> Client::GetKernelTexts(const Digest& kernel) const {
  v1::GetStoredRequest wire;
  wire.set_kernel(DigestToWire(kernel));
  v1::GetStoredResponse response;
  RETURN_IF_ERROR(connection_->Call(&v1::FusionService::Stub::GetStored, wire, &response));
  return connection_->Sound(DecodeKernelTexts(response.kernel()));
}

absl::StatusOr<Capabilities> Client::GetCapabilities() const {
  v1::GetCapabilitiesResponse response;
  RETURN_IF_ERROR(connection_->Call(&v1::FusionService::Stub::GetCapabilities,
                                    v1::GetCapabilitiesRequest(), &response));
  return DecodeCapabilities(response);
}

absl::StatusOr<std::vector<FetchedKernel>> Client::GetKernels(
    const std::vector<Digest>& keys) const {
  Deadline deadline = connection_->deadline();
  std::vector<FetchedKernel> out;
  for (auto begin = keys.begin(); begin != keys.end();) {
    auto end = begin + std::min<std::ptrdiff_t>(keys.end() - begin, kMaxKernelKeys);
    RETURN_IF_ERROR(FetchKernels({begin, end}, deadline, &out));
    begin = end;
  }
  return out;
}

// Appends them; as many as one call may ask for.
absl::Status Client::FetchKernels(const std::vector<Digest>& keys,
                                  std::chrono::system_clock::time_point deadline,
                                  std::vector<FetchedKernel>* out) const {
  grpc::ClientContext context;
  context.set_deadline(deadline);
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
