#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/files/signature.h"
#include "core/bundle/explanation.h"
#include "core/pipeline/plan_fusion.h"
#include "core/wire/report.h"

namespace fusion {

/// What is kept of PlanFusionRequest.request_id.
inline constexpr size_t kMaxRequestIdBytes = 128;

/// A PlanFusion request as it came, and as plain values that refer to it.
class DecodedRequest {
 public:
  virtual ~DecodedRequest() = default;
  const PlanRequest& request() const { return request_; }
  /// Whose it is alone, from now on.
  void SetTenant(std::string tenant) { request_.options.tenant = std::move(tenant); }
  /// The caller's word for logs; at most 128 bytes.
  const std::string& request_id() const { return request_id_; }

 protected:
  PlanRequest request_;
  std::string request_id_;
};

/// Objects that one request may make of its bytes, eight numbers counted as one. A message of two
/// bytes becomes an object of a hundred or more: they are counted before anything is parsed. A
/// graph of 4,000 nodes has some 50,000.
inline constexpr int64_t kMaxRequestObjects = 1 << 19;

/// Reads a serialised v1::PlanFusionRequest of a stranger. Copies what it needs of `bytes`.
/// InvalidArgument, naming the field; Unimplemented for a dump kind or an ISA we do not know;
/// ResourceExhausted above kMaxRequestObjects. Pure, any thread.
absl::StatusOr<std::unique_ptr<DecodedRequest>> DecodePlanRequest(std::string_view bytes);

/// The keys in a serialised v1::GetKernelsRequest of a stranger. InvalidArgument, naming the field;
/// ResourceExhausted above kMaxRequestObjects. Pure, any thread.
absl::StatusOr<std::vector<Digest>> DecodeKernelsRequest(std::string_view bytes);

/// What a serialiser writes in front of the bytes of a field: a message, a text, bytes.
std::string EncodeFieldHead(int field, size_t bytes);

/// A serialised v1::PlanFusionResponse in three parts, in this order. The plan's bytes are those of
/// the store, so that a warm answer copies nothing.
struct EncodedReply {
  std::string head;
  std::shared_ptr<const StoredPlan> plan;  // its plan_bytes
  std::string tail;
};
/// `signature`: over plan and kernels, if the service signs.
EncodedReply EncodePlanReply(const PlanReply& reply,
                             const std::optional<Signature>& signature = std::nullopt);
/// What stands behind such a response to add a stage to it.
std::string EncodeFurtherStage(const StageTime& stage);

/// What stands in front of such a response in a serialised v1::PlanFusionEvent.
std::string EncodeResponseEventHead(const EncodedReply& reply);
/// A serialised v1::PlanFusionEvent with progress.
std::string EncodeProgressEvent(const PlanProgress& progress);

// The short calls. Each Decode* reads a serialised request of a stranger: InvalidArgument, naming
// the field; ResourceExhausted above kMaxRequestObjects. Each Encode* gives a serialised response.
// Pure, any thread.

absl::StatusOr<LatencyReport> DecodeLatencyReport(std::string_view bytes);
std::string EncodeAcceptedSamples(int64_t samples);

absl::StatusOr<ReportQuery> DecodeReportQuery(std::string_view bytes);
std::string EncodeReports(const std::vector<PlanReport>& reports);

/// Which plan is to be explained: one by its key, or that of a request; and what of it.
struct ExplainQuery {
  std::optional<Digest> plan;               // if set,
  std::unique_ptr<DecodedRequest> request;  // then this is null, else not
  ExplainFilter filter;
};
/// Further errors as those of DecodePlanRequest.
absl::StatusOr<ExplainQuery> DecodeExplainQuery(std::string_view bytes);

/// What of the store is wanted.
struct StoredQuery {
  bool is_plan = false;  // else a kernel
  Digest key;
};
absl::StatusOr<StoredQuery> DecodeStoredQuery(std::string_view bytes);
std::string EncodeStoredTexts(const StoredPlan& plan);
std::string EncodeStoredTexts(const KernelTexts& kernel);

/// Which part of the list of plans is wanted.
struct ListQuery {
  int page_size = kDefaultListedPlans;
  std::optional<PlanPlace> after;
};
absl::StatusOr<ListQuery> DecodeListQuery(std::string_view bytes);
std::string EncodePlanPage(const PlanPage& page);

absl::Status CheckCapabilitiesRequest(std::string_view bytes);
std::string EncodeCapabilities(const Capabilities& capabilities);

}  // namespace fusion
