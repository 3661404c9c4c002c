#include "server/access/rpc_record.h"

namespace fusion {

std::string_view RpcMethodName(RpcMethod method) {
  switch (method) {
    case RpcMethod::kPlanFusion:
      return "PlanFusion";
    case RpcMethod::kGetKernels:
      return "GetKernels";
    case RpcMethod::kPlanFusionStream:
      return "PlanFusionStream";
    case RpcMethod::kReportLatency:
      return "ReportLatency";
    case RpcMethod::kReportLatencies:
      return "ReportLatencies";
    case RpcMethod::kGetReport:
      return "GetReport";
    case RpcMethod::kGetAccuracy:
      return "GetAccuracy";
    case RpcMethod::kListEpochs:
      return "ListEpochs";
    case RpcMethod::kExplainPlan:
      return "ExplainPlan";
    case RpcMethod::kListPlans:
      return "ListPlans";
    case RpcMethod::kGetStored:
      return "GetStored";
    case RpcMethod::kGetCapabilities:
      return "GetCapabilities";
    case RpcMethod::kGetStoreStats:
      return "GetStoreStats";
    case RpcMethod::kVerifyStore:
      return "VerifyStore";
    case RpcMethod::kCompactStore:
      return "CompactStore";
    case RpcMethod::kSetPinned:
      return "SetPinned";
    case RpcMethod::kInvalidate:
      return "Invalidate";
    case RpcMethod::kSteerEpochs:
      return "SteerEpochs";
    case RpcMethod::kExportStore:
      return "ExportStore";
    case RpcMethod::kImportStore:
      return "ImportStore";
    case RpcMethod::kGetServerStatus:
      return "GetServerStatus";
  }
  return "unknown";
}

bool IsStream(RpcMethod method) {
  return method == RpcMethod::kGetKernels || method == RpcMethod::kPlanFusionStream ||
         method == RpcMethod::kExportStore;
}

bool TakesStream(RpcMethod method) {
  return method == RpcMethod::kImportStore || method == RpcMethod::kReportLatencies;
}

bool IsAdmin(RpcMethod method) { return method >= RpcMethod::kGetStoreStats; }

std::string_view RpcServiceName(RpcMethod method) {
  return IsAdmin(method) ? "fusion.v1.FusionAdmin" : "fusion.v1.FusionService";
}

Role RoleOf(RpcMethod method) {
  switch (method) {
    case RpcMethod::kPlanFusion:
    case RpcMethod::kGetKernels:
    case RpcMethod::kPlanFusionStream:
    case RpcMethod::kGetReport:
    case RpcMethod::kGetAccuracy:
    case RpcMethod::kListEpochs:
    case RpcMethod::kExplainPlan:
    case RpcMethod::kListPlans:
    case RpcMethod::kGetStored:
    case RpcMethod::kGetCapabilities:
      return Role::kPlan;
    case RpcMethod::kReportLatency:
    case RpcMethod::kReportLatencies:
      return Role::kReport;
    default:
      return Role::kAdmin;
  }
}

void ReportCounts::AddRefused(const absl::Status& why) {
  int64_t& count = absl::IsInvalidArgument(why) ? invalid
                   : absl::IsNotFound(why)      ? unknown_plan
                                                : error;
  ++count;
}

}  // namespace fusion
