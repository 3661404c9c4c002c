#include "server/rpc/fusion_service.h"

#include <utility>

#include "core/learn/device_models.h"
#include "core/pipeline/kernels/kernel_texts.h"
#include "server/rpc/kernels_call.h"
#include "server/rpc/plan_call.h"
#include "server/rpc/report_calls.h"
#include "server/rpc/request_codec.h"

namespace fusion {

grpc::ServerUnaryReactor* FusionServiceImpl::PlanFusion(grpc::CallbackServerContext* context,
                                                        const grpc::ByteBuffer* request,
                                                        grpc::ByteBuffer* response) {
  return StartPlanCall(parts_, *context, *request, response);
}

grpc::ServerWriteReactor<grpc::ByteBuffer>* FusionServiceImpl::PlanFusionStream(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request) {
  return StartPlanStream(parts_, *context, *request);
}

grpc::ServerWriteReactor<grpc::ByteBuffer>* FusionServiceImpl::GetKernels(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request) {
  return StartKernelsCall(parts_, *context, *request);
}

grpc::ServerUnaryReactor* FusionServiceImpl::ReportLatency(grpc::CallbackServerContext* context,
                                                           const grpc::ByteBuffer* request,
                                                           grpc::ByteBuffer* response) {
  return StartUnaryCall(parts_, *context, RpcMethod::kReportLatency, *request, response,
                        [this](std::string_view bytes, UnaryContext about) {
                          return AnswerReportLatency(bytes, about);
                        });
}

grpc::ServerReadReactor<grpc::ByteBuffer>* FusionServiceImpl::ReportLatencies(
    grpc::CallbackServerContext* context, grpc::ByteBuffer* response) {
  return StartReportStream(parts_, *context, response);
}

grpc::ServerUnaryReactor* FusionServiceImpl::GetReport(grpc::CallbackServerContext* context,
                                                       const grpc::ByteBuffer* request,
                                                       grpc::ByteBuffer* response) {
  return StartUnaryCall(
      parts_, *context, RpcMethod::kGetReport, *request, response,
      [this](std::string_view bytes, UnaryContext about) { return AnswerGetReport(bytes, about); });
}

grpc::ServerUnaryReactor* FusionServiceImpl::ExplainPlan(grpc::CallbackServerContext* context,
                                                         const grpc::ByteBuffer* request,
                                                         grpc::ByteBuffer* response) {
  return StartExplainCall(parts_, *context, *request, response);
}

grpc::ServerUnaryReactor* FusionServiceImpl::ListPlans(grpc::CallbackServerContext* context,
                                                       const grpc::ByteBuffer* request,
                                                       grpc::ByteBuffer* response) {
  return StartUnaryCall(
      parts_, *context, RpcMethod::kListPlans, *request, response,
      [this](std::string_view bytes, UnaryContext about) { return AnswerListPlans(bytes, about); });
}

grpc::ServerUnaryReactor* FusionServiceImpl::GetStored(grpc::CallbackServerContext* context,
                                                       const grpc::ByteBuffer* request,
                                                       grpc::ByteBuffer* response) {
  return StartUnaryCall(
      parts_, *context, RpcMethod::kGetStored, *request, response,
      [this](std::string_view bytes, UnaryContext unary) { return AnswerGetStored(bytes, unary); });
}

grpc::ServerUnaryReactor* FusionServiceImpl::GetAccuracy(grpc::CallbackServerContext* context,
                                                         const grpc::ByteBuffer* request,
                                                         grpc::ByteBuffer* response) {
  return StartUnaryCall(parts_, *context, RpcMethod::kGetAccuracy, *request, response,
                        [this](std::string_view bytes, UnaryContext about) {
                          return AnswerGetAccuracy(bytes, about);
                        });
}

grpc::ServerUnaryReactor* FusionServiceImpl::ListEpochs(grpc::CallbackServerContext* context,
                                                        const grpc::ByteBuffer* request,
                                                        grpc::ByteBuffer* response) {
  return StartUnaryCall(parts_, *context, RpcMethod::kListEpochs, *request, response,
                        [this](std::string_view bytes, UnaryContext about) {
                          return AnswerListEpochs(bytes, about);
                        });
}

grpc::ServerUnaryReactor* FusionServiceImpl::GetCapabilities(grpc::CallbackServerContext* context,
                                                             const grpc::ByteBuffer* request,
                                                             grpc::ByteBuffer* response) {
  return StartUnaryCall(parts_, *context, RpcMethod::kGetCapabilities, *request, response,
                        [this](std::string_view bytes, UnaryContext about) {
                          return AnswerGetCapabilities(bytes, about);
                        });
}

absl::StatusOr<std::string> FusionServiceImpl::AnswerReportLatency(std::string_view request,
                                                                   UnaryContext context) {
  ASSIGN_OR_RETURN(AddedReport added,
                   AcceptReport(parts_, context.caller, request, &context.record));
  return EncodeAddedReport(added);
}

absl::StatusOr<std::string> FusionServiceImpl::AnswerGetReport(std::string_view request,
                                                               UnaryContext context) {
  ASSIGN_OR_RETURN(ReportQuery query, DecodeReportQuery(request));
  if (query.plan.has_value()) context.record.plan_key = query.plan->ToHex();
  auto shows = [&](const StoredPlan& plan) { return Shows(plan.full_key, context.caller); };
  ASSIGN_OR_RETURN(std::vector<PlanReport> reports,
                   parts_.book.Reports(query.plan, query.limit, context.cancel, shows));
  return EncodeReports(reports);
}

absl::StatusOr<std::string> FusionServiceImpl::AnswerGetAccuracy(std::string_view request,
                                                                 UnaryContext context) {
  RETURN_IF_ERROR(CheckAccuracyRequest(request));
  auto reserve = [&] { return context.hold(kFitBytes); };
  ASSIGN_OR_RETURN(std::vector<DeviceAccuracy> devices,
                   parts_.book.Accuracy(context.caller.tenant, context.cancel, reserve));
  return EncodeAccuracies(devices);
}

absl::StatusOr<std::string> FusionServiceImpl::AnswerListEpochs(std::string_view request,
                                                                UnaryContext context) {
  RETURN_IF_ERROR(CheckEpochsRequest(request));
  return EncodeEpochList(parts_.epochs(parts_.tenant_namespaces
                                           ? std::optional<std::string_view>(context.caller.tenant)
                                           : std::nullopt));
}

absl::StatusOr<std::string> FusionServiceImpl::AnswerListPlans(std::string_view request,
                                                               UnaryContext context) {
  ASSIGN_OR_RETURN(ListQuery query, DecodeListQuery(request));
  ASSIGN_OR_RETURN(PlanPage page, PageOf(query, context));
  return EncodePlanPage(page);
}

absl::StatusOr<PlanPage> FusionServiceImpl::PageOf(const ListQuery& query,
                                                   UnaryContext context) const {
  const auto size = static_cast<size_t>(query.page_size);
  if (!parts_.tenant_namespaces) return parts_.store.ListPlans(query.after, size);
  PlanFilter own{.tenant = context.caller.tenant, .shows = [&](std::string_view full_key) {
                   return Shows(full_key, context.caller);
                 }};
  PlanPage page;
  std::optional<PlanPlace> after = query.after;
  do {
    RETURN_IF_ERROR(context.cancel.Check());
    page = parts_.store.ListPlansOf(own, after, size);
    after = page.last;
  } while (after.has_value() && page.plans.empty());
  // The token of the next page must not name a plan of another tenant.
  if (page.last.has_value()) {
    page.last = {page.plans.back().created_unix_ms, page.plans.back().plan_key};
  }
  return page;
}

absl::StatusOr<std::string> FusionServiceImpl::AnswerGetStored(std::string_view request,
                                                               UnaryContext context) {
  ASSIGN_OR_RETURN(StoredQuery query, DecodeStoredQuery(request));
  if (query.is_plan) {
    context.record.plan_key = query.key.ToHex();
    std::shared_ptr<const StoredPlan> plan = FindPlan(query.key, context.caller);
    if (plan == nullptr) return NotFound("no plan ", query.key.ToHex(), " is stored; plan again");
    RETURN_IF_ERROR(context.hold(ChargedBytes(*plan)));
    return EncodeStoredTexts(*plan);
  }
  const Found<KernelArtifact> kernel = parts_.store.GetKernel({query.key});
  if (!kernel || !Shows(kernel.value->full_key, context.caller))
    return NotFound("no kernel ", query.key.ToHex(), " is stored; plan again");
  RETURN_IF_ERROR(context.hold(ChargedBytes(*kernel.value)));
  return EncodeStoredTexts(TextsOf(*kernel.value));
}

absl::StatusOr<std::string> FusionServiceImpl::AnswerGetCapabilities(std::string_view request,
                                                                     UnaryContext context) {
  RETURN_IF_ERROR(CheckCapabilitiesRequest(request));
  Capabilities out = parts_.capabilities();
  out.tenant = context.caller.tenant;
  for (Role role : kCallerRoles) {
    if (context.caller.roles.Has(role)) out.roles.emplace_back(RoleName(role));
  }
  return EncodeCapabilities(out);
}

std::shared_ptr<const StoredPlan> FusionServiceImpl::FindPlan(const Digest& key,
                                                              const Caller& caller) const {
  std::shared_ptr<const StoredPlan> plan = parts_.store.PeekPlan(key);
  return plan == nullptr || Shows(plan->full_key, caller) ? plan : nullptr;
}

}  // namespace fusion
