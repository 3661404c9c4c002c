#include "server/plan_call.h"

#include <atomic>

#include "core/base/mutex.h"
#include "core/wire/explanation.h"
#include "server/call.h"
#include "server/progress_queue.h"
#include "server/request_codec.h"

namespace fusion {
namespace {

/// What both calls share: from the request's bytes to the answer's.
class PlanningCall : public Call {
 public:
  using Call::Call;

 protected:
  // On a thread of ours. `observer` may be null.
  absl::StatusOr<EncodedReply> Plan(const grpc::ByteBuffer& request, StageObserver* observer) {
    Nanoseconds begin = parts_.clock.Now();
    record_.queued = begin - start_;
    FlatBytes bytes;
    RETURN_IF_ERROR(bytes.Read(request));
    ASSIGN_OR_RETURN(std::unique_ptr<DecodedRequest> decoded, DecodePlanRequest(bytes.view()));
    ASSIGN_OR_RETURN(PlanReply reply, Ask(decoded.get(), begin, observer));
    return EncodePlanReply(reply, parts_.signer.SignPlan(reply.stored, reply.kernels));
  }

  // From a request that was decoded since `begin`.
  absl::StatusOr<PlanReply> Ask(DecodedRequest* decoded, Nanoseconds begin,
                                StageObserver* observer) {
    record_.request_id = decoded->request_id();
    if (parts_.tenant_namespaces) decoded->SetTenant(caller_.tenant);
    StageTime decode{"decode", parts_.clock.Now() - begin};
    ASSIGN_OR_RETURN(PlanReply reply,
                     parts_.pipeline.PlanFusion(decoded->request(), cancel_, observer));
    reply.stages.insert(reply.stages.begin(), std::move(decode));
    record_.plan_key = reply.stored->key.ToHex();
    record_.cache = reply.cache;
    record_.stages = reply.stages;
    return reply;
  }

  // `lead`: bytes in front of the answer. The plan's own are not copied.
  static grpc::ByteBuffer BufferOf(EncodedReply encoded, std::string_view lead = "") {
    using PlanPointer = std::shared_ptr<const StoredPlan>;
    auto* owner = new PlanPointer(std::move(encoded.plan));  // the slice owns it
    const std::string& plan = (*owner)->plan_bytes;
    grpc::Slice slices[] = {
        grpc::Slice(StrCat(lead, encoded.head)),
        grpc::Slice(
            const_cast<char*>(plan.data()), plan.size(),
            [](void* pointer) { delete static_cast<PlanPointer*>(pointer); }, owner),
        grpc::Slice(encoded.tail)};
    return grpc::ByteBuffer(slices, std::size(slices));
  }
};

/// One PlanFusion.
class PlanCall final : public UnaryReactor<PlanningCall> {
 public:
  using UnaryReactor::UnaryReactor;

 private:
  absl::Status Answer() override {
    ASSIGN_OR_RETURN(EncodedReply reply, Plan(request_, /*observer=*/nullptr));
    return Send(BufferOf(std::move(reply)));
  }
};

/// One ExplainPlan.
class ExplainCall final : public UnaryReactor<PlanningCall> {
 public:
  using UnaryReactor::UnaryReactor;

 private:
  absl::Status Answer() override {
    Nanoseconds begin = parts_.clock.Now();
    record_.queued = begin - start_;
    RETURN_IF_ERROR(cancel_.Check());
    FlatBytes bytes;
    RETURN_IF_ERROR(bytes.Read(request_));
    ASSIGN_OR_RETURN(ExplainQuery query, DecodeExplainQuery(bytes.view()));
    ASSIGN_OR_RETURN(PlanExplanation explanation,
                     query.plan.has_value() ? ExplainStored(query) : ExplainPlanned(query, begin));
    grpc::Slice slice(ExplanationToBytes(explanation));
    return Send(grpc::ByteBuffer(&slice, 1));
  }

  absl::StatusOr<PlanExplanation> ExplainStored(const ExplainQuery& query) {
    record_.plan_key = query.plan->ToHex();
    // A look at a plan is no use of it.
    std::shared_ptr<const StoredPlan> stored = parts_.store.PeekPlan(*query.plan);
    if (stored == nullptr || !MayShow(stored->full_key)) {
      return NotFound("plan_key: this server has no plan ", query.plan->ToHex());
    }
    ASSIGN_OR_RETURN(PlanExplanation out, Explain(stored->plan, query.filter));
    out.plan_key = stored->key;
    return out;
  }

