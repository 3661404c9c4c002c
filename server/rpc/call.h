#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/access/call_caller.h"
#include "server/rpc/service_parts.h"

namespace fusion {

/// The bytes of a message, as the received pieces or as one string. Shares the buffer's memory
/// where possible: requests of up to about 16 KB come in one piece. Not thread-safe.
class FlatBytes {
 public:
  /// InvalidArgument if the peer sent no complete message.
  absl::Status Read(const grpc::ByteBuffer& buffer);
  /// All bytes; joins the pieces on the first call. Valid as long as this object.
  std::string_view view();
  std::vector<std::string_view> pieces() const;

 private:
  static std::string_view ViewOf(const grpc::Slice& slice) {
    return {reinterpret_cast<const char*>(slice.begin()), slice.size()};
  }
  std::vector<grpc::Slice> slices_;
  std::string joined_;  // set by view()
};

/// A slice of `bytes`, which are part of *owner, without a copy. The slice keeps `owner` alive.
template <typename T>
grpc::Slice SharedSlice(std::shared_ptr<const T> owner, std::string_view bytes) {
  using Pointer = std::shared_ptr<const T>;
  auto* kept = new Pointer(std::move(owner));  // the slice owns it
  return grpc::Slice(
      const_cast<char*>(bytes.data()), bytes.size(),
      [](void* pointer) { delete static_cast<Pointer*>(pointer); }, kept);
}

/// Base of all calls: identification, cancellation, admission, and log and metrics at the end. In
/// order: Begin (or Enter and Run), NoteAnswer before each message, Account at the end. Not
/// thread-safe, except that cancel_ may be cancelled from any thread. `parts` and `context` must
/// outlive it.
class Call {
 public:
  Call(const ServiceParts& parts, const grpc::CallbackServerContext& context, RpcMethod method);
  virtual ~Call() = default;
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

 protected:
  /// Checks the caller and admits the call. Cancelled; Unauthenticated, PermissionDenied or
  /// InvalidArgument as IdentifyCaller and CheckRole; ResourceExhausted: larger than
  /// max_request_bytes; else as Admission::Enter.
  absl::Status Enter(const grpc::ByteBuffer& request);

  /// Counts further `bytes` of a streamed request; Enter has counted its own argument.
  void NoteRequest(int64_t bytes);

  /// Queues `work`, the first task of the call, on a thread of Admission; needs Enter. `refused` is
  /// called in its place, on any thread, if the call is displaced. After OK the call may have been
  /// deleted. After an error (Admission::TakeTurn, Run) neither is called.
  absl::Status Run(std::function<void()> work, std::function<void(const absl::Status&)> refused);

  /// Enter and Run; every error goes to `refused`. The call may have been deleted afterwards.
  void Begin(const grpc::ByteBuffer& request, std::function<void()> work,
             const std::function<void(const absl::Status&)>& refused);

  /// Charges the call with the memory that it takes to make texts or an explanation of a stored
  /// plan or kernel with ChargedBytes `charged`: four times that, at most a quarter of
  /// --max-inflight-bytes. ResourceExhausted: too much is held by running calls.
  absl::Status HoldToRead(int64_t charged);
  /// Ends the charge of HoldToRead.
  absl::Status HoldNoMore() { return parts_.admission.Hold(&*pass_, record_.bytes_in); }

  /// Call before an answer, or a message of it, is sent, with the memory that it keeps until it is
  /// read. ResourceExhausted: too many bytes of answers are unread; then do not send it.
  absl::Status NoteAnswer(const AnswerMemory& kept) const {
    return kept.most() > kSmallAnswerBytes ? parts_.answers(context_, kept) : absl::OkStatus();
  }

  WorkOwner owner() const { return {caller_.tenant, caller_.priority == Priority::kBackground}; }

  /// From now on the call needs threads only for tasks of Admission::Resume.
  void EndTurn() {
    if (pass_.has_value()) parts_.admission.EndTurn(&*pass_);
  }

  /// Records the outcome in log and metrics, and converts it for gRPC. Call it last, directly
  /// before the reactor's Finish, after which the call may be deleted at any moment.
  grpc::Status Account(const absl::Status& status);

 private:
  void LogCall(int64_t left_out) const;

 protected:
  /// Whether the caller's tenant may see the plan or kernel with this full key.
  bool MayShow(std::string_view full_key) const { return parts_.Shows(full_key, caller_.tenant); }

  const ServiceParts& parts_;
  const grpc::CallbackServerContext& context_;
  const Nanoseconds start_;
  CancelToken cancel_;
  Caller caller_;
  const absl::Status identified_;  // outcome of IdentifyCaller
  RpcRecord record_;
  std::optional<Admission::Pass> pass_;  // until the answer is sent
};

/// A call with one answer, made on a thread of Admission. `Base` is Call or derives from it.
/// Deletes itself in OnDone.
template <typename Base>
class UnaryReactor : public grpc::ServerUnaryReactor, protected Base {
 public:
  UnaryReactor(const ServiceParts& parts, const grpc::CallbackServerContext& context,
               RpcMethod method, const grpc::ByteBuffer& request, grpc::ByteBuffer* response)
      : Base(parts, context, method), request_(request), response_(response) {}

  /// Starts the call and returns the reactor for gRPC. That is `call`, or, if the call has ended
  /// already (it was refused, or AnswerAtOnce answered it), gRPC's default reactor, which is
  /// completed without another thread.
  static grpc::ServerUnaryReactor* Start(std::unique_ptr<UnaryReactor> call,
                                         grpc::CallbackServerContext& context) {
    absl::Status entered = call->Enter(call->request_);
    const bool at_hand = entered.ok() && call->AnswerAtOnce();
    if (entered.ok() && !at_hand) {
      UnaryReactor* running = call.release();
      entered = running->Run(
          [running] { running->Finish(running->Account(running->Answer())); },
          [running](const absl::Status& why) { running->Finish(running->Account(why)); });
      if (entered.ok()) return running;
      call.reset(running);
    }
    grpc::ServerUnaryReactor* own = context.DefaultReactor();
    own->Finish(call->Account(entered));
    return own;
  }

  void OnCancel() override { this->cancel_.Cancel(); }
  void OnDone() override { delete this; }

 protected:
  /// Answers with Send and returns true if the answer is available at once; else returns false.
  /// Runs on gRPC's thread: must not block.
  virtual bool AnswerAtOnce() { return false; }

  /// Makes the answer: ends with Send, or with an error. Runs on a thread of Admission; may block.
  virtual absl::Status Answer() = 0;

  /// Sets the response. Fails as NoteAnswer does. The first form is for an answer that shares no
  /// memory.
  absl::Status Send(grpc::ByteBuffer answer) {
    const AnswerMemory kept = {.own = static_cast<int64_t>(answer.Length())};
    return Send(std::move(answer), kept);
  }
  absl::Status Send(grpc::ByteBuffer answer, const AnswerMemory& kept) {
    RETURN_IF_ERROR(this->NoteAnswer(kept));
    *response_ = std::move(answer);
    this->record_.messages_sent = 1;
    this->record_.bytes_out = static_cast<int64_t>(response_->Length());
    return absl::OkStatus();
  }

  const grpc::ByteBuffer& request_;

 private:
  grpc::ByteBuffer* const response_;
};

}  // namespace fusion
