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
  kExplainPlan,
  kListPlans,
  kGetStored,
  kGetCapabilities,
  // Of FusionAdmin.
  kGetStoreStats,
  kVerifyStore,
  kCompactStore,
  kSetPinned,
  kInvalidate,
  kExportStore,
  kImportStore,
};
/// All of them, in this order.
inline constexpr std::array kRpcMethods = {
    RpcMethod::kPlanFusion,    RpcMethod::kGetKernels,  RpcMethod::kPlanFusionStream,
    RpcMethod::kReportLatency, RpcMethod::kGetReport,   RpcMethod::kExplainPlan,
    RpcMethod::kListPlans,     RpcMethod::kGetStored,   RpcMethod::kGetCapabilities,
    RpcMethod::kGetStoreStats, RpcMethod::kVerifyStore, RpcMethod::kCompactStore,
    RpcMethod::kSetPinned,     RpcMethod::kInvalidate,  RpcMethod::kExportStore,
    RpcMethod::kImportStore};

/// "PlanFusion".
std::string_view RpcMethodName(RpcMethod method);
/// "fusion.v1.FusionService".
std::string_view RpcServiceName(RpcMethod method);
/// Whether it is one of FusionAdmin.
bool IsAdmin(RpcMethod method);
/// Whether the answer is a stream.
bool IsStream(RpcMethod method);
/// What a caller must be allowed to. A method that is not named here is the operator's.
Role RoleOf(RpcMethod method);
/// Whether the request is one.
bool TakesStream(RpcMethod method);

/// What is known about a finished call: for the log and the metrics.
struct RpcRecord {
  RpcMethod method = RpcMethod::kPlanFusion;
  std::string request_id;
  std::string tenant;    // empty: not known who it is
  std::string plan_key;  // hex; of the plan that was answered, reported about or asked for
  std::optional<CacheOutcome> cache;  // set if a plan was answered
  std::optional<bool> warm;  // whether an equal request's answer was given again; set where looked
  absl::Status status;
  Nanoseconds took{0};    // from the first byte seen to the answer given away
  Nanoseconds queued{0};  // of it, waiting for a thread
  std::vector<StageTime> stages;
  int64_t keys = 0;    // of FusionAdmin: plans and kernels that it is about; 0: all, or none
  std::string reason;  // of FusionAdmin: the operator's words
  int64_t messages_sent = 0;
  int64_t bytes_in = 0;
  int64_t bytes_out = 0;
};

/// Told about every call. Thread-safe and quick.
class RpcObserver {
 public:
  virtual ~RpcObserver() = default;
  virtual void OnStarted(RpcMethod method) = 0;
  virtual void OnFinished(const RpcRecord& record) = 0;
};

}  // namespace fusion
