#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/service_parts.h"

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

  const ServiceParts& parts_;
  const Nanoseconds start_;
  CancelToken cancel_;
  RpcRecord record_;
  std::optional<Admission::Pass> pass_;  // until the answer is sent
};

}  // namespace fusion
