#include "client/client.h"

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <future>
#include <set>

#include "client/calls/answer_check.h"
#include "client/calls/rpc_status.h"
#include "client/channel.h"
#include "client/fusion_request.h"
#include "client/kernel_assembly.h"
#include "client/rpc_context.h"
#include "core/base/text/text.h"
#include "core/base/trace.h"
#include "core/bundle/rules/rules.h"
#include "core/wire/accuracy.h"
#include "core/wire/answer.h"
#include "core/wire/basics/limits.h"
#include "core/wire/basics/scalars.h"
#include "core/wire/epochs.h"
#include "core/wire/error_details.h"
#include "core/wire/explanation.h"
#include "core/wire/options/options.h"
#include "core/wire/options/target.h"
#include "core/wire/report.h"
#include "core/wire/report_origin.h"
#include "core/wire/stored_texts.h"
#include "fusion/v1/fusion_service.grpc.pb.h"

namespace fusion {
namespace {

using Deadline = std::chrono::system_clock::time_point;

constexpr const char* kPlanFusion = "/fusion.v1.FusionService/PlanFusion";
constexpr const char* kPlanFusionStream = "/fusion.v1.FusionService/PlanFusionStream";
constexpr const char* kFromService = "fusion.from-service";

// What gRPC says of a connection that did not come about, without the names of its parts. Words of
// the service stay as they are.
std::string PlainWords(const std::string& words) {
  if (words.starts_with("DNS resolution failed")) return "its host name cannot be looked up";
  if (words.starts_with("empty address list")) {
    return "the certificates or the key for TLS cannot be used";
  }
  if (!words.starts_with("failed to connect to all addresses")) return words;
  if (words.find("certificate verify failed") != std::string::npos) {
    return "its certificate is not one that the given CA vouches for";
  }
  constexpr std::string_view kWhy = "Failed to connect to remote host: ";
  const size_t why = words.rfind(kWhy);
  if (why != std::string::npos) return words.substr(why + kWhy.size());
  constexpr std::string_view kLast = "last error: UNKNOWN: ";
  const size_t last = words.rfind(kLast);
  return last == std::string::npos ? words : words.substr(last + kLast.size());
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
    return Unavailable("the service at ", address,
                       " is unavailable: ", PlainWords(status.error_message()));
  }
  // A server may run out of a time of its own.
  bool passed = std::chrono::system_clock::now() >= context.deadline();
  if (code == absl::StatusCode::kDeadlineExceeded && passed) {
    return DeadlineExceeded("no answer from ", address,
                            " in time: ", PlainWords(status.error_message()));
  }
  return {code, status.error_message()};
}

absl::StatusOr<std::string> BytesIn(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  if (!buffer.Dump(&slices).ok()) return DataLoss("the answer's bytes cannot be read");
  std::string out;
  out.reserve(buffer.Length());
  for (const grpc::Slice& s : slices) {
    out.append(reinterpret_cast<const char*>(s.begin()), s.size());
  }
  return out;
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

}  // namespace

std::chrono::system_clock::time_point After(Nanoseconds timeout) {
  return std::chrono::system_clock::now() +
         std::chrono::duration_cast<std::chrono::system_clock::duration>(timeout);
}

std::string FirstTrace(std::initializer_list<std::string_view> said) {
  for (std::string_view traceparent : said) {
    if (!TraceIdOf(traceparent).empty()) return std::string(traceparent);
  }
  return {};
}

// Metadata rather than credentials of a call: gRPC gives those away over TLS only, and a token is
// good on a unix socket too.
void Introduce(const ClientOptions& options, grpc::ClientContext* context,
               const std::string& traceparent) {
  if (!options.token.empty()) {
    context->AddMetadata("authorization", StrCat("Bearer ", options.token));
  }
  context->AddMetadata("traceparent",
                       TraceIdOf(traceparent).empty() ? options.traceparent : traceparent);
  if (options.background) context->AddMetadata("x-fusion-priority", "background");
}

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
  // Of one call.
  struct Terms {
    Deadline until;
    CallStop* stop = nullptr;
    std::string traceparent = {};
  };

  Connection(const std::string& to, const ClientOptions& with)
      : address(to),
        options(with),
        channel(MakeChannel(to, with)),
        stub(v1::FusionService::NewStub(channel)) {}

  // Of a call that begins now.
  Deadline deadline() const { return After(options.deadline); }
  Terms TermsOf(const CallLimits& limits) const {
    return {deadline(), nullptr, limits.traceparent};
  }

