#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/calls/call_stop.h"
#include "client/fusion_reply.h"
#include "core/base/files/signature.h"
#include "core/base/threads/cancel.h"
#include "core/bundle/explanation.h"
#include "core/bundle/measured/accuracy.h"
#include "core/bundle/measured/epoch.h"
#include "core/bundle/measured/report_origin.h"
#include "core/bundle/report.h"

namespace grpc {
class ByteBuffer;
class Channel;
}  // namespace grpc

namespace fusion::v1 {
class ExplainPlanRequest;
class PlanFusionResponse;
}  // namespace fusion::v1

namespace fusion {

/// TLS settings of a connection; PEM texts.
struct ClientTls {
  std::string ca;           // roots for the server's certificate; empty: gRPC's own
  std::string certificate;  // client certificate with its chain; empty: none
  std::string key;          // of `certificate`
  std::string server_name;  // expected in the server's certificate; empty: the host of the address
};

struct ClientOptions {
  /// Time limit of Connect.
  Nanoseconds connect_timeout = std::chrono::seconds(5);
  /// Connect fails once connections have been refused for this long. A loaded machine may refuse a
  /// single connection or break off its handshake.
  Nanoseconds refused_for = std::chrono::milliseconds(500);
  /// Connect waits up to connect_timeout for the service, even if connections are refused.
  bool wait_for_ready = false;
  /// Deadline of every call of a Client, including its pages and fallbacks. PlanFusion with
  /// PlanMode::kCompile waits for a compiler.
  Nanoseconds deadline = std::chrono::minutes(5);
  /// Attempts of a call, the first included, if the service is unavailable, 1..5; the pauses
  /// between them grow from 0.1 s to 2 s.
  int attempts = 4;
  /// Use a connection of its own, shared only by Share(), Limited() and Traced(); gRPC's memory of
  /// refusing addresses is then separate as well. Otherwise clients with equal options share one
  /// connection.
  bool own_connection = false;
  /// Longest message in either direction.
  int64_t max_message_bytes = int64_t{64} << 20;
  /// Largest kernel; the largest seen has 60 KiB.
  int64_t max_kernel_bytes = int64_t{64} << 20;
  /// Not set: plain text.
  std::optional<ClientTls> tls = {};
  /// Bearer token of every call; empty: none. It can be read by eavesdroppers on a connection
  /// without TLS.
  std::string token = {};
  /// W3C Trace Context of the caller's operation. Sent with every call that has none of its own
  /// (FusionRequest, CallLimits). The server's log shows its trace id, also for the planning and
  /// compiling of the call. Invalid or empty: each Client, and each load of a ResilientClient,
  /// creates one.
  std::string traceparent = {};
  /// Calls have lower priority than those of clients without this flag.
  bool background = false;
  /// If not empty: a plan or kernel without a signature by one of these keys is DataLoss, and no
  /// part of it is used.
  std::vector<SigningKey> verify_keys = {};
};

/// A kernel: a shared object whose SHA-256 (`content`) was checked.
struct FetchedKernel {
  Digest key;
  Digest content;
  std::string binary;
};

/// Receives the progress of a request, in order, on the thread of the call. A slow observer delays
/// only this answer.
using ProgressObserver = std::function<void(const PlanProgress&)>;

/// True if a call of the service ended with this error: a ResourceExhausted is then about a limit
/// of the service, not about memory of this process. Annotate() removes this mark.
bool IsFromService(const absl::Status& status);

/// The names of the request's rules that caused the error: a rule names an unknown operator or
/// forces an impossible kernel. Empty: the cause is another one, possibly a rule of the service.
/// Annotate() removes them.
std::vector<std::string> BlamedRules(const absl::Status& status);

/// Limits of all PlanFusion and GetKernels calls of one client together. The PlanFusion with
/// progress has the deadline, but cannot be stopped.
struct CallLimits {
  /// Deadline, by Clock::Real; a call that begins later fails at once.
  std::optional<Nanoseconds> until;
  /// Cancels the calls soon after Stop(). Outlives the calls; may be null.
  CallStop* stop = nullptr;
  /// W3C Trace Context; empty: the client's.
  std::string traceparent = {};
};

/// A client of one fusiond. Thread-safe.
///
///   ASSIGN_OR_RETURN(auto client, Client::Connect("unix:/run/fusiond.sock"));
///   ASSIGN_OR_RETURN(FusionReply reply, client->PlanFusion(request));
///
/// Errors of all calls:
///
/// - The codes and messages of the service; InvalidArgument and Unimplemented are about the
///   request.
/// - Unavailable, naming the address: the service cannot be reached, or reports this itself.
/// - Cancelled: CallLimits::stop or a CancelToken ended the call.
/// - DeadlineExceeded: the deadline of the call has passed.
/// - DataLoss: an answer is malformed, a kernel does not match its digest, or a required signature
///   is missing.
/// - Unauthenticated, PermissionDenied: the service does not know the caller, or does not allow the
///   call.
class Client {
 public:
  /// `address`: "HOST:PORT" or "unix:/PATH". Unavailable if no service answers within
  /// ClientOptions::connect_timeout, or refuses connections for longer than `refused_for`.
  static absl::StatusOr<std::unique_ptr<Client>> Connect(const std::string& address,
                                                         const ClientOptions& options = {});
  /// The same without waiting, so it never fails; the first call connects.
  static absl::StatusOr<std::unique_ptr<Client>> Open(const std::string& address,
                                                      const ClientOptions& options = {});
  ~Client();

