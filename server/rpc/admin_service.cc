#include "server/rpc/admin_service.h"

#include "core/learn/device_models.h"
#include "server/rpc/admin_codec.h"
#include "server/rpc/archive_calls.h"

namespace fusion {
namespace {

absl::StatusOr<std::string> AnswerStats(const ServiceParts& parts, std::string_view request) {
  RETURN_IF_ERROR(CheckStoreStatsRequest(request));
  return EncodeStoreStats(parts.store.Stats(), parts.store.Facts(), parts.store.TenantBytes());
}

absl::StatusOr<std::string> AnswerVerify(const ServiceParts& parts, std::string_view request,
                                         UnaryContext about) {
  RETURN_IF_ERROR(CheckVerifyRequest(request));
  ASSIGN_OR_RETURN(StoreCheck check, parts.store.Verify(about.cancel));
  return EncodeCheck(check);
}

absl::StatusOr<std::string> AnswerCompact(const ServiceParts& parts, std::string_view request,
                                          UnaryContext about) {
  RETURN_IF_ERROR(CheckCompactRequest(request));
  ASSIGN_OR_RETURN(StoreCompaction sizes, parts.store.Compact(about.cancel));
  return EncodeCompaction(sizes);
}

absl::StatusOr<std::string> AnswerSetPinned(const ServiceParts& parts, std::string_view request,
                                            UnaryContext about) {
  ASSIGN_OR_RETURN(PinQuery query, DecodePinQuery(request));
  about.record.keys = static_cast<int64_t>(query.plans.size());
  about.record.reason = query.pinned ? "pin" : "unpin";
  ASSIGN_OR_RETURN(PinOutcome outcome, parts.store.SetPinned(query.plans, query.pinned));
  return EncodePinOutcome(outcome);
}

absl::StatusOr<std::string> AnswerInvalidate(const ServiceParts& parts, std::string_view request,
                                             UnaryContext about) {
  ASSIGN_OR_RETURN(InvalidateQuery query, DecodeInvalidateQuery(request));
  about.record.keys = static_cast<int64_t>(query.what.plans.size() + query.what.kernels.size());
  about.record.reason = query.reason;
  ASSIGN_OR_RETURN(Forgotten gone, parts.store.Forget(query.what));
  return EncodeForgotten(gone, parts.pipeline.Forget(query.what.kernels, query.what.all));
}

absl::StatusOr<std::string> AnswerSteer(const ServiceParts& parts, std::string_view request,
                                        UnaryContext about) {
  ASSIGN_OR_RETURN(SteerQuery query, DecodeSteerQuery(request));
  about.record.reason = query.reason;
  if (query.train) {
    RETURN_IF_ERROR(about.hold(kFitBytes));
    ASSIGN_OR_RETURN(const std::vector<std::string> outcomes, parts.train(about.cancel));
    return EncodeOutcomes(outcomes);
  }
  RETURN_IF_ERROR(parts.roll_back(
      query.roll_back, query.reason.empty() ? "taken back by an operator" : query.reason));
  return EncodeOutcomes({StrCat("epoch ", query.roll_back, " is rolled back")});
}

absl::StatusOr<std::string> AnswerServerStatus(const ServiceParts& parts, std::string_view request,
                                               UnaryContext about) {
  RETURN_IF_ERROR(CheckServerStatusRequest(request));
  return EncodeServerStatus(parts.status(about.cancel));
}

}  // namespace

grpc::ServerUnaryReactor* FusionAdminImpl::GetStoreStats(grpc::CallbackServerContext* context,
                                                         const grpc::ByteBuffer* request,
                                                         grpc::ByteBuffer* response) {
  return StartUnaryCall(
      parts_, *context, RpcMethod::kGetStoreStats, *request, response,
      [this](std::string_view bytes, UnaryContext) { return AnswerStats(parts_, bytes); });
}

grpc::ServerUnaryReactor* FusionAdminImpl::VerifyStore(grpc::CallbackServerContext* context,
                                                       const grpc::ByteBuffer* request,
                                                       grpc::ByteBuffer* response) {
  return StartUnaryCall(parts_, *context, RpcMethod::kVerifyStore, *request, response,
                        [this](std::string_view bytes, UnaryContext about) {
                          return AnswerVerify(parts_, bytes, about);
                        });
}

grpc::ServerUnaryReactor* FusionAdminImpl::CompactStore(grpc::CallbackServerContext* context,
                                                        const grpc::ByteBuffer* request,
                                                        grpc::ByteBuffer* response) {
  return StartUnaryCall(parts_, *context, RpcMethod::kCompactStore, *request, response,
                        [this](std::string_view bytes, UnaryContext about) {
                          return AnswerCompact(parts_, bytes, about);
                        });
}

grpc::ServerUnaryReactor* FusionAdminImpl::SetPinned(grpc::CallbackServerContext* context,
                                                     const grpc::ByteBuffer* request,
                                                     grpc::ByteBuffer* response) {
  return StartUnaryCall(parts_, *context, RpcMethod::kSetPinned, *request, response,
                        [this](std::string_view bytes, UnaryContext about) {
                          return AnswerSetPinned(parts_, bytes, about);
                        });
}

grpc::ServerUnaryReactor* FusionAdminImpl::Invalidate(grpc::CallbackServerContext* context,
                                                      const grpc::ByteBuffer* request,
                                                      grpc::ByteBuffer* response) {
  return StartUnaryCall(parts_, *context, RpcMethod::kInvalidate, *request, response,
                        [this](std::string_view bytes, UnaryContext about) {
                          return AnswerInvalidate(parts_, bytes, about);
                        });
}

grpc::ServerUnaryReactor* FusionAdminImpl::SteerEpochs(grpc::CallbackServerContext* context,
                                                       const grpc::ByteBuffer* request,
                                                       grpc::ByteBuffer* response) {
  return StartUnaryCall(parts_, *context, RpcMethod::kSteerEpochs, *request, response,
                        [this](std::string_view bytes, UnaryContext about) {
                          return AnswerSteer(parts_, bytes, about);
                        });
}

grpc::ServerWriteReactor<grpc::ByteBuffer>* FusionAdminImpl::ExportStore(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request) {
  return StartExportCall(parts_, *context, *request);
}

grpc::ServerReadReactor<grpc::ByteBuffer>* FusionAdminImpl::ImportStore(
    grpc::CallbackServerContext* context, grpc::ByteBuffer* response) {
  return StartImportCall(parts_, *context, response);
}

grpc::ServerUnaryReactor* FusionAdminImpl::GetServerStatus(grpc::CallbackServerContext* context,
                                                           const grpc::ByteBuffer* request,
                                                           grpc::ByteBuffer* response) {
  return StartUnaryCall(parts_, *context, RpcMethod::kGetServerStatus, *request, response,
                        [this](std::string_view bytes, UnaryContext about) {
                          return AnswerServerStatus(parts_, bytes, about);
                        });
}

}  // namespace fusion
