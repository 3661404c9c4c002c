#pragma once

#include <grpcpp/grpcpp.h>

#include "server/rpc/service_parts.h"

namespace fusion {

/// Decodes, checks and stores one report of `caller`, and counts it in record->reports. `bytes`: a
/// serialised v1::ReportLatencyRequest. Sets record->plan_key. Errors are those of ReportLatency.
absl::StatusOr<AddedReport> AcceptReport(const ServiceParts& parts, const Caller& caller,
                                         std::string_view bytes, RpcRecord* record);

/// Answers one ReportLatencies and returns its reactor, which deletes itself. The arguments must
/// outlive it. It holds one report at a time. A slow sender occupies no thread; it counts as a
/// stream of Admission and ends with its deadline or the server's limit for calls.
grpc::ServerReadReactor<grpc::ByteBuffer>* StartReportStream(
    const ServiceParts& parts, const grpc::CallbackServerContext& context,
    grpc::ByteBuffer* response);

}  // namespace fusion
