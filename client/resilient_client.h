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

/// When what is cached is used.
enum class CachePolicy : uint8_t {
  kPreferService,  // the service is asked; kernels that are here are not fetched; the cached plan
                   // is for when the service is away
  kPreferCache,    // a cached plan is used at once, however old; the service is asked for others
};

struct ResilientOptions {
  /// Of each connection. `attempts` means nothing here: see `retry`.
  ClientOptions client;
  RetryPolicy retry;
  BreakerOptions breaker;
  /// For all of FetchBundle: connecting, planning, compiling, fetching, retries and pauses.
  Nanoseconds load_deadline = std::chrono::seconds(30);
  /// Without an answer to a connection, one address is given up for so long.
  Nanoseconds connect_timeout = std::chrono::seconds(2);
  CachePolicy policy = CachePolicy::kPreferService;
  /// Null: nothing is kept.
  std::shared_ptr<BundleCache> cache;
};

/// What a client did so far; for logs and metrics of the application.
struct ClientStats {
  BundleCacheStats cache;
  int64_t asked = 0;    // attempts that reached for a service
  int64_t retries = 0;  // rounds after the first
  int64_t refused_by_breaker = 0;
  int64_t breaker_opens = 0;    // of all addresses
  int64_t from_service = 0;     // bundles
  int64_t from_cache = 0;       // bundles
  int64_t fetched_kernels = 0;  // over the network; cache.kernel_hits were not
  int64_t not_kept = 0;         // bundles, because the cache is too slow
  int64_t fallbacks = 0;        // models that began op by op
  int64_t upgrades = 0;         // of them, those that are fused by now
};

/// A bundle, and where it is from.
struct FetchedBundle {
  Bundle bundle;
  bool from_cache = false;
  /// Why the service did not give it; OK if it did, or was not asked.
  absl::Status service;
  /// Who gave it; null from the cache. For reports.
  std::unique_ptr<Client> client;
};

/// Services that may be away: several addresses, retries, one deadline for everything, a circuit
/// breaker for each address, and what is cached.
///
///   ASSIGN_OR_RETURN(auto cache, BundleCache::Open(directory));
///   ASSIGN_OR_RETURN(auto client, ResilientClient::Create({"fusion-a:50051", "fusion-b:50051"},
///                                                         {.cache = cache}));
///   ASSIGN_OR_RETURN(FetchedBundle bundle, client->FetchBundle(request));
///
/// Create asks nobody and cannot fail for who is away. Addresses are tried in order, beginning with
/// the last one that answered; one that says nothing takes its share of the deadline and no more.
/// Retries are made here, over all addresses in turn; the connections make none of their own. One
/// that asks to be left alone for a while (RetryInfo) is, by all calls of this client, for at most
/// BreakerOptions::most_pause.
///
/// An attempt that ends without an answer counts against its service only if that does not even say
/// that it is there (grpc.health.v1) in what is left of the attempt's time: a long compile, or a
/// caller in a hurry, closes no circuit.
///
/// What a service gave is written to the cache on a thread of this client's, after the call. Its
/// end waits for that: a directory that hangs for ever holds it up for ever, but no load. Reading
/// the cache is part of a load.
/// Thread-safe.
class ResilientClient {
 public:
  /// `addresses` as of Client::Connect; none: only the cache is asked. InvalidArgument for an empty
  /// address.
  static absl::StatusOr<std::shared_ptr<ResilientClient>> Create(
      std::vector<std::string> addresses, const ResilientOptions& options = {});

  /// Plan and kernels of a request, whose mode is PlanMode::kCompile; never later than the
  /// deadline, by default `load_deadline` from now, but for what decoding takes. `stop`, if not
  /// null, ends it early. Errors: the service's own; Unavailable, with every address and what was
  /// wrong there, if none could be asked; DeadlineExceeded.
  absl::StatusOr<FetchedBundle> FetchBundle(const FusionRequest& request,
                                            std::optional<Nanoseconds> deadline = std::nullopt,
                                            CallStop* stop = nullptr);
  /// Asks the service alone, whatever is cached, and keeps the answer.
  absl::StatusOr<FetchedBundle> FetchFromService(const FusionRequest& request,
                                                 std::optional<Nanoseconds> deadline = std::nullopt,
                                                 CallStop* stop = nullptr);

  /// Waits until everything that was given so far is in the cache, or was left out because of its
  /// slowness. False after `timeout`.
  bool AwaitKept(Nanoseconds timeout);

  ClientStats stats() const;
  /// By address, in the order of Create.
  std::vector<BreakerState> breakers() const;
  const std::vector<std::string>& addresses() const { return addresses_; }
  const ResilientOptions& options() const { return options_; }

  /// Of models that go on without a plan (ResilientModel).
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
  std::atomic<size_t> preferred_{0};  // the last one that answered
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
  // The last member: it ends first. Null without a cache.
  std::unique_ptr<ThreadPool> keeper_;
};

/// The addresses of "a:1,b:2,unix:/c"; spaces around them mean nothing.
std::vector<std::string> SplitAddresses(std::string_view list);

}  // namespace fusion
