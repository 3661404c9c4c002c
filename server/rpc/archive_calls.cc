#include "server/rpc/archive_calls.h"

#include "core/cache/store_archive.h"
#include "core/wire/basics/scalars.h"
#include "core/wire/report.h"
#include "server/rpc/admin_codec.h"
#include "server/rpc/call.h"

namespace fusion {
namespace {

grpc::ByteBuffer BufferOf(const std::string& bytes) {
  grpc::Slice slice(bytes);
  return {&slice, 1};
}

// Every plan there is, newest first.
std::vector<Digest> AllPlans(Store& store) {
  std::vector<Digest> keys;
  std::optional<PlanPlace> after;
  do {
    PlanPage page = store.ListPlans(after, kMaxListedPlans);
    for (const PlanSummary& plan : page.plans) keys.push_back(plan.plan_key);
    after = page.last;
  } while (after.has_value());
  return keys;
}

class ExportCall final : public grpc::ServerWriteReactor<grpc::ByteBuffer>, Call {
 public:
  ExportCall(const ServiceParts& parts, const grpc::CallbackServerContext& context,
             const grpc::ByteBuffer& request)
      : Call(parts, context, RpcMethod::kExportStore), request_(request) {}

  void Start() {
    Begin(
        request_, [this] { Work(); }, [this](const absl::Status& why) { Finish(Account(why)); });
  }

  void OnWriteDone(bool ok) override {
    if (!ok) return Finish(Account(Cancelled("the caller went away")));
    if (sent_ < part_.size()) return WriteChunk();
    absl::Status submitted = parts_.admission.Resume(*pass_, [this] { Fetch(); });
    if (!submitted.ok()) Finish(Account(submitted));
  }
  void OnCancel() override { cancel_.Cancel(); }
  void OnDone() override { delete this; }

 private:
  void Work() {
    record_.queued = parts_.clock.Now() - start_;
    absl::Status ready = Prepare();
    if (!ready.ok()) return Finish(Account(ready));
    Fetch();
  }

  absl::Status Prepare() {
    RETURN_IF_ERROR(parts_.admission.BeginStream(&*pass_));
    FlatBytes bytes;
    RETURN_IF_ERROR(bytes.Read(request_));
    ASSIGN_OR_RETURN(std::vector<Digest> keys, DecodeExportQuery(bytes.view()));
    record_.keys = static_cast<int64_t>(keys.size());
    for (const Digest& key : keys) {
      if (!parts_.store.HasPlan(key)) return NotFound("no plan ", key.ToHex(), " is stored");
    }
    if (keys.empty()) keys = AllPlans(parts_.store);
    ArchiveWriter::Sign sign;
    if (parts_.signer.signs()) {
      sign = [this](std::string_view text) { return parts_.signer.Sign(text); };
    }
    writer_.emplace(parts_.store, std::move(keys), std::move(sign));
    return absl::OkStatus();
  }

  // At most one write or one task runs at a time, so this needs no lock.
  void Fetch() {
    absl::Status wanted = cancel_.Check();
    if (!wanted.ok()) return Finish(Account(wanted));
    part_ = writer_->Next();
    sent_ = 0;
    if (part_.empty()) return Finish(Account(absl::OkStatus()));
    WriteChunk();
  }

  void WriteChunk() {
    const std::string_view chunk = std::string_view(part_).substr(sent_, kMaxArchiveChunk);
    sent_ += chunk.size();
    buffer_ = BufferOf(EncodeChunk(chunk));
    ++record_.messages_sent;
    record_.bytes_out += static_cast<int64_t>(buffer_.Length());
    StartWrite(&buffer_);
  }

  const grpc::ByteBuffer& request_;
  std::optional<ArchiveWriter> writer_;
  std::string part_;
  size_t sent_ = 0;  // of part_
  grpc::ByteBuffer buffer_;
};

class ImportCall final : public grpc::ServerReadReactor<grpc::ByteBuffer>, Call {
 public:
  ImportCall(const ServiceParts& parts, const grpc::CallbackServerContext& context,
             grpc::ByteBuffer* response)
      : Call(parts, context, RpcMethod::kImportStore),
        response_(response),
        import_(parts.store,
                {.keys = parts.import_keys, .remake = [this](const ClaimedPlan& claimed) {
                   return parts_.pipeline.Remake(claimed, cancel_);
                 }}) {}

  void Start() {
    Begin(
        grpc::ByteBuffer(), [this] { Work(); },
        [this](const absl::Status& why) { Finish(Account(why)); });
  }

  void OnReadDone(bool ok) override {
    absl::Status submitted = parts_.admission.Resume(*pass_, [this, ok] { ok ? Take() : End(); });
    if (!submitted.ok()) Conclude(submitted);
  }
  void OnCancel() override { cancel_.Cancel(); }
  void OnDone() override { delete this; }

 private:
  void Work() {
    record_.queued = parts_.clock.Now() - start_;
    absl::Status room = parts_.admission.BeginStream(&*pass_);
    if (!room.ok()) return Finish(Account(room));
    StartRead(&chunk_);
  }

  // At most one read or one task runs at a time.
  void Take() {
    absl::Status taken = Add();
    if (!taken.ok()) return Conclude(taken);
    StartRead(&chunk_);
  }

  absl::Status Add() {
    RETURN_IF_ERROR(cancel_.Check());
    NoteRequest(static_cast<int64_t>(chunk_.Length()));
    FlatBytes bytes;
    RETURN_IF_ERROR(bytes.Read(chunk_));
    ASSIGN_OR_RETURN(std::string data, DecodeChunk(bytes.view()));
    RETURN_IF_ERROR(import_.Add(data));
    return parts_.admission.Hold(&*pass_, import_.held_bytes());
  }

  void End() {
    absl::Status wanted = cancel_.Check();
    if (!wanted.ok()) return Conclude(wanted);
    absl::StatusOr<ImportOutcome> outcome = import_.Finish();
    if (!outcome.ok()) return Conclude(outcome.status());
    *response_ = BufferOf(EncodeImport(*outcome));
    record_.messages_sent = 1;
    record_.bytes_out = static_cast<int64_t>(response_->Length());
    Conclude(absl::OkStatus());
  }

  // Plans imported so far stay in the store, whatever `status` is.
  void Conclude(const absl::Status& status) {
    const ImportOutcome& outcome = import_.outcome();
    record_.keys = outcome.plans + outcome.known;
    for (const StoreDamage& refused : outcome.refused) {
      parts_.logger.Warning("plan_not_imported",
                            {{"plan", refused.name}, {"reason", TextToWire(refused.reason)}});
    }
    parts_.pipeline.Forget({},
                           /*all=*/false);  // recent plans that were made of the previous entries
    Finish(Account(status));
  }

  grpc::ByteBuffer* const response_;
  ArchiveImport import_;
  grpc::ByteBuffer chunk_;  // what is being read
};

}  // namespace

grpc::ServerWriteReactor<grpc::ByteBuffer>* StartExportCall(
    const ServiceParts& parts, const grpc::CallbackServerContext& context,
    const grpc::ByteBuffer& request) {
  auto* call = new ExportCall(parts, context, request);
  call->Start();
  return call;
}

grpc::ServerReadReactor<grpc::ByteBuffer>* StartImportCall(
    const ServiceParts& parts, const grpc::CallbackServerContext& context,
    grpc::ByteBuffer* response) {
  auto* call = new ImportCall(parts, context, response);
  call->Start();
  return call;
}

}  // namespace fusion
