#include "server/rpc/plan_call.h"

#include <atomic>
#include <utility>

#include "core/base/threads/mutex.h"
#include "core/wire/explanation.h"
#include "server/rpc/call.h"
#include "server/rpc/progress_queue.h"
#include "server/rpc/request_codec.h"

namespace fusion {
namespace {

/// Measures how long a request waits for kernels, whose compilation continues without it, and
/// reports it with Admission::OthersWorked.
class CompileWatch final : public StageObserver {
 public:
  /// Forwards every stage to `next`, which may be null.
  CompileWatch(const Clock& clock, StageObserver* next) : clock_(clock), next_(next) {}
  /// Must run on the thread that called OnStage.
  ~CompileWatch() override {
    End();
    Admission::OthersWorked(took_);
  }
  CompileWatch(const CompileWatch&) = delete;
  CompileWatch& operator=(const CompileWatch&) = delete;

  void OnStage(std::string_view stage, int done, int total) override {
    if (next_ != nullptr) next_->OnStage(stage, done, total);
    if (stage != kCompileStage && stage != kSearchStage) {
      End();
    } else if (!begin_.has_value()) {
      begin_ = clock_.Now();
    }
  }
  // Planning again because a kernel could not be built also counts as waiting.
  bool FollowsOthers() const override { return next_ != nullptr; }

 private:
  void End() {
    if (begin_.has_value()) took_ += clock_.Now() - *begin_;
    begin_.reset();
  }

  const Clock& clock_;
  StageObserver* const next_;
  std::optional<Nanoseconds> begin_;
  Nanoseconds took_{0};
};

/// Base of the calls that plan: from the request's bytes to the answer's bytes.
class PlanningCall : public Call {
 public:
  using Call::Call;

 protected:
  // The cached answer to an equal request, recorded as a hit; null: there is none.
  std::shared_ptr<const CachedResponse> Recall(const grpc::ByteBuffer& request) {
    const Nanoseconds begin = parts_.clock.Now();
    read_ = bytes_.Read(request);
    if (!read_.ok()) return nullptr;
    name_ = NameRequest(bytes_.pieces());
    if (!name_.has_value()) return nullptr;
    std::shared_ptr<const CachedResponse> warm = parts_.warm.Find(Space(), name_->digest);
    // So that the plan is made again, in the background.
    if (warm != nullptr && parts_.pipeline.IsRenewalWanted(warm->reply.plan->key)) warm = nullptr;
    record_.warm = warm != nullptr;
    if (warm == nullptr) return nullptr;
    record_.request_id = name_->request_id;
    record_.plan_key = warm->reply.plan->key.ToHex();
    record_.cache = CacheOutcome::kHitMemory;
    record_.stages = {{"recall", parts_.clock.Now() - begin}};
    return warm;
  }

  // Plans, after Recall has found nothing. Runs on a thread of Admission. `observer` may be null.
  absl::StatusOr<EncodedReply> Plan(StageObserver* observer) {
    Nanoseconds begin = parts_.clock.Now();
    record_.queued = begin - start_;
    RETURN_IF_ERROR(read_);
    RETURN_IF_ERROR(cancel_.Check());  // its deadline may have passed while it was queued
    // Decoding copies what it needs, so the received bytes are freed after it.
    FlatBytes bytes = std::exchange(bytes_, FlatBytes());
    ASSIGN_OR_RETURN(std::unique_ptr<DecodedRequest> decoded, DecodePlanRequest(bytes.view()));
    ASSIGN_OR_RETURN(PlanReply reply, Ask(decoded.get(), begin, observer));
    const std::optional<Signature> signature = parts_.signer.SignPlan(reply.stored, reply.kernels);
    if (name_.has_value()) parts_.warm.Remember(Space(), name_->digest, reply, signature);
    return EncodePlanReply(reply, signature);
  }

