#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "client/bundle_cache.h"
#include "client/calls/breaker.h"
#include "client/calls/retry.h"
#include "client/client.h"
#include "core/base/threads/thread_pool.h"

namespace fusion {

/// When cached plans are used.
enum class CachePolicy : uint8_t {
  kPreferService,  // calls the service, and fetches only kernels that are not cached; uses a cached
                   // plan if the service does not provide one
  kPreferCache,    // uses a cached plan at once, whatever its age; else calls the service
};

struct ResilientOptions {
  /// Options of each connection. `attempts` is ignored: see `retry`.
  ClientOptions client;
  RetryPolicy retry;
  BreakerOptions breaker;
  /// Deadline of a whole FetchBundle: connecting, planning, compiling, fetching, retries and
  /// pauses.
  Nanoseconds load_deadline = std::chrono::seconds(30);
  /// An address that does not answer a connection within this time is given up for the attempt.
  Nanoseconds connect_timeout = std::chrono::seconds(2);
  CachePolicy policy = CachePolicy::kPreferService;
  /// Null: no cache.
  std::shared_ptr<BundleCache> cache;
};

/// Counters of a client, for logs and metrics of the application.
struct ClientStats {
  BundleCacheStats cache;
  int64_t asked = 0;    // attempts to call a service
  int64_t retries = 0;  // rounds after the first
  int64_t refused_by_breaker = 0;
  int64_t breaker_opens = 0;    // of all addresses
  int64_t from_service = 0;     // bundles
  int64_t from_cache = 0;       // bundles
  int64_t fetched_kernels = 0;  // over the network; excludes cache.kernel_hits
  int64_t not_kept = 0;         // bundles that were not cached because the cache is too slow
  int64_t fallbacks = 0;        // models that started op by op
  int64_t upgrades = 0;         // of these, models that are fused now
};

/// A bundle and its source.
struct FetchedBundle {
  Bundle bundle;
  bool from_cache = false;
  /// Why the service did not provide it; OK if it did, or was not called.
  absl::Status service;
  /// The client that provided it, for reports; null: from the cache.
  std::unique_ptr<Client> client;
};

/// A client of services that may be unavailable: several addresses, retries, one deadline for
/// everything, a circuit breaker per address, and a cache.
///
///   ASSIGN_OR_RETURN(auto cache, BundleCache::Open(directory));
///   ASSIGN_OR_RETURN(auto client, ResilientClient::Create({"fusion-a:50051", "fusion-b:50051"},
///                                                         {.cache = cache}));
///   ASSIGN_OR_RETURN(FetchedBundle bundle, client->FetchBundle(request));
///
/// Create makes no connection. Addresses are tried in order, starting with the last one that
/// answered; an address that does not respond uses its share of the deadline and no more. This
/// class makes the retries, over all addresses in turn; the connections make none. If a service
/// asks for a delay (RetryInfo), all calls of this client avoid its address for that time, at most
/// BreakerOptions::most_pause.
///
/// An attempt without an answer counts as a failure of its service only if the service also does
/// not answer a health check (grpc.health.v1) in the rest of the attempt's time. A long compile or
/// a short deadline opens no circuit.
///
/// Answers of a service are written to the cache on a thread of this client, after the call. The
/// destructor waits for these writes: a directory that hangs for ever blocks the destructor for
/// ever, but no load. Reading the cache is part of a load. Thread-safe.
class ResilientClient {
 public:
  /// `addresses`: as in Client::Connect; empty list: only the cache is used. InvalidArgument for an
  /// empty address.
  static absl::StatusOr<std::shared_ptr<ResilientClient>> Create(
      std::vector<std::string> addresses, const ResilientOptions& options = {});

  /// Plan and kernels of a request, whose mode is PlanMode::kCompile. A cached plan replaces every
  /// error but InvalidArgument; the cache does not answer requests with `dumps`. Returns before the
  /// deadline (default: `load_deadline` from now) plus the time for decoding. `stop` (may be null)
  /// ends it early. Errors: InvalidArgument for another mode; those of the service; Unavailable,
  /// with every address and its error, if none could be reached; DeadlineExceeded; Cancelled by
  /// `stop`.
  absl::StatusOr<FetchedBundle> FetchBundle(const FusionRequest& request,
                                            std::optional<Nanoseconds> deadline = std::nullopt,
                                            CallStop* stop = nullptr);
  /// The same, but does not use a cached plan. Caches the answer.
  absl::StatusOr<FetchedBundle> FetchFromService(const FusionRequest& request,
                                                 std::optional<Nanoseconds> deadline = std::nullopt,
                                                 CallStop* stop = nullptr);

  /// Waits until all answers so far are in the cache, or were dropped because it is too slow. False
  /// after `timeout`.
  bool AwaitKept(Nanoseconds timeout);

  ClientStats stats() const;
  /// One state per address, in the order of Create.
  std::vector<BreakerState> breakers() const;
  const std::vector<std::string>& addresses() const { return addresses_; }
  const ResilientOptions& options() const { return options_; }

  /// Counters for ResilientModel.
  void CountFallback() { ++fallbacks_; }
  void CountUpgrade() { ++upgrades_; }

 private:
  struct Service;
  struct Call;
  struct Rounds;
  ResilientClient(std::vector<std::string> addresses, const ResilientOptions& options);
  absl::Status AskInTurn(const Call& call, Rounds* rounds, FetchedBundle* out);
  absl::Status AskOne(Service& service, const Call& call, Nanoseconds until, FetchedBundle* out);
  absl::Status Ask(Service& service, const Call& call, Nanoseconds until, FetchedBundle* out);
  absl::Status FetchKernels(const Client& client, Bundle* bundle);
  absl::Status Finding(Service& service, const absl::Status& status, Nanoseconds begin,
                       Nanoseconds until) const;
  void Keep(const Call& call, std::string answer, const Bundle& bundle);
  double Random();

  const std::vector<std::string> addresses_;
  const ResilientOptions options_;
  std::vector<std::unique_ptr<Service>> services_;
  std::atomic<size_t> preferred_{0};  // index of the address that answered last
  std::atomic<int64_t> asked_{0};
  std::atomic<int64_t> retries_{0};
  std::atomic<int64_t> refused_{0};
  std::atomic<int64_t> from_service_{0};
  std::atomic<int64_t> from_cache_{0};
  std::atomic<int64_t> fetched_kernels_{0};
  std::atomic<int64_t> not_kept_{0};
  std::atomic<int64_t> fallbacks_{0};
  std::atomic<int64_t> upgrades_{0};
  Mutex mutex_;
  CondVar kept_;
  std::mt19937 random_ ABSL_GUARDED_BY(mutex_);
  int keeping_ ABSL_GUARDED_BY(mutex_) = 0;  // bundles
  // The last member, because it must be destroyed first. Null without a cache.
  std::unique_ptr<ThreadPool> keeper_;
};

/// Splits "a:1,b:2,unix:/c" at commas; spaces around addresses are ignored.
std::vector<std::string> SplitAddresses(std::string_view list);

}  // namespace fusion
