#include "client/resilient_client.h"

#include <algorithm>
#include <atomic>

#include "client/fusion_request.h"
#include "core/base/text.h"
#include "core/wire/error_details.h"

namespace fusion {
namespace {

// Of an attempt that had its share of the time only, another may still be made elsewhere.
bool MayAskElsewhere(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) ||
         absl::IsDataLoss(status) || absl::IsResourceExhausted(status);
}

}  // namespace

struct ResilientClient::Service {
  Service(std::string to, const BreakerOptions& options, uint32_t seed)
      : address(std::move(to)), random(seed), breaker(options, Clock::Real(), [this] {
          return std::uniform_real_distribution<double>(0, 1)(random);
        }) {}

  const std::string address;
  std::minstd_rand random;  // of the breaker, which guards it
  CircuitBreaker breaker;
  // A call was not answered in its time. That may be the call: the next one asks for a sign of life
  // before.
  std::atomic<bool> suspect{false};
  std::atomic<Nanoseconds> not_before{Nanoseconds(0)};  // the service named a pause
  Mutex mutex;
  std::unique_ptr<Client> client ABSL_GUARDED_BY(mutex);  // once somebody asked

  // gRPC waits longer and longer before it connects again, and a connection whose other end is gone
  // without a word looks alive for minutes: after a failure the next call makes a new one. When
  // that is, the breaker says.
  void Forget() {
    MutexLock lock(&mutex);
    client = nullptr;
  }

  absl::StatusOr<std::unique_ptr<Client>> Limited(const ClientOptions& options,
                                                  const CallLimits& limits) {
    MutexLock lock(&mutex);
    if (client == nullptr) {
      ASSIGN_OR_RETURN(client, Client::Open(address, options));
    }
    return client->Limited(limits);
  }
};

struct ResilientClient::Call {
  const FusionRequest& request;
  Digest digest;
  Nanoseconds until{0};
  CallStop* stop = nullptr;
};

absl::StatusOr<std::shared_ptr<ResilientClient>> ResilientClient::Create(
    std::vector<std::string> addresses, const ResilientOptions& options) {
  for (const std::string& address : addresses) {
    if (address.empty()) return InvalidArgument("addresses: one of them is empty");
  }
  return std::shared_ptr<ResilientClient>(new ResilientClient(std::move(addresses), options));
}

ResilientClient::ResilientClient(std::vector<std::string> addresses,
                                 const ResilientOptions& options)
    : addresses_(std::move(addresses)),
      options_([&] {
        ResilientOptions out = options;
        out.client.attempts = 1;  // else those of the connection multiply with ours
        out.client.own_connection = true;
        return out;
      }()),
      random_(std::random_device()()) {
  for (const std::string& address : addresses_) {
    services_.push_back(
        std::make_unique<Service>(address, options_.breaker, std::random_device()()));
  }
}

double ResilientClient::Random() {
  MutexLock lock(&mutex_);
  return std::uniform_real_distribution<double>(0, 1)(random_);
}

absl::StatusOr<FetchedBundle> ResilientClient::FetchBundle(const FusionRequest& request,
                                                           std::optional<Nanoseconds> deadline,
                                                           CallStop* stop) {
  BundleCache* cache = options_.cache.get();
  absl::StatusOr<Digest> digest = RequestDigest(request);
  RETURN_IF_ERROR(digest.status());
  auto cached = [&](const absl::Status& service) -> std::optional<FetchedBundle> {
    // Texts are about the answer, and are not in what is kept.
    if (cache == nullptr || !request.dumps.empty()) return std::nullopt;
    std::optional<Bundle> found = cache->Find(*digest, options_.client.verify_keys);
    if (!found) return std::nullopt;
    ++from_cache_;
    return FetchedBundle{*std::move(found), /*from_cache=*/true, service, nullptr};
  };
  if (options_.policy == CachePolicy::kPreferCache) {
    if (std::optional<FetchedBundle> found = cached(absl::OkStatus())) return *std::move(found);
  }
  absl::StatusOr<FetchedBundle> fetched = FetchFromService(request, deadline, stop);
  if (fetched.ok() || absl::IsInvalidArgument(fetched.status())) return fetched;
  if (options_.policy == CachePolicy::kPreferService) {
    if (std::optional<FetchedBundle> found = cached(fetched.status())) return *std::move(found);
  }
  return fetched;
}