  // Plans for a decoded request; decoding started at `begin`.
  absl::StatusOr<PlanReply> Ask(DecodedRequest* decoded, Nanoseconds begin,
                                StageObserver* observer) {
    record_.request_id = decoded->request_id();
    if (parts_.tenant_namespaces) decoded->SetTenant(caller_.tenant);
    StageTime decode{"decode", parts_.clock.Now() - begin};
    PlanRequest request = decoded->request();
    request.owner = owner();
    CompileWatch watch(parts_.clock, observer);
    ASSIGN_OR_RETURN(PlanReply reply, parts_.pipeline.PlanFusion(request, cancel_, &watch));
    reply.stages.insert(reply.stages.begin(), std::move(decode));
    record_.plan_key = reply.stored->key.ToHex();
    record_.cache = reply.cache;
    record_.stages = reply.stages;
    return reply;
  }

  // The answer behind the bytes `lead`. The plan's bytes are not copied.
  static grpc::ByteBuffer BufferOf(const EncodedReply& encoded, std::string_view lead = "") {
    grpc::Slice slices[] = {grpc::Slice(StrCat(lead, encoded.head)),
                            SharedSlice(encoded.plan, encoded.plan->plan_bytes),
                            grpc::Slice(encoded.tail)};
    return grpc::ByteBuffer(slices, std::size(slices));
  }

  static AnswerMemory KeptBy(const EncodedReply& encoded) {
    return {.own = static_cast<int64_t>(encoded.head.size() + encoded.tail.size()),
            .shared = {{encoded.plan.get(), ChargedBytes(*encoded.plan)}}};
  }
  static AnswerMemory KeptBy(const std::shared_ptr<const CachedResponse>& warm) {
    return {.own = static_cast<int64_t>(warm->reply.head.size()),
            .shared = {{warm->reply.plan.get(), warm->plan_bytes},
                       {warm.get(), static_cast<int64_t>(warm->reply.tail.size())}},
            .cached = true};
  }

  // A copy of the cached answer with the stages of this call.
  EncodedReply Again(const CachedResponse& warm) const {
    EncodedReply reply = warm.reply;
    reply.tail += EncodeFurtherStage(record_.stages.front());
    return reply;
  }

  // A cached answer with the stages of this call; only head and stages are copied.
  grpc::ByteBuffer BufferOf(const std::shared_ptr<const CachedResponse>& warm) const {
    const EncodedReply& reply = warm->reply;
    grpc::Slice slices[] = {grpc::Slice(reply.head), SharedSlice(warm, reply.plan->plan_bytes),
                            SharedSlice(warm, reply.tail),
                            grpc::Slice(EncodeFurtherStage(record_.stages.front()))};
    return grpc::ByteBuffer(slices, std::size(slices));
  }

 private:
  // The namespace of ResponseCache for this caller; empty: tenants share answers.
  std::string Space() const { return parts_.tenant_namespaces ? caller_.tenant : ""; }

  absl::Status read_;
  FlatBytes bytes_;
  std::optional<RequestName> name_;
};

/// One PlanFusion.
class PlanCall final : public UnaryReactor<PlanningCall> {
 public:
  using UnaryReactor::UnaryReactor;

 private:
  // Above this size, hashing on gRPC's thread takes longer than handing the call to another thread.
  static constexpr size_t kAtOnceBytes = 1 << 20;

  bool AnswerAtOnce() override {
    if (request_.Length() > kAtOnceBytes) return false;
    looked_ = true;
    std::shared_ptr<const CachedResponse> warm = Recall(request_);
    return warm != nullptr && Send(BufferOf(warm), KeptBy(warm)).ok();
  }

  absl::Status Answer() override {
    if (!looked_) {
      std::shared_ptr<const CachedResponse> warm = Recall(request_);
      if (warm != nullptr) return Send(BufferOf(warm), KeptBy(warm));
    }
    ASSIGN_OR_RETURN(EncodedReply reply, Plan(/*observer=*/nullptr));
    return Send(BufferOf(reply), KeptBy(reply));
  }

  bool looked_ = false;
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
    RETURN_IF_ERROR(HoldNoMore());
    return Send(grpc::ByteBuffer(&slice, 1));
  }

