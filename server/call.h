#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/call_caller.h"
#include "server/service_parts.h"
#include "server/tenant_namespace.h"

namespace fusion {

/// The bytes of a message in one piece. Refers to the buffer's where it can: requests of up to some
/// 16 KB come in one piece.
class FlatBytes {
 public:
  absl::Status Read(const grpc::ByteBuffer& buffer);
  std::string_view view() const { return slices_.size() == 1 ? ViewOf(slices_[0]) : joined_; }

 private:
  static std::string_view ViewOf(const grpc::Slice& slice) {
    return {reinterpret_cast<const char*>(slice.begin()), slice.size()};
  }
  std::vector<grpc::Slice> slices_;
  std::string joined_;
};

/// What all kinds of calls share: cancellation, admission, and the account at the end. Not
/// thread-safe, but for cancel().
class Call {
 public:
  Call(const ServiceParts& parts, const grpc::CallbackServerContext& context, RpcMethod method);
  virtual ~Call() = default;
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

 protected:
  /// Lets the call in and has `work` done on a thread of ours, or says why not. After OK the call
  /// may be gone.
  absl::Status Admit(const grpc::ByteBuffer& request, std::function<void()> work);

  /// The last thing before the answer is given away: afterwards the call may be gone any moment.
  grpc::Status Account(const absl::Status& status);

 private:
  void LogCall() const;

 protected:
  /// False for what the tenant must not know of, by its full key.
  bool MayShow(std::string_view full_key) const {
    return !parts_.tenant_namespaces || IsOfTenant(full_key, caller_.tenant);
  }

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

  void Start() {
    absl::Status admitted = this->Admit(request_, [this] { Finish(this->Account(Answer())); });
    if (!admitted.ok()) Finish(this->Account(admitted));
  }

  void OnCancel() override { this->cancel_.Cancel(); }
  void OnDone() override { delete this; }

 protected:
  /// Ends with Send, or with why there is no answer.
  virtual absl::Status Answer() = 0;

  absl::Status Send(grpc::ByteBuffer answer) {
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