absl::StatusOr<FetchedBundle> ResilientClient::FetchFromService(const FusionRequest& request,
                                                                std::optional<Nanoseconds> deadline,
                                                                CallStop* stop) {
  if (request.mode != PlanMode::kCompile) {
    return InvalidArgument("mode: a bundle has compiled kernels, expected PlanMode::kCompile");
  }
  const Clock& clock = Clock::Real();
  const Nanoseconds until = clock.Now() + deadline.value_or(options_.load_deadline);
  ASSIGN_OR_RETURN(Digest digest, RequestDigest(request));
  const Call call{request, digest, until, stop};
  const RetryTime time{.clock = clock,
                       .until = until,
                       .wait =
                           [stop](Nanoseconds pause) {
                             CallStop none;
                             return (stop == nullptr ? &none : stop)->Wait(pause);
                           },
                       .random = [this] { return Random(); }};
  FetchedBundle out;
  absl::Status refused;
  RETURN_IF_ERROR(WithRetries(
      options_.retry, time, [&] { return AskInTurn(call, &refused, &out); },
      [this] { ++retries_; }));
  RETURN_IF_ERROR(refused);
  ++from_service_;
  return out;
}

// One round: the first service that gives an answer, or a "no" that others would repeat. OK and
// `refused` if no circuit lets a call through: another round would not, either.
absl::Status ResilientClient::AskInTurn(const Call& call, absl::Status* refused,
                                        FetchedBundle* out) {
  const Clock& clock = Clock::Real();
  const size_t first = preferred_;
  absl::Status last;
  std::optional<Nanoseconds> soonest;  // until one that named a pause may be asked
  std::vector<std::string> closed;
  for (size_t i = 0; i < services_.size(); ++i) {
    Service& service = *services_[(first + i) % services_.size()];
    absl::Status admitted = service.breaker.Admit();
    if (!admitted.ok()) {
      ++refused_;
      closed.emplace_back(Message(admitted));  // names the address
      continue;
    }
    const Nanoseconds now = clock.Now();
    if (const Nanoseconds pause = service.not_before.load() - now; pause > Nanoseconds(0)) {
      service.breaker.Record(Cancelled("not asked"));
      soonest = std::min(soonest.value_or(pause), pause);
      continue;
    }
    // The others may be asked, too, if this one says nothing.
    const Nanoseconds share = (call.until - now) / static_cast<int64_t>(services_.size() - i);
    absl::Status status = Ask(service, call, now + std::max(share, Nanoseconds(0)), out);
    // A call may be long, and its time short: that says nothing of the service.
    service.breaker.Record(absl::IsDeadlineExceeded(status) ? Cancelled("too little time")
                                                            : status);
    if (absl::IsUnavailable(status)) service.Forget();
    if (std::optional<Nanoseconds> pause = RetryAfterOf(status)) {
      service.not_before = clock.Now() + *pause;
    }
    if (status.ok()) {
      preferred_ = (first + i) % services_.size();
      return status;
    }
    if (!MayAskElsewhere(status)) return status;
    last = std::move(status);
  }
  if (!last.ok()) return last;
  if (soonest.has_value()) {
    return WithRetryAfter(ResourceExhausted("every service that can be asked wants a pause"),
                          *soonest);
  }
  *refused = services_.empty() ? Unavailable("no address of a service is given")
                               : Unavailable(StrJoin(closed, "; "));
  return absl::OkStatus();
}

