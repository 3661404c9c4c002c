#include "server/rpc/report_calls.h"

#include "server/rpc/call.h"
#include "server/rpc/request_codec.h"

namespace fusion {
namespace {

class ReportStream final : public grpc::ServerReadReactor<grpc::ByteBuffer>, Call {
 public:
  ReportStream(const ServiceParts& parts, const grpc::CallbackServerContext& context,
               grpc::ByteBuffer* response)
      : Call(parts, context, RpcMethod::kReportLatencies), response_(response) {}

  void Start() {
    Begin(
        grpc::ByteBuffer(), [this] { Work(); },
        [this](const absl::Status& why) { Finish(Account(why)); });
  }

  void OnReadDone(bool ok) override {
    absl::Status submitted = parts_.admission.Resume(*pass_, [this, ok] { ok ? Take() : End(); });
    if (!submitted.ok()) Finish(Account(submitted));
  }
  void OnCancel() override { cancel_.Cancel(); }
  // gRPC may tell of the end of the stream before it tells that the call was taken back; by now both
  // are known.
  void OnDone() override {
    if (answered_) Account(cancel_.Check());
    delete this;
  }

 private:
  void Work() {
    record_.queued = parts_.clock.Now() - start_;
    absl::Status room = parts_.admission.BeginStream(&*pass_);
    if (!room.ok()) return Finish(Account(room));
    StartRead(&report_);
  }

  // At most one read or one task runs at a time, so this needs no lock.
  void Take() {
    absl::Status taken = Add();
    if (!taken.ok()) return Finish(Account(taken));
    StartRead(&report_);
  }

  // Fails if the call ends; what is wrong with the report itself is noted in `outcome_`.
  absl::Status Add() {
    RETURN_IF_ERROR(cancel_.Check());
    const auto bytes = static_cast<int64_t>(report_.Length());
    NoteRequest(bytes);
    if (next_ == kMaxStreamedReports) {
      return ResourceExhausted("more than ", kMaxStreamedReports,
                               " reports in one call; the reports before are stored");
    }
    RETURN_IF_ERROR(parts_.admission.Hold(&*pass_, bytes));
    FlatBytes flat;
    RETURN_IF_ERROR(flat.Read(report_));
    absl::StatusOr<AddedReport> added = Store(flat.view());
    if (added.ok()) {
      outcome_.accepted_samples += added->samples;
    } else if (outcome_.refused.size() < kMaxShownRefusals) {
      outcome_.refused.push_back({next_, added.status()});
    }
    ++next_;
    report_.Clear();
    return parts_.admission.Hold(&*pass_, 0);
  }

  absl::StatusOr<AddedReport> Store(std::string_view bytes) {
    absl::Status small = CheckSize(static_cast<int64_t>(bytes.size()));
    if (small.ok()) return AcceptReport(parts_, caller_, bytes, &record_);
    record_.reports.AddRefused(small);
    return small;
  }

  absl::Status CheckSize(int64_t bytes) const {
    if (bytes <= parts_.max_request_bytes) return absl::OkStatus();
    return ResourceExhausted("a report of ", HumanBytes(bytes), "; this server takes at most ",
                             HumanBytes(parts_.max_request_bytes), " (--max-request-bytes)");
  }

  void End() {
    absl::Status wanted = cancel_.Check();
    if (wanted.ok() && next_ == 0)
      wanted = InvalidArgument("the call ended without a whole report");
    if (!wanted.ok()) return Finish(Account(wanted));
    const std::string answer = EncodeReportsOutcome(record_.reports, outcome_);
    grpc::Slice slice(answer);
    *response_ = grpc::ByteBuffer(&slice, 1);
    record_.messages_sent = 1;
    record_.bytes_out = static_cast<int64_t>(response_->Length());
    answered_ = true;
    Finish(grpc::Status::OK);
  }

  grpc::ByteBuffer* const response_;
  grpc::ByteBuffer report_;  // the one that is read or stored
  int64_t next_ = 0;         // its index
  ReportsOutcome outcome_;
  bool answered_ = false;  // it ended well, and is accounted for in OnDone
};

}  // namespace

absl::StatusOr<AddedReport> AcceptReport(const ServiceParts& parts, const Caller& caller,
                                         std::string_view bytes, RpcRecord* record) {
  auto accept = [&]() -> absl::StatusOr<AddedReport> {
    ASSIGN_OR_RETURN(DecodedReport decoded, DecodeLatencyReport(bytes));
    const Digest& plan = decoded.report.plan_key;
    record->plan_key = plan.ToHex();
    if (parts.tenant_namespaces) {
      const std::shared_ptr<const StoredPlan> stored = parts.store.PeekPlan(plan);
      if (stored == nullptr || !parts.Shows(stored->full_key, caller.tenant)) {
        return NotFound("plan_key: this server has no plan ", plan.ToHex());
      }
    }
    return parts.book.Add(decoded.report, decoded.origin, caller.tenant,
                          caller.roles.Has(Role::kTrustedReport));
  };
  absl::StatusOr<AddedReport> added = accept();
  if (!added.ok()) {
    record->reports.AddRefused(added.status());
  } else {
    ++(added->duplicate ? record->reports.duplicate : record->reports.ok);
  }
  return added;
}

grpc::ServerReadReactor<grpc::ByteBuffer>* StartReportStream(
    const ServiceParts& parts, const grpc::CallbackServerContext& context,
    grpc::ByteBuffer* response) {
  auto* call = new ReportStream(parts, context, response);
  call->Start();
  return call;
}

}  // namespace fusion