  absl::StatusOr<PlanExplanation> ExplainPlanned(const ExplainQuery& query, Nanoseconds begin) {
    ASSIGN_OR_RETURN(PlanReply reply, Ask(query.request.get(), begin, /*observer=*/nullptr));
    ASSIGN_OR_RETURN(PlanExplanation out, Explain(reply.stored->plan, query.filter));
    out.plan_key = reply.stored->key;
    out.node_names = reply.binding.nodes;
    out.cache = reply.cache;
    return out;
  }
};

/// One PlanFusionStream. Planning leaves its progress in a queue, from which one message at a time
/// is written. Deletes itself when both gRPC and the planning thread are done with it.
class PlanStream final : public grpc::ServerWriteReactor<grpc::ByteBuffer>,
                         PlanningCall,
                         StageObserver {
 public:
  PlanStream(const ServiceParts& parts, const grpc::CallbackServerContext& context,
             const grpc::ByteBuffer& request)
      : PlanningCall(parts, context, RpcMethod::kPlanFusionStream), request_(request) {}

  void Start() {
    absl::Status admitted = Admit(request_, [this] { Answer(); });
    if (admitted.ok()) return;
    Finish(Account(admitted));
    Release();
  }

  void OnWriteDone(bool ok) override {
    {
      MutexLock lock(&mutex_);
      writing_ = false;
      if (!ok && !gone_) {
        gone_ = true;
        cancel_.Cancel();
      }
    }
    Proceed();
  }
  void OnCancel() override { cancel_.Cancel(); }
  void OnDone() override { Release(); }

 private:
  enum class Step : uint8_t { kNothing, kWrite, kFinish };

  void Answer() {
    absl::StatusOr<EncodedReply> reply = Plan(request_, this);
    {
      MutexLock lock(&mutex_);
      status_ = reply.status();
      if (reply.ok()) {
        std::string lead = EncodeResponseEventHead(*reply);
        response_ = BufferOf(*std::move(reply), lead);
      }
      answered_ = true;
    }
    Proceed();
    Release();
  }

  void OnStage(std::string_view stage, int done, int total) override {
    {
      MutexLock lock(&mutex_);
      progress_.Push({.stage = std::string(stage),
                      .elapsed = parts_.clock.Now() - start_,
                      .done = done,
                      .total = total});
    }
    Proceed();
  }

  // Writes what comes next, or ends the call, unless a write is under way: its end comes back here.
  void Proceed() {
    Step step = Step::kNothing;
    absl::Status status;
    {
      MutexLock lock(&mutex_);
      step = NextStep();
      status = gone_ ? Cancelled("the caller went away") : status_;
    }
    // Only one thread gets here at a time: until this write has ended, the next step is none.
    if (step == Step::kWrite) StartWrite(&buffer_);
    if (step == Step::kFinish) Finish(Account(status));
  }

  Step NextStep() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (writing_ || finished_) return Step::kNothing;
    bool failed = gone_ || (answered_ && !status_.ok());
    std::optional<PlanProgress> progress = failed ? std::nullopt : progress_.Pop();
    if (progress.has_value()) {
      grpc::Slice slice(EncodeProgressEvent(*progress));
      buffer_ = grpc::ByteBuffer(&slice, 1);
    } else if (!failed && response_.has_value()) {
      buffer_ = *std::move(response_);
      response_.reset();
    } else {
      finished_ = answered_;
      return answered_ ? Step::kFinish : Step::kNothing;
    }
    writing_ = true;
    ++record_.messages_sent;
    record_.bytes_out += static_cast<int64_t>(buffer_.Length());
    return Step::kWrite;
  }

  void Release() {
    if (owners_.fetch_sub(1) == 1) delete this;
  }

  const grpc::ByteBuffer& request_;
  std::atomic<int> owners_{2};  // gRPC, and our own thread
  grpc::ByteBuffer buffer_;     // what is being written
  Mutex mutex_;
  ProgressQueue progress_ ABSL_GUARDED_BY(mutex_);
  std::optional<grpc::ByteBuffer> response_ ABSL_GUARDED_BY(mutex_);
  absl::Status status_ ABSL_GUARDED_BY(mutex_);  // once answered_
  bool answered_ ABSL_GUARDED_BY(mutex_) = false;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool gone_ ABSL_GUARDED_BY(mutex_) = false;  // nothing can be written any more
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace

grpc::ServerUnaryReactor* StartPlanCall(const ServiceParts& parts,
                                        const grpc::CallbackServerContext& context,
                                        const grpc::ByteBuffer& request,
                                        grpc::ByteBuffer* response) {
  auto* call = new PlanCall(parts, context, RpcMethod::kPlanFusion, request, response);
  call->Start();
  return call;
}

grpc::ServerUnaryReactor* StartExplainCall(const ServiceParts& parts,
                                           const grpc::CallbackServerContext& context,
                                           const grpc::ByteBuffer& request,
                                           grpc::ByteBuffer* response) {
  auto* call = new ExplainCall(parts, context, RpcMethod::kExplainPlan, request, response);
  call->Start();
  return call;
}

grpc::ServerWriteReactor<grpc::ByteBuffer>* StartPlanStream(
    const ServiceParts& parts, const grpc::CallbackServerContext& context,
    const grpc::ByteBuffer& request) {
  auto* call = new PlanStream(parts, context, request);
  call->Start();
  return call;
}

}  // namespace fusion