  const std::string& address() const { return address_; }
  /// For AdminClient.
  std::shared_ptr<grpc::Channel> channel() const;
  const ClientOptions& options() const { return options_; }

  /// Another client on the same connection, which may outlive this one; without its limits.
  std::unique_ptr<Client> Share() const;
  /// As Share(), with these limits.
  std::unique_ptr<Client> Limited(const CallLimits& limits) const;
  /// As Share(), with the limits of this client; its calls belong to `traceparent` (W3C Trace
  /// Context).
  std::unique_ptr<Client> Traced(const std::string& traceparent) const;
  /// Connects. OK once the address accepts or refuses the connection (a call then reports the
  /// reason of the refusal). Unavailable if there is no response within `timeout`.
  absl::Status Reach(Nanoseconds timeout) const;

  /// OK if the service reports that it serves; Unavailable if it reports that it does not, for
  /// instance while it drains.
  absl::Status CheckHealth(Nanoseconds timeout) const;

  absl::StatusOr<FusionReply> PlanFusion(const FusionRequest& request) const;
  /// The same; also returns the answer as a serialised v1::PlanFusionResponse, for caches. `answer`
  /// may be null.
  absl::StatusOr<FusionReply> PlanFusion(const FusionRequest& request, std::string* answer) const;
  /// The same, with progress. If the service lacks this call, there is no progress.
  absl::StatusOr<FusionReply> PlanFusion(const FusionRequest& request,
                                         const ProgressObserver& on_progress) const;

  /// The shared objects of these kernels, in the order of `keys`. Waits for kernels that are being
  /// compiled. Splits long lists into several calls. Internal, with the message of the compiler or
  /// the check, if a kernel failed; NotFound if the service no longer has one: PlanFusion with
  /// PlanMode::kCompile makes it again.
  absl::StatusOr<std::vector<FetchedKernel>> GetKernels(const std::vector<Digest>& keys) const;

  /// Reports latencies of a plan's kernels to the service. Returns the number of stored samples:
  /// all, or 0 if `report.threads` is not the thread count of the plan. InvalidArgument, naming
  /// launch and sample, if a sample is implausible: nothing is stored. NotFound if the service no
  /// longer has the plan: PlanFusion makes it again. Unimplemented if the service lacks this call.
  /// Never retried; after Unavailable the report may or may not be stored.
  absl::StatusOr<int64_t> ReportLatency(const LatencyReport& report) const;
  /// The same; Cancelled or DeadlineExceeded soon after `until` has ended. A report whose
  /// `origin` has an id may be sent again: it counts once, and 0 is returned the next time. Samples
  /// that were measured under more than kMaxBackgroundLoad are not stored.
  absl::StatusOr<int64_t> ReportLatency(const LatencyReport& report, const CancelToken& until,
                                        const ReportOrigin& origin = {}) const;

  /// Stored reports, the latest first: of `plan`, or of up to `limit` (1..1000) plans. Empty if
  /// nothing was reported. NotFound if the service does not have `plan`.
  absl::StatusOr<std::vector<PlanReport>> GetReport(std::optional<Digest> plan = std::nullopt,
                                                    int limit = 100) const;

  /// How far estimates are from what was reported by this caller's tenant, by kind of device, and
  /// the constants that would fit better; those with most timings first. Such calls wait for each
  /// other on the service.
  absl::StatusOr<std::vector<DeviceAccuracy>> GetAccuracy() const;
  /// Constants that measurements have corrected, and what was decided about stored plans.
  absl::StatusOr<EpochList> ListEpochs() const;

  /// The ledger of a plan: why its kernels are what they are. The second form plans the request if
  /// the service does not have the plan; it compiles nothing and ignores `mode`, `ready_within` and
  /// `dumps`. `filter` selects a part. NotFound if the service does not have `plan`;
  /// InvalidArgument, naming the field, if the filter does not fit the plan.
  absl::StatusOr<PlanExplanation> ExplainPlan(const Digest& plan,
                                              const ExplainFilter& filter = {}) const;
  absl::StatusOr<PlanExplanation> ExplainPlan(const FusionRequest& request,
                                              const ExplainFilter& filter = {}) const;

  /// The newest `limit` plans in the service's store, newest first.
  absl::StatusOr<std::vector<PlanSummary>> ListPlans(int64_t limit = INT64_MAX) const;

  /// A stored plan with the parts of its key; the texts of a stored kernel. NotFound if the service
  /// does not have it (any more).
  absl::StatusOr<StoredPlanTexts> GetStoredPlan(const Digest& plan) const;
  absl::StatusOr<KernelTexts> GetKernelTexts(const Digest& kernel) const;

  absl::StatusOr<Capabilities> GetCapabilities() const;

 private:
  struct Connection;
  absl::Status ReadEvent(const grpc::ByteBuffer& buffer, const ProgressObserver& on_progress,
                         std::optional<v1::PlanFusionResponse>* response) const;
  absl::StatusOr<PlanExplanation> AskToExplain(const v1::ExplainPlanRequest& request) const;
  absl::Status FetchKernels(const std::vector<Digest>& keys,
                            std::chrono::system_clock::time_point deadline,
                            std::vector<FetchedKernel>* out) const;
  Client(std::string address, const ClientOptions& options);
  Nanoseconds TimeLeft() const;

  const std::string address_;
  const ClientOptions options_;
  CallLimits limits_;
  std::shared_ptr<Connection> connection_;
};

}  // namespace fusion