  // One unary call.
  template <typename Request, typename Response>
  absl::Status Call(grpc::Status (v1::FusionService::Stub::*method)(grpc::ClientContext*,
                                                                    const Request&, Response*),
                    const Request& request, const Terms& terms, Response* response) const {
    grpc::ClientContext context;
    context.set_deadline(terms.until);
    CallStop::Scope scope(terms.stop, [&context] { context.TryCancel(); });
    Introduce(options, &context, terms.traceparent);
    return FromGrpc((stub.get()->*method)(&context, request, response), context, address);
  }

  // One unary call without a message's class: the bytes as they came.
  absl::StatusOr<std::string> CallForBytes(const std::string& method, const std::string& request,
                                           const Terms& terms) const {
    grpc::ClientContext context;
    context.set_deadline(terms.until);
    CallStop::Scope scope(terms.stop, [&context] { context.TryCancel(); });
    context.set_wait_for_ready(options.wait_for_ready);
    Introduce(options, &context, terms.traceparent);
    grpc::GenericStub generic(channel);
    grpc::Slice slice(request);
    grpc::ByteBuffer buffer(&slice, 1);
    grpc::ByteBuffer response;
    std::promise<grpc::Status> done;
    generic.UnaryCall(&context, method, {}, &buffer, &response,
                      [&done](grpc::Status status) { done.set_value(std::move(status)); });
    RETURN_IF_ERROR(FromGrpc(done.get_future().get(), context, address));
    return BytesIn(response);
  }

  // PlanFusion, its signature checked. `answer`, if asked for: the response in bytes over which its
  // signature is right still.
  absl::Status CallForPlan(const v1::PlanFusionRequest& request, const Terms& terms,
                           v1::PlanFusionResponse* response, std::string* answer = nullptr) const {
    if (options.verify_keys.empty()) {
      RETURN_IF_ERROR(Call(&v1::FusionService::Stub::PlanFusion, request, terms, response));
      if (answer != nullptr) *answer = response->SerializeAsString();
      return absl::OkStatus();
    }
    ASSIGN_OR_RETURN(std::string bytes,
                     CallForBytes(kPlanFusion, request.SerializeAsString(), terms));
    RETURN_IF_ERROR(ReadPlan(bytes, response));
    if (answer != nullptr) *answer = std::move(bytes);
    return absl::OkStatus();
  }

  // The response in its bytes, its signature checked: it is over the plan's bytes as they came.
  absl::Status ReadPlan(std::string_view bytes, v1::PlanFusionResponse* response) const {
    if (!response->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
      return DataLoss("malformed answer from ", address, ": no PlanFusionResponse");
    }
    if (options.verify_keys.empty()) return absl::OkStatus();
    return CheckPlanSignature(options.verify_keys, bytes, *response);
  }

