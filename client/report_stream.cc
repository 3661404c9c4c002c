#include "client/report_stream.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>

#include "client/calls/rpc_status.h"
#include "client/rpc_context.h"
#include "core/bundle/measured/report_origin.h"
#include "fusion/v1/fusion_service.grpc.pb.h"

namespace fusion {
namespace {

using Reports = std::vector<v1::ReportLatencyRequest>;

absl::StatusOr<v1::ReportLatenciesResponse> SendPart(const Client& client,
                                                     Reports::const_iterator from,
                                                     Reports::const_iterator to) {
  v1::FusionService::Stub stub(client.channel());
  grpc::ClientContext context;
  context.set_deadline(After(client.options().deadline));
  Introduce(client.options(), &context);
  v1::ReportLatenciesResponse response;
  std::unique_ptr<grpc::ClientWriter<v1::ReportLatencyRequest>> writer =
      stub.ReportLatencies(&context, &response);
  // A failed write says that the service has answered already.
  while (from != to && writer->Write(*from)) ++from;
  writer->WritesDone();
  const grpc::Status status = writer->Finish();
  if (IsUnknownCall(status)) {
    return Unimplemented("the server at ", client.address(), " takes no streams of reports");
  }
  RETURN_IF_ERROR(FromGrpc(status, context, client.address()));
  return response;
}

void AddTo(const v1::ReportLatenciesResponse& part, int64_t first,
           v1::ReportLatenciesResponse* all) {
  all->set_accepted_reports(all->accepted_reports() + part.accepted_reports());
  all->set_accepted_samples(all->accepted_samples() + part.accepted_samples());
  all->set_duplicates(all->duplicates() + part.duplicates());
  all->set_refused_reports(all->refused_reports() + part.refused_reports());
  for (const v1::RefusedReport& refused : part.refused()) {
    *all->add_refused() = refused;
    all->mutable_refused()->rbegin()->set_index(first + refused.index());
  }
}

}  // namespace

absl::StatusOr<v1::ReportLatenciesResponse> SendReports(const Client& client,
                                                        const Reports& reports) {
  v1::ReportLatenciesResponse all;
  const auto count = static_cast<int64_t>(reports.size());
  for (int64_t first = 0; first < count; first += kMaxStreamedReports) {
    const int64_t end = std::min(first + kMaxStreamedReports, count);
    absl::StatusOr<v1::ReportLatenciesResponse> part =
        SendPart(client, reports.begin() + first, reports.begin() + end);
    if (!part.ok()) {
      if (first == 0) return part.status();
      return Annotate(part.status(), StrCat("after ", all.accepted_reports(), " stored reports"));
    }
    AddTo(*part, first, &all);
  }
  return all;
}

}  // namespace fusion
