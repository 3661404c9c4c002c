#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "client/client.h"
#include "fusion/v1/fusion_admin.pb.h"

namespace fusion {

/// For AdminClient: how calls are made.
struct AdminConnection {
  std::string address;
  ClientOptions options;
  std::shared_ptr<grpc::Channel> channel;
  Nanoseconds deadline;  // of a call
};

/// What the operator of a fusiond asks of its store. Thread-safe.
///
///   ASSIGN_OR_RETURN(auto client, Client::Connect("unix:/run/fusiond.sock"));
///   AdminClient admin(*client);
///   ASSIGN_OR_RETURN(v1::GetStoreStatsResponse stats, admin.GetStoreStats());
///
/// Errors as those of Client; besides PermissionDenied without the role "admin", and
/// FailedPrecondition where the server keeps nothing on disk. Never tried twice.
class AdminClient {
 public:
  /// On the connection of `client`, which may end before. `deadline`: of each call; verifying and
  /// compacting read all of the store.
  explicit AdminClient(const Client& client, Nanoseconds deadline = std::chrono::hours(1));

  absl::StatusOr<v1::GetStoreStatsResponse> GetStoreStats() const;
  absl::StatusOr<v1::VerifyStoreResponse> VerifyStore() const;
  absl::StatusOr<v1::CompactStoreResponse> CompactStore() const;
  /// NotFound, naming the first that is not stored; then none is changed.
  absl::StatusOr<v1::SetPinnedResponse> SetPinned(const std::vector<Digest>& plans,
                                                  bool pinned) const;
  absl::StatusOr<v1::InvalidateResponse> Invalidate(const std::vector<Digest>& plans,
                                                    const std::vector<Digest>& kernels,
                                                    const std::string& reason) const;
  /// Everything, pinned plans too.
  absl::StatusOr<v1::InvalidateResponse> InvalidateAll(const std::string& reason) const;

  /// Gives `sink` the bytes of a file of these plans, or of all if there are none, in order. An
  /// error of `sink` ends it.
  absl::Status ExportStore(const std::vector<Digest>& plans,
                           const std::function<absl::Status(std::string_view bytes)>& sink) const;
  /// Takes such bytes from `source`, which gives none at their end.
  absl::StatusOr<v1::ImportStoreResponse> ImportStore(
      const std::function<absl::StatusOr<std::string>()>& source) const;

 private:
  const AdminConnection to_;
};

}  // namespace fusion