  // A malformed answer is the service's fault.
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
    : address_(std::move(address)), options_([&options] {
        ClientOptions out = options;
        out.traceparent = TraceparentOrNew(out.traceparent);
        return out;
      }()) {}
Client::~Client() = default;

absl::StatusOr<std::unique_ptr<Client>> Client::Connect(const std::string& address,
                                                        const ClientOptions& options) {
  std::unique_ptr<Client> client(new Client(address, options));
  client->connection_ = std::make_unique<Connection>(address, client->options_);
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

absl::StatusOr<std::unique_ptr<Client>> Client::Open(const std::string& address,
                                                     const ClientOptions& options) {
  std::unique_ptr<Client> client(new Client(address, options));
  client->connection_ = std::make_unique<Connection>(address, client->options_);
  return client;
}

absl::Status Client::Reach(Nanoseconds timeout) const {
  constexpr Nanoseconds kLook = std::chrono::milliseconds(20);  // between two looks at `stop`
  const Clock& clock = Clock::Real();
  const Nanoseconds end = clock.Now() + std::min(timeout, TimeLeft());
  for (;;) {
    if (limits_.stop != nullptr && limits_.stop->stopped()) return Cancelled("the call is stopped");
    grpc_connectivity_state state = connection_->channel->GetState(/*try_to_connect=*/true);
    // Only a call is told why.
    if (state == GRPC_CHANNEL_READY || state == GRPC_CHANNEL_TRANSIENT_FAILURE) {
      return absl::OkStatus();
    }
    const Nanoseconds left = end - clock.Now();
    if (left <= Nanoseconds(0)) break;
    connection_->channel->WaitForStateChange(state, After(std::min(left, kLook)));
  }
  return Unavailable("no fusiond answers at ", address_, " within ", ToMilliseconds(timeout),
                     " ms");
}

std::unique_ptr<Client> Client::Limited(const CallLimits& limits) const {
  std::unique_ptr<Client> other = Share();
  other->limits_ = limits;
  return other;
}

std::unique_ptr<Client> Client::Traced(const std::string& traceparent) const {
  std::unique_ptr<Client> other = Limited(limits_);
  if (!traceparent.empty()) other->limits_.traceparent = traceparent;
  return other;
}

// Of a call that begins now.
Nanoseconds Client::TimeLeft() const {
  if (!limits_.until) return options_.deadline;
  return std::clamp(*limits_.until - Clock::Real().Now(), Nanoseconds(0), options_.deadline);
}

std::unique_ptr<Client> Client::Share() const {
  std::unique_ptr<Client> other(new Client(address_, options_));
  other->connection_ = connection_;
  return other;
}

absl::Status Client::CheckHealth(Nanoseconds timeout) const {
  // grpc.health.v1.HealthCheckResponse is {1: status}, and SERVING is 1; Debian ships no .proto.
  constexpr std::string_view kServing("\x08\x01", 2);
  ASSIGN_OR_RETURN(std::string bytes,
                   connection_->CallForBytes("/grpc.health.v1.Health/Check", "", {After(timeout)}));
  if (bytes != kServing) return Unavailable("fusiond at ", address_, " does not serve");
  return absl::OkStatus();
}

absl::StatusOr<FusionReply> Client::PlanFusion(const FusionRequest& request) const {
  return PlanFusion(request, static_cast<std::string*>(nullptr));
}

absl::StatusOr<FusionReply> Client::PlanFusion(const FusionRequest& request,
                                               std::string* answer) const {
  v1::PlanFusionRequest wire;
  RETURN_IF_ERROR(EncodeRequest(request, options_.max_message_bytes, &wire));
  v1::PlanFusionResponse response;
  const Connection::Terms terms{After(TimeLeft()), limits_.stop,
                                FirstTrace({request.traceparent, limits_.traceparent})};
  RETURN_IF_ERROR(connection_->CallForPlan(wire, terms, &response, answer));
  return connection_->Sound(DecodeReply(response));
}

// One event of a PlanFusionStream.
absl::Status Client::ReadEvent(const grpc::ByteBuffer& buffer, const ProgressObserver& on_progress,
                               std::optional<v1::PlanFusionResponse>* response) const {
  ASSIGN_OR_RETURN(std::string bytes, BytesIn(buffer));
  std::string_view inner = ResponseIn(bytes);
  if (!inner.empty()) return connection_->ReadPlan(inner, &response->emplace());
  v1::PlanFusionEvent event;
  if (!event.ParseFromString(bytes)) {
    return DataLoss("malformed answer from ", address_, ": no PlanFusionEvent");
  }
  if (event.has_progress() && on_progress) on_progress(DecodePlanProgress(event.progress()));
  return absl::OkStatus();
}

absl::StatusOr<FusionReply> Client::PlanFusion(const FusionRequest& request,
                                               const ProgressObserver& on_progress) const {
  v1::PlanFusionRequest wire;
  RETURN_IF_ERROR(EncodeRequest(request, options_.max_message_bytes, &wire));
  grpc::ClientContext context;
  const Connection::Terms terms{After(TimeLeft()), nullptr,
                                FirstTrace({request.traceparent, limits_.traceparent})};
  context.set_deadline(terms.until);
  Introduce(options_, &context, terms.traceparent);
  // As the stub does it, but that the events stay bytes: a signature is over them.
  const grpc::internal::RpcMethod method(
      kPlanFusionStream, grpc::internal::RpcMethod::SERVER_STREAMING, connection_->channel);
  std::unique_ptr<grpc::ClientReader<grpc::ByteBuffer>> reader(
      grpc::internal::ClientReaderFactory<grpc::ByteBuffer>::Create(connection_->channel.get(),
                                                                    method, &context, wire));
  std::optional<v1::PlanFusionResponse> response;
  absl::Status read;
  grpc::ByteBuffer buffer;
  while (read.ok() && reader->Read(&buffer)) {
    read = ReadEvent(buffer, on_progress, &response);
    if (!read.ok()) context.TryCancel();
  }
  grpc::Status status = reader->Finish();
  RETURN_IF_ERROR(read);
  if (IsUnknownCall(status)) {
    response.emplace();
    RETURN_IF_ERROR(connection_->CallForPlan(wire, terms, &*response));
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

absl::StatusOr<int64_t> Client::ReportLatency(const LatencyReport& report, const CancelToken& until,
                                              const ReportOrigin& origin) const {
  constexpr std::chrono::milliseconds kLook(10);  // between two looks at `until`
  v1::ReportLatencyRequest wire;
  EncodeLatencyReport(report, &wire);
  EncodeReportOrigin(origin, &wire);
  v1::ReportLatencyResponse response;
  grpc::ClientContext context;
  context.set_deadline(
      After(std::min(until.Remaining().value_or(options_.deadline), options_.deadline)));
  Introduce(options_, &context, limits_.traceparent);
  std::promise<grpc::Status> done;
  connection_->stub->async()->ReportLatency(
      &context, &wire, &response,
      [&done](grpc::Status status) { done.set_value(std::move(status)); });
  std::future<grpc::Status> answer = done.get_future();
  while (answer.wait_for(kLook) == std::future_status::timeout) {
    if (!until.Check().ok()) context.TryCancel();
  }
  grpc::Status status = answer.get();
  // Unlike other calls without a special error: the background reporter stops, and nothing is
  // wrong.
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
  RETURN_IF_ERROR(connection_->Call(&v1::FusionService::Stub::GetReport, wire,
                                    connection_->TermsOf(limits_), &response));
  std::vector<PlanReport> out;
  for (const v1::PlanReport& report : response.plans()) {
    ASSIGN_OR_RETURN(PlanReport decoded, connection_->Sound(DecodePlanReport(report)));
    out.push_back(std::move(decoded));
  }
  return out;
}

absl::StatusOr<std::vector<DeviceAccuracy>> Client::GetAccuracy() const {
  v1::GetAccuracyResponse response;
  RETURN_IF_ERROR(connection_->Call(&v1::FusionService::Stub::GetAccuracy, v1::GetAccuracyRequest(),
                                    connection_->TermsOf(limits_), &response));
  std::vector<DeviceAccuracy> out;
  for (const v1::DeviceAccuracy& device : response.devices()) {
    ASSIGN_OR_RETURN(DeviceAccuracy decoded, connection_->Sound(DecodeAccuracy(device)));
    out.push_back(std::move(decoded));
  }
  return out;
}

absl::StatusOr<EpochList> Client::ListEpochs() const {
  v1::ListEpochsResponse response;
  RETURN_IF_ERROR(connection_->Call(&v1::FusionService::Stub::ListEpochs, v1::ListEpochsRequest(),
                                    connection_->TermsOf(limits_), &response));
  return connection_->Sound(DecodeEpochs(response));
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
  RETURN_IF_ERROR(EncodeRequest(request, options_.max_message_bytes, wire.mutable_request()));
  EncodeExplainFilter(filter, &wire);
  return AskToExplain(wire);
}

absl::StatusOr<PlanExplanation> Client::AskToExplain(const v1::ExplainPlanRequest& request) const {
  v1::ExplainPlanResponse response;
  RETURN_IF_ERROR(connection_->Call(&v1::FusionService::Stub::ExplainPlan, request,
                                    connection_->TermsOf(limits_), &response));
  return connection_->Sound(DecodeExplanation(response));
}

absl::StatusOr<std::vector<PlanSummary>> Client::ListPlans(int64_t limit) const {
  const Connection::Terms terms = connection_->TermsOf(limits_);
  std::vector<PlanSummary> out;
  std::set<std::string> seen;  // tokens
  v1::ListPlansRequest wire;
  while (static_cast<int64_t>(out.size()) < limit) {
    int64_t left = limit - static_cast<int64_t>(out.size());
    wire.set_page_size(static_cast<int>(std::min<int64_t>(left, kMaxListedPlans)));
    v1::ListPlansResponse response;
    RETURN_IF_ERROR(connection_->Call(&v1::FusionService::Stub::ListPlans, wire, terms, &response));
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
  RETURN_IF_ERROR(connection_->Call(&v1::FusionService::Stub::GetStored, wire,
                                    connection_->TermsOf(limits_), &response));
  return connection_->Sound(DecodeStoredTexts(response));
}

absl::StatusOr<KernelTexts> Client::GetKernelTexts(const Digest& kernel) const {
  v1::GetStoredRequest wire;
  wire.set_kernel(DigestToWire(kernel));
  v1::GetStoredResponse response;
  RETURN_IF_ERROR(connection_->Call(&v1::FusionService::Stub::GetStored, wire,
                                    connection_->TermsOf(limits_), &response));
  return connection_->Sound(DecodeKernelTexts(response.kernel()));
}

absl::StatusOr<Capabilities> Client::GetCapabilities() const {
  v1::GetCapabilitiesResponse response;
  RETURN_IF_ERROR(connection_->Call(&v1::FusionService::Stub::GetCapabilities,
                                    v1::GetCapabilitiesRequest(), connection_->TermsOf(limits_),
                                    &response));
  return DecodeCapabilities(response);
}

absl::StatusOr<std::vector<FetchedKernel>> Client::GetKernels(
    const std::vector<Digest>& keys) const {
  Deadline deadline = After(TimeLeft());
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
  CallStop::Scope scope(limits_.stop, [&context] { context.TryCancel(); });
  Introduce(options_, &context, limits_.traceparent);
  v1::GetKernelsRequest request;
  for (const Digest& key : keys) request.add_keys(DigestToWire(key));
  KernelAssembly assembly(keys, options_.max_kernel_bytes, options_.verify_keys);
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
