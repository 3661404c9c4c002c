#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/pipeline/plan_fusion.h"
#include "server/access/caller.h"

namespace fusion {

enum class RpcMethod : uint8_t {
  kPlanFusion,
  kGetKernels,
  kPlanFusionStream,
  kReportLatency,
  kReportLatencies,
  kGetReport,
  kGetAccuracy,
  kListEpochs,
  kExplainPlan,
  kListPlans,
  kGetStored,
  kGetCapabilities,
  // FusionAdmin:
  kGetStoreStats,
  kVerifyStore,
  kCompactStore,
  kSetPinned,
  kInvalidate,
  kSteerEpochs,
  kExportStore,
  kImportStore,
  kGetServerStatus,
};
/// All of them, in this order.
inline constexpr std::array kRpcMethods = {
    RpcMethod::kPlanFusion,    RpcMethod::kGetKernels,      RpcMethod::kPlanFusionStream,
    RpcMethod::kReportLatency, RpcMethod::kReportLatencies, RpcMethod::kGetReport,
    RpcMethod::kGetAccuracy,   RpcMethod::kListEpochs,      RpcMethod::kExplainPlan,
    RpcMethod::kListPlans,     RpcMethod::kGetStored,       RpcMethod::kGetCapabilities,
    RpcMethod::kGetStoreStats, RpcMethod::kVerifyStore,     RpcMethod::kCompactStore,
    RpcMethod::kSetPinned,     RpcMethod::kInvalidate,      RpcMethod::kSteerEpochs,
    RpcMethod::kExportStore,   RpcMethod::kImportStore,     RpcMethod::kGetServerStatus};

/// "PlanFusion".
std::string_view RpcMethodName(RpcMethod method);
/// "fusion.v1.FusionService".
std::string_view RpcServiceName(RpcMethod method);
/// Whether it is a method of FusionAdmin.
bool IsAdmin(RpcMethod method);
/// Whether the server streams its answer.
bool IsStream(RpcMethod method);
/// The role that a caller needs: kReport for ReportLatency and ReportLatencies, kPlan for the rest
/// of FusionService, kAdmin for everything else.
Role RoleOf(RpcMethod method);
/// Whether the client streams its request.
bool TakesStream(RpcMethod method);

/// What became of the reports of a call, in reports.
struct ReportCounts {
  int64_t ok = 0;
  int64_t duplicate = 0;
  int64_t invalid = 0;       // InvalidArgument
  int64_t unknown_plan = 0;  // NotFound
  int64_t error = 0;         // refused with another status

  int64_t refused() const { return invalid + unknown_plan + error; }
  int64_t all() const { return ok + duplicate + refused(); }
  /// Counts a report that was not stored.
  void AddRefused(const absl::Status& why);
};

/// One finished call, for the log and the metrics.
struct RpcRecord {
  RpcMethod method = RpcMethod::kPlanFusion;
  std::string request_id;
  std::string tenant;    // empty: the caller was not identified
  std::string plan_key;  // hex; of the plan that was returned, reported about or requested
  std::optional<CacheOutcome> cache;  // set if a plan was returned
  std::optional<bool> warm;           // whether ResponseCache had the answer; unset: not looked up
  absl::Status status;
  Nanoseconds took{0};    // from the start of the handler to handing the answer to gRPC
  Nanoseconds queued{0};  // the part of `took` before a thread was available
  std::vector<StageTime> stages;
  int64_t keys = 0;      // FusionAdmin: number of plans and kernels concerned; 0: all, or none
  std::string reason;    // FusionAdmin: the reason that the caller gave
  ReportCounts reports;  // ReportLatency, ReportLatencies
  int64_t messages_sent = 0;
  int64_t bytes_in = 0;
  int64_t bytes_out = 0;
};

/// Notified of every call. Implementations must be thread-safe and must not block.
class RpcObserver {
 public:
  virtual ~RpcObserver() = default;
  virtual void OnStarted(RpcMethod method) = 0;
  virtual void OnFinished(const RpcRecord& record) = 0;
};

}  // namespace fusion
