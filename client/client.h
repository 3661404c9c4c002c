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

/// A connection over TLS. PEM texts.
struct ClientTls {
  std::string ca;           // of the server's certificate; empty: those that gRPC knows
  std::string certificate;  // shown to the server, with its chain; empty: none
  std::string key;          // of `certificate`
  std::string server_name;  // that the server's certificate must have; empty: that of the address
};

struct ClientOptions {
  /// For Connect.
  Nanoseconds connect_timeout = std::chrono::seconds(5);
  /// Connect gives up when connections are refused for this long. A loaded machine may refuse one,
  /// or break off its handshake.
  Nanoseconds refused_for = std::chrono::milliseconds(500);
  /// Connect waits until the service is there, however many connections are refused.
  bool wait_for_ready = false;
  /// For every call of a Client, pages and fallbacks included; PlanFusion with PlanMode::kCompile
  /// waits for a compiler.
  Nanoseconds deadline = std::chrono::minutes(5);
  /// Attempts of a call, the first included, when the service is unavailable; the pauses between
  /// them grow from 0.1 s to 2 s. 1..5.
  int attempts = 4;
  /// The connection is this client's alone (and of who shares it), and so is what gRPC remembers of
  /// addresses that refused; else clients with equal options have one connection.
  bool own_connection = false;
  /// Of one message in either direction.
  int64_t max_message_bytes = int64_t{64} << 20;
  /// Of one kernel; the longest seen has 60 KiB.
  int64_t max_kernel_bytes = int64_t{64} << 20;
  /// Nothing: plain text.
  std::optional<ClientTls> tls = {};
  /// Goes with every call; empty: none. Who listens on a plain connection reads it.
  std::string token = {};
  /// W3C Trace Context of what the caller is at; goes with every call that has none of its own
  /// (FusionRequest, CallLimits), and the server's log has its trace id, also in what the service
  /// does for the call: planning, compiling. Of another form, or empty: a Client has one of its
  /// own, and so has each load of a ResilientClient.
  std::string traceparent = {};
  /// Gives way to the calls of others that are not.
  bool background = false;
  /// If there are some, plans and kernels that none of them signed are DataLoss; nothing of them is
  /// used.
  std::vector<SigningKey> verify_keys = {};
};

/// A kernel as it is loaded: a shared object whose SHA-256 was checked.
struct FetchedKernel {
  Digest key;
  Digest content;
  std::string binary;
};

/// Told how far a request is, on the thread of the call, in order. Time spent here holds up only
/// the answer, not the service.
using ProgressObserver = std::function<void(const PlanProgress&)>;

/// True if a call ended with this error: a ResourceExhausted is then about a limit of the service,
/// not about the memory of this process. Annotate() forgets it.
bool IsFromService(const absl::Status& status);

/// The names of the rules of a request that a call failed for: one names an operator that the
/// service does not know, or forces what no kernel can be. Empty: something else is to blame, be it
/// the service's own rules. Annotate() forgets them.
std::vector<std::string> BlamedRules(const absl::Status& status);

/// Of PlanFusion (but the one with progress) and GetKernels of one client, all together: when they
/// end, and what they are part of.
struct CallLimits {
  /// Of Clock::Real; a call that begins later has no time at all.
  std::optional<Nanoseconds> until;
  /// Outlives the calls; may be null. Cancelled soon after it is stopped.
  CallStop* stop = nullptr;
  /// W3C Trace Context; empty: the client's.
  std::string traceparent = {};
};

/// Talks to one fusiond. Thread-safe.
///
///   ASSIGN_OR_RETURN(auto client, Client::Connect("unix:/run/fusiond.sock"));
///   ASSIGN_OR_RETURN(FusionReply reply, client->PlanFusion(request));
///
/// Errors: the service's own codes and words (InvalidArgument and Unimplemented are about the
/// request); Unavailable, naming the address, if it cannot be reached or says so itself;
/// DeadlineExceeded if the call's own deadline has passed; DataLoss if an answer is malformed, a
/// kernel is not what its digest says, or one of them lacks the signature that is asked for;
/// Unauthenticated and PermissionDenied if the service does not know the caller, or does not let it
/// do this.
class Client {
 public:
  /// `address`: "HOST:PORT" or "unix:/PATH".
  static absl::StatusOr<std::unique_ptr<Client>> Connect(const std::string& address,
                                                         const ClientOptions& options = {});
  /// The same without waiting: connects when it is first used.
  static absl::StatusOr<std::unique_ptr<Client>> Open(const std::string& address,
                                                      const ClientOptions& options = {});
  ~Client();