  absl::StatusOr<PlanExplanation> ExplainStored(const ExplainQuery& query) {
    record_.plan_key = query.plan->ToHex();
    // Does not count as a use for eviction.
    std::shared_ptr<const StoredPlan> stored = parts_.store.PeekPlan(*query.plan);
    if (stored == nullptr || !MayShow(stored->full_key)) {
      return NotFound("plan_key: this server has no plan ", query.plan->ToHex());
    }
    RETURN_IF_ERROR(HoldToRead(ChargedBytes(*stored)));
    ASSIGN_OR_RETURN(PlanExplanation out, Explain(stored->plan, query.filter));
    out.plan_key = stored->key;
    return out;
  }

  absl::StatusOr<PlanExplanation> ExplainPlanned(const ExplainQuery& query, Nanoseconds begin) {
    ASSIGN_OR_RETURN(PlanReply reply, Ask(query.request.get(), begin, /*observer=*/nullptr));
    RETURN_IF_ERROR(HoldToRead(ChargedBytes(*reply.stored)));
    ASSIGN_OR_RETURN(PlanExplanation out, Explain(reply.stored->plan, query.filter));
    out.plan_key = reply.stored->key;
    out.node_names = reply.binding.nodes;
    out.cache = reply.cache;
    return out;
  }
};

/// One PlanFusionStream. Planning pushes progress to a queue, from which one message at a time is
/// written. Deletes itself when both gRPC and the planning thread have released it.
class PlanStream final : public grpc::ServerWriteReactor<grpc::ByteBuffer>,
                         PlanningCall,
                         StageObserver {
 public:
  PlanStream(const ServiceParts& parts, const grpc::CallbackServerContext& context,
             const grpc::ByteBuffer& request)
      : PlanningCall(parts, context, RpcMethod::kPlanFusionStream), request_(request) {}

  void Start() {
    Begin(
        request_, [this] { Answer(); }, [this](const absl::Status& why) { Refuse(why); });
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

  void Refuse(const absl::Status& why) {
    Finish(Account(why));
    Release();
  }

  void Answer() {
    std::shared_ptr<const CachedResponse> warm = Recall(request_);
    absl::StatusOr<EncodedReply> reply =
        warm != nullptr ? absl::StatusOr<EncodedReply>(Again(*warm)) : Plan(this);
    EndTurn();
    {
      MutexLock lock(&mutex_);
      status_ = reply.status();
      if (status_.ok()) {
        AnswerMemory kept = KeptBy(*reply);
        kept.cached = warm != nullptr;
        status_ = NoteAnswer(kept);
      }
      if (status_.ok()) {
        std::string lead = EncodeResponseEventHead(*reply);
        response_ = BufferOf(*reply, lead);
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

  // Writes the next message, or ends the call. Does nothing while a write is in progress:
  // OnWriteDone calls it again.
  void Proceed() {
    Step step = Step::kNothing;
    absl::Status status;
    {
      MutexLock lock(&mutex_);
      step = NextStep();
      status = gone_ ? Cancelled("the caller went away") : status_;
    }
    // Only one thread gets here at a time: NextStep returns kNothing until this write has ended.
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
                                        grpc::CallbackServerContext& context,
                                        const grpc::ByteBuffer& request,
                                        grpc::ByteBuffer* response) {
  return PlanCall::Start(
      std::make_unique<PlanCall>(parts, context, RpcMethod::kPlanFusion, request, response),
      context);
}

grpc::ServerUnaryReactor* StartExplainCall(const ServiceParts& parts,
                                           grpc::CallbackServerContext& context,
                                           const grpc::ByteBuffer& request,
                                           grpc::ByteBuffer* response) {
  return ExplainCall::Start(
      std::make_unique<ExplainCall>(parts, context, RpcMethod::kExplainPlan, request, response),
      context);
}

grpc::ServerWriteReactor<grpc::ByteBuffer>* StartPlanStream(
    const ServiceParts& parts, const grpc::CallbackServerContext& context,
    const grpc::ByteBuffer& request) {
  auto* call = new PlanStream(parts, context, request);
  call->Start();
  return call;
}

}  // namespace fusion
