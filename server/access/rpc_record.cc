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
    case RpcMethod::kGetReport:
      return "GetReport";
    case RpcMethod::kGetAccuracy:
      return "GetAccuracy";
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

bool TakesStream(RpcMethod method) { return method == RpcMethod::kImportStore; }

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
    case RpcMethod::kExplainPlan:
    case RpcMethod::kListPlans:
    case RpcMethod::kGetStored:
    case RpcMethod::kGetCapabilities:
      return Role::kPlan;
    case RpcMethod::kReportLatency:
      return Role::kReport;
    default:
      return Role::kAdmin;
  }
}

}  // namespace fusion