  const std::string& address() const { return address_; }
  /// For AdminClient.
  std::shared_ptr<grpc::Channel> channel() const;
  const ClientOptions& options() const { return options_; }

  /// Another client on the same connection, for who may outlive this one; without its limits.
  std::unique_ptr<Client> Share() const;
  /// The same with limits.
  std::unique_ptr<Client> Limited(const CallLimits& limits) const;
  /// The same with this one's limits, whose calls are part of `traceparent` (W3C Trace Context).
  std::unique_ptr<Client> Traced(const std::string& traceparent) const;
  /// Connects. OK once somebody is there, or refuses: a call is told why. Unavailable if nothing is
  /// heard for so long.
  absl::Status Reach(Nanoseconds timeout) const;

  /// OK if the service says that it serves; Unavailable if it says that it does not, for instance
  /// because it drains.
  absl::Status CheckHealth(Nanoseconds timeout) const;

  absl::StatusOr<FusionReply> PlanFusion(const FusionRequest& request) const;
  /// The same, and the answer as a serialised v1::PlanFusionResponse, for who keeps it; may be
  /// null.
  absl::StatusOr<FusionReply> PlanFusion(const FusionRequest& request, std::string* answer) const;
  /// The same answer, for people who wait. A service that is older than this call is asked plainly.
  absl::StatusOr<FusionReply> PlanFusion(const FusionRequest& request,
                                         const ProgressObserver& on_progress) const;

  /// The shared objects of these kernels, in this order. Waits for those that are being compiled.
  /// More keys than one call may hold are asked for in several.
  /// Internal, with the compiler's or the check's words, if one failed; NotFound if the service
  /// does not have one any more: PlanFusion with PlanMode::kCompile makes it again.
  absl::StatusOr<std::vector<FetchedKernel>> GetKernels(const std::vector<Digest>& keys) const;

  /// Tells the service what the kernels of a plan took; gives the number of samples it stored: all
  /// of them, or none if `report.threads` is not what the plan was made for. InvalidArgument,
  /// naming launch and sample, if one is not plausible: then none is. NotFound if the service does
  /// not have the plan any more: PlanFusion makes it again. Unimplemented if it is older than this
  /// call. Never tried twice, so an Unavailable may leave a stored report behind.
  absl::StatusOr<int64_t> ReportLatency(const LatencyReport& report) const;
  /// The same; Cancelled or DeadlineExceeded soon after `until` has ended.
  absl::StatusOr<int64_t> ReportLatency(const LatencyReport& report,
                                        const CancelToken& until) const;

  /// What was reported, the latest report first: of one plan, or of at most `limit` (1..1000).
  /// Nothing where nothing was reported. NotFound if the service does not have `plan`.
  absl::StatusOr<std::vector<PlanReport>> GetReport(std::optional<Digest> plan = std::nullopt,
                                                    int limit = 100) const;

  /// Why the kernels of a stored plan are what they are, or of the plan of a request, which is made
  /// if the service does not have it; nothing is compiled, and `mode`, `ready_within` and `dumps`
  /// mean nothing. All of the ledger, or the part that `filter` asks for. NotFound if the service
  /// does not have `plan`; InvalidArgument, naming the field, for a filter that does not fit the
  /// plan.
  absl::StatusOr<PlanExplanation> ExplainPlan(const Digest& plan,
                                              const ExplainFilter& filter = {}) const;
  absl::StatusOr<PlanExplanation> ExplainPlan(const FusionRequest& request,
                                              const ExplainFilter& filter = {}) const;

  /// Plans that the service has stored, the newest `limit` of them, newest first.
  absl::StatusOr<std::vector<PlanSummary>> ListPlans(int64_t limit = INT64_MAX) const;

  /// A stored plan and what its key is made of; the texts of a stored kernel. NotFound if the
  /// service does not have it, or not any more.
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