absl::Status ResilientClient::Ask(Service& service, const Call& call, Nanoseconds until,
                                  FetchedBundle* out) {
  ++asked_;
  ASSIGN_OR_RETURN(std::unique_ptr<Client> client,
                   service.Limited(options_.client, {.until = until, .stop = call.stop}));
  RETURN_IF_ERROR(client->Reach(options_.connect_timeout));
  if (service.suspect) {
    absl::Status alive = client->CheckHealth(options_.connect_timeout);
    if (!alive.ok()) return Unavailable(Message(alive));
  }
  std::string answer;
  absl::StatusOr<FusionReply> reply = client->PlanFusion(call.request, &answer);
  service.suspect = absl::IsDeadlineExceeded(reply.status());
  ASSIGN_OR_RETURN(out->bundle.reply, std::move(reply));
  RETURN_IF_ERROR(FetchKernels(*client, &out->bundle));
  out->client = client->Share();
  const std::vector<KernelStatus>& kernels = out->bundle.reply.kernels;
  const bool whole = std::all_of(kernels.begin(), kernels.end(), [](const KernelStatus& kernel) {
    return kernel.state == KernelState::kReady;
  });
  if (options_.cache != nullptr && whole && call.request.dumps.empty()) {
    options_.cache->Store(call.digest, answer, out->bundle.kernels);
  }
  return absl::OkStatus();
}

// Those that the cache does not have, by what they must be.
absl::Status ResilientClient::FetchKernels(const Client& client, Bundle* bundle) {
  const std::vector<KernelStatus>& wanted = bundle->reply.kernels;
  bundle->kernels.assign(wanted.size(), FetchedKernel());
  std::vector<size_t> lacking;
  std::vector<Digest> keys;
  for (size_t i = 0; i < wanted.size(); ++i) {
    std::optional<FetchedKernel> held;
    if (options_.cache != nullptr && wanted[i].state == KernelState::kReady) {
      held = options_.cache->FindKernel(wanted[i].key, wanted[i].content);
    }
    if (held) {
      bundle->kernels[i] = *std::move(held);
      continue;
    }
    lacking.push_back(i);
    keys.push_back(wanted[i].key);
  }
  if (keys.empty()) return absl::OkStatus();
  absl::StatusOr<std::vector<FetchedKernel>> fetched = client.GetKernels(keys);
  // The plan came a moment ago: its kernels were evicted since, and are made again if asked.
  if (absl::IsNotFound(fetched.status())) return Unavailable(Message(fetched.status()));
  RETURN_IF_ERROR(fetched.status());
  fetched_kernels_ += static_cast<int64_t>(fetched->size());
  for (size_t i = 0; i < lacking.size(); ++i) {
    const KernelStatus& announced = wanted[lacking[i]];
    if (announced.state == KernelState::kReady && announced.content != (*fetched)[i].content) {
      return DataLoss("kernel ", announced.key.ToHex(), " has the SHA-256 ",
                      (*fetched)[i].content.ToHex(), ", the plan came with ",
                      announced.content.ToHex());
    }
    bundle->kernels[lacking[i]] = std::move((*fetched)[i]);
  }
  return absl::OkStatus();
}

ClientStats ResilientClient::stats() const {
  ClientStats out;
  if (options_.cache != nullptr) out.cache = options_.cache->stats();
  out.asked = asked_;
  out.retries = retries_;
  out.refused_by_breaker = refused_;
  out.from_service = from_service_;
  out.from_cache = from_cache_;
  out.fetched_kernels = fetched_kernels_;
  out.fallbacks = fallbacks_;
  out.upgrades = upgrades_;
  for (const BreakerState& state : breakers()) out.breaker_opens += state.opened;
  return out;
}

std::vector<BreakerState> ResilientClient::breakers() const {
  std::vector<BreakerState> out;
  for (const std::unique_ptr<Service>& service : services_) {
    out.push_back(service->breaker.state());
  }
  return out;
}

std::vector<std::string> SplitAddresses(std::string_view list) {
  std::vector<std::string> out;
  for (std::string_view address : StrSplit(list, ',')) out.emplace_back(StripSpace(address));
  return out;
}

}  // namespace fusion
