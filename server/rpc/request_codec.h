#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/files/signature.h"
#include "core/bundle/explanation.h"
#include "core/bundle/measured/accuracy.h"
#include "core/bundle/measured/epoch.h"
#include "core/bundle/measured/report_origin.h"
#include "core/learn/latency_book.h"
#include "core/pipeline/plan_fusion.h"
#include "core/wire/report.h"
#include "server/access/rpc_record.h"

namespace fusion {

/// Bytes kept of PlanFusionRequest.request_id.
inline constexpr size_t kMaxRequestIdBytes = 128;

/// A parsed PlanFusionRequest. Owns what request() refers to.
class DecodedRequest {
 public:
  virtual ~DecodedRequest() = default;
  const PlanRequest& request() const { return request_; }
  /// Restricts the plan to a tenant's namespace (--tenant-namespaces).
  void SetTenant(std::string tenant) { request_.options.tenant = std::move(tenant); }
  /// The caller's id for logs; at most kMaxRequestIdBytes.
  const std::string& request_id() const { return request_id_; }

 protected:
  PlanRequest request_;
  std::string request_id_;
};

/// Objects (CountObjects) that parsing one request may make. A message of two bytes becomes an
/// object of a hundred or more, so they are counted before parsing. A graph of 4,000 nodes has
/// about 50,000.
inline constexpr int64_t kMaxRequestObjects = 1 << 19;

/// Parses an untrusted serialised v1::PlanFusionRequest. Copies what it needs of `bytes`.
/// InvalidArgument, naming the field; Unimplemented for an unknown dump kind or ISA;
/// ResourceExhausted above kMaxRequestObjects. Pure, any thread.
absl::StatusOr<std::unique_ptr<DecodedRequest>> DecodePlanRequest(std::string_view bytes);

/// The keys in an untrusted serialised v1::GetKernelsRequest. InvalidArgument, naming the field;
/// ResourceExhausted above kMaxRequestObjects. Pure, any thread.
absl::StatusOr<std::vector<Digest>> DecodeKernelsRequest(std::string_view bytes);

/// Tag and length that precede a length-delimited field (message, string, bytes) of `bytes` bytes.
std::string EncodeFieldHead(int field, size_t bytes);

/// A serialised v1::PlanFusionResponse: the concatenation of head, plan->plan_bytes and tail. The
/// plan's bytes are shared with the store, so a cached answer copies nothing.
struct EncodedReply {
  std::string head;
  std::shared_ptr<const StoredPlan> plan;
  std::string tail;
};
/// `signature`: of plan and kernels (Signer::SignPlan), if the service signs.
EncodedReply EncodePlanReply(const PlanReply& reply,
                             const std::optional<Signature>& signature = std::nullopt);
/// Bytes to append to such a response that add a stage to it.
std::string EncodeFurtherStage(const StageTime& stage);

/// Bytes to put before such a response to make it a serialised v1::PlanFusionEvent.
std::string EncodeResponseEventHead(const EncodedReply& reply);
/// A serialised v1::PlanFusionEvent with progress.
std::string EncodeProgressEvent(const PlanProgress& progress);

// The other calls. Each Decode* parses an untrusted serialised request: InvalidArgument, naming the
// field; ResourceExhausted above kMaxRequestObjects. Each Encode* returns a serialised response.
// Pure, any thread.

struct DecodedReport {
  LatencyReport report;
  ReportOrigin origin;
};
absl::StatusOr<DecodedReport> DecodeLatencyReport(std::string_view bytes);
std::string EncodeAddedReport(const AddedReport& added);

/// Refused reports in one answer of ReportLatencies, the first ones, and bytes of each message.
inline constexpr size_t kMaxShownRefusals = 16;
inline constexpr size_t kMaxRefusalBytes = 512;
/// What a ReportLatencies says beside the counts of its reports.
struct ReportsOutcome {
  struct Refusal {
    int64_t index = 0;  // in the stream
    absl::Status why;
  };
  int64_t accepted_samples = 0;
  std::vector<Refusal> refused;  // at most kMaxShownRefusals
};
std::string EncodeReportsOutcome(const ReportCounts& reports, const ReportsOutcome& outcome);

absl::StatusOr<ReportQuery> DecodeReportQuery(std::string_view bytes);
std::string EncodeReports(const std::vector<PlanReport>& reports);

absl::Status CheckAccuracyRequest(std::string_view bytes);
std::string EncodeAccuracies(const std::vector<DeviceAccuracy>& devices);

absl::Status CheckEpochsRequest(std::string_view bytes);
std::string EncodeEpochList(const EpochList& list);

/// The plan to explain, and the part of its explanation. Exactly one of `plan` and `request` is
/// set.
struct ExplainQuery {
  std::optional<Digest> plan;               // key of a stored plan
  std::unique_ptr<DecodedRequest> request;  // or the request whose plan it is
  ExplainFilter filter;
};
/// Also fails as DecodePlanRequest does.
absl::StatusOr<ExplainQuery> DecodeExplainQuery(std::string_view bytes);

/// The requested entry of the store.
struct StoredQuery {
  bool is_plan = false;  // false: a kernel
  Digest key;
};
absl::StatusOr<StoredQuery> DecodeStoredQuery(std::string_view bytes);
std::string EncodeStoredTexts(const StoredPlan& plan);
std::string EncodeStoredTexts(const KernelTexts& kernel);

/// The requested page of the list of plans.
struct ListQuery {
  int page_size = kDefaultListedPlans;
  std::optional<PlanPlace> after;  // the page starts behind this plan; nullopt: the first page
};
absl::StatusOr<ListQuery> DecodeListQuery(std::string_view bytes);
std::string EncodePlanPage(const PlanPage& page);

absl::Status CheckCapabilitiesRequest(std::string_view bytes);
std::string EncodeCapabilities(const Capabilities& capabilities);

}  // namespace fusion
