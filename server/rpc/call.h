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

/// The bytes of a message, in the pieces in which they came or in one. Refers to the buffer's where
/// it can: requests of up to some 16 KB come in one piece. Not thread-safe.
class FlatBytes {
 public:
  absl::Status Read(const grpc::ByteBuffer& buffer);
  /// All of them; joins the pieces.
  std::string_view view();
  std::vector<std::string_view> pieces() const;

 private:
  static std::string_view ViewOf(const grpc::Slice& slice) {
    return {reinterpret_cast<const char*>(slice.begin()), slice.size()};
  }
  std::vector<grpc::Slice> slices_;
  std::string joined_;  // once it was asked for
};

/// `bytes`, a part of what `owner` points to, as a slice that keeps it: nothing is copied.
template <typename T>
grpc::Slice SharedSlice(std::shared_ptr<const T> owner, std::string_view bytes) {
  using Pointer = std::shared_ptr<const T>;
  auto* kept = new Pointer(std::move(owner));  // the slice owns it
  return grpc::Slice(
      const_cast<char*>(bytes.data()), bytes.size(),
      [](void* pointer) { delete static_cast<Pointer*>(pointer); }, kept);
}

/// What all kinds of calls share: cancellation, admission, and the account at the end. Not
/// thread-safe, but for cancel().
class Call {
 public:
  Call(const ServiceParts& parts, const grpc::CallbackServerContext& context, RpcMethod method);
  virtual ~Call() = default;
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

 protected:
  /// Lets the call in, or says why not.
  absl::Status Enter(const grpc::ByteBuffer& request);

  /// So many bytes of the request came; Enter has done so for what it was given.
  void NoteRequest(int64_t bytes);

  /// Has `work`, the call's first, done on a thread of ours; `refused` is called instead, on any
  /// thread, if its place goes to another. After OK the call may be gone. Not OK: neither will be.
  absl::Status Run(std::function<void()> work, std::function<void(const absl::Status&)> refused);

  /// Both; what keeps the work from being done goes to `refused`. The call may be gone afterwards.
  void Begin(const grpc::ByteBuffer& request, std::function<void()> work,
             const std::function<void(const absl::Status&)>& refused);

  /// From now on the call holds what it takes to make texts or an explanation of a stored plan or
  /// kernel, which is charged `charged` bytes, a quarter of --max-inflight-bytes at most; and no
  /// longer. ResourceExhausted, of the first: too much is under way.
  absl::Status HoldToRead(int64_t charged);
  absl::Status HoldNoMore() { return parts_.admission.Hold(&*pass_, record_.bytes_in); }

  /// Before the answer, or a part of it, is sent: what that keeps of memory until it is read.
  /// ResourceExhausted: too much is not read yet.
  absl::Status NoteAnswer(const AnswerMemory& kept) const {
    return kept.most() > kSmallAnswerBytes ? parts_.answers(context_, kept) : absl::OkStatus();
  }

  WorkOwner owner() const { return {caller_.tenant, caller_.priority == Priority::kBackground}; }

  /// No thread is needed any more, but for what Admission::Resume runs.
  void EndTurn() {
    if (pass_.has_value()) parts_.admission.EndTurn(&*pass_);
  }

  /// The last thing before the answer is given away: afterwards the call may be gone any moment.
  grpc::Status Account(const absl::Status& status);

 private:
  void LogCall(int64_t left_out) const;

 protected:
  /// False for what the tenant must not know of, by its full key.
  bool MayShow(std::string_view full_key) const { return parts_.Shows(full_key, caller_.tenant); }

  const ServiceParts& parts_;
  const grpc::CallbackServerContext& context_;
  const Nanoseconds start_;
  CancelToken cancel_;
  Caller caller_;
  const absl::Status identified_;  // why nothing is done for the caller
  RpcRecord record_;
  std::optional<Admission::Pass> pass_;  // until the answer is sent
};

/// A call with one answer, made on a thread of ours; `Base` is a Call. Deletes itself when gRPC is
/// done with it.
template <typename Base>
class UnaryReactor : public grpc::ServerUnaryReactor, protected Base {
 public:
  UnaryReactor(const ServiceParts& parts, const grpc::CallbackServerContext& context,
               RpcMethod method, const grpc::ByteBuffer& request, grpc::ByteBuffer* response)
      : Base(parts, context, method), request_(request), response_(response) {}

  /// Begins the call; gives the reactor for gRPC: `call`, or where the call is over already (it was
  /// refused, or its answer was at hand) gRPC's own, which needs no thread to be told that it is
  /// done. Owns `call`.
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
  /// True after Send, if the answer is at hand: on gRPC's own thread, so without waiting.
  virtual bool AnswerAtOnce() { return false; }

  /// Ends with Send, or with why there is no answer.
  virtual absl::Status Answer() = 0;

  /// An answer of bytes that nobody else has.
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
