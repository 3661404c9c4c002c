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
  kGetReport,
  kGetAccuracy,
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
  kExportStore,
  kImportStore,
  kGetServerStatus,
};
/// All of them, in this order.
inline constexpr std::array kRpcMethods = {
    RpcMethod::kPlanFusion,      RpcMethod::kGetKernels,    RpcMethod::kPlanFusionStream,
    RpcMethod::kReportLatency,   RpcMethod::kGetReport,     RpcMethod::kGetAccuracy,
    RpcMethod::kExplainPlan,     RpcMethod::kListPlans,     RpcMethod::kGetStored,
    RpcMethod::kGetCapabilities, RpcMethod::kGetStoreStats, RpcMethod::kVerifyStore,
    RpcMethod::kCompactStore,    RpcMethod::kSetPinned,     RpcMethod::kInvalidate,
    RpcMethod::kExportStore,     RpcMethod::kImportStore,   RpcMethod::kGetServerStatus};

/// "PlanFusion".
std::string_view RpcMethodName(RpcMethod method);
/// "fusion.v1.FusionService".
std::string_view RpcServiceName(RpcMethod method);
/// Whether it is a method of FusionAdmin.
bool IsAdmin(RpcMethod method);
/// Whether the server streams its answer.
bool IsStream(RpcMethod method);
/// The role that a caller needs: kReport for ReportLatency, kPlan for the rest of FusionService,
/// kAdmin for everything else.
Role RoleOf(RpcMethod method);
/// Whether the client streams its request.
bool TakesStream(RpcMethod method);

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
  int64_t keys = 0;    // FusionAdmin: number of plans and kernels concerned; 0: all, or none
  std::string reason;  // FusionAdmin: the reason that the caller gave
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
