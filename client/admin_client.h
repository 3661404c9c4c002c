#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "client/client.h"
#include "fusion/v1/fusion_admin.pb.h"

namespace fusion {

/// The connection and deadline of an AdminClient's calls.
struct AdminConnection {
  std::string address;
  ClientOptions options;
  std::shared_ptr<grpc::Channel> channel;
  Nanoseconds deadline;  // of a call
};

/// Administration of a fusiond and its store. Thread-safe.
///
///   ASSIGN_OR_RETURN(auto client, Client::Connect("unix:/run/fusiond.sock"));
///   AdminClient admin(*client);
///   ASSIGN_OR_RETURN(v1::GetStoreStatsResponse stats, admin.GetStoreStats());
///
/// Errors are those of Client, and PermissionDenied without the role "admin", FailedPrecondition if
/// the server stores nothing on disk. Calls are never retried.
class AdminClient {
 public:
  /// Uses the connection of `client`, which may be destroyed earlier. `deadline`: of each call;
  /// verifying and compacting read the whole store.
  explicit AdminClient(const Client& client, Nanoseconds deadline = std::chrono::hours(1));

  absl::StatusOr<v1::GetStoreStatsResponse> GetStoreStats() const;
  absl::StatusOr<v1::VerifyStoreResponse> VerifyStore() const;
  absl::StatusOr<v1::CompactStoreResponse> CompactStore() const;
  /// NotFound, naming the first plan that is not stored; then none is changed.
  absl::StatusOr<v1::SetPinnedResponse> SetPinned(const std::vector<Digest>& plans,
                                                  bool pinned) const;
  absl::StatusOr<v1::InvalidateResponse> Invalidate(const std::vector<Digest>& plans,
                                                    const std::vector<Digest>& kernels,
                                                    const std::string& reason) const;
  /// Invalidates everything, pinned plans included.
  absl::StatusOr<v1::InvalidateResponse> InvalidateAll(const std::string& reason) const;
  /// Fits constants to what was measured now.
  absl::StatusOr<v1::SteerEpochsResponse> TrainEpochs(const std::string& reason) const;
  /// NotFound: there is no such epoch. FailedPrecondition: it is not in use.
  absl::StatusOr<v1::SteerEpochsResponse> RollBackEpoch(int64_t number,
                                                        const std::string& reason) const;

  /// Exports these plans, or all if `plans` is empty, as an archive file: passes its bytes to
  /// `sink` in order. Stops with the error of `sink`.
  absl::Status ExportStore(const std::vector<Digest>& plans,
                           const std::function<absl::Status(std::string_view bytes)>& sink) const;
  /// Imports such an archive from `source`, which returns an empty string at the end.
  absl::StatusOr<v1::ImportStoreResponse> ImportStore(
      const std::function<absl::StatusOr<std::string>()>& source) const;

  /// What the server does now. Unimplemented: an older server.
  absl::StatusOr<v1::GetServerStatusResponse> GetServerStatus() const;

 private:
  const AdminConnection to_;
};

}  // namespace fusion
