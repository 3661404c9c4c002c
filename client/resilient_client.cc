#include "client/resilient_client.h"

#include <algorithm>

#include "client/fusion_request.h"
#include "client/rpc_context.h"
#include "core/base/text/text.h"
#include "core/base/trace.h"
#include "core/wire/error_details.h"

namespace fusion {
namespace {

// The last part of an attempt's time is for a health check only: enough for a machine under load,
// little of a load's time.
constexpr Nanoseconds kMostLook = std::chrono::milliseconds(500);
constexpr int kLookPart = 4;
// With less time, no answer proves nothing.
constexpr Nanoseconds kLeastTime = std::chrono::milliseconds(200);
// Bundles that may wait for a slow directory, each with its kernels.
constexpr size_t kMostWaiting = 16;

Nanoseconds LookOf(Nanoseconds time) { return std::min(kMostLook, time / kLookPart); }

bool FoundNobody(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
}

// When a service with this answer may be asked again; never if it is full and names no delay.
Nanoseconds DelayOf(const absl::Status& status) {
  return RetryAfterOf(status).value_or(absl::IsResourceExhausted(status) ? Nanoseconds::max()
                                                                         : Nanoseconds(0));
}

// Of the answers of two services in one round, the one that may be retried sooner.
absl::Status Sooner(const absl::Status& a, const absl::Status& b) {
  return a.ok() || DelayOf(b) <= DelayOf(a) ? b : a;
}

// An attempt that used only its share of the time may be followed by one elsewhere.
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
  Mutex mutex;
  std::unique_ptr<Client> client ABSL_GUARDED_BY(mutex);  // after the first use
  Nanoseconds not_before ABSL_GUARDED_BY(mutex){0};       // as it asked for
  absl::Status asked_for ABSL_GUARDED_BY(mutex);          // in these words

  void LeaveAlone(Nanoseconds until, const absl::Status& why) {
    MutexLock lock(&mutex);
    not_before = until;
    asked_for = why;
  }

  // The error that asked for a pause, with the remaining time; OK if there is none.
  absl::Status MayBeAsked(Nanoseconds now) {
    MutexLock lock(&mutex);
    return now >= not_before ? absl::OkStatus() : WithRetryAfter(asked_for, not_before - now);
  }

  // gRPC reconnects after growing pauses, and a dead connection looks alive for minutes: after a
  // failure the next call opens a new one. The breaker decides when.
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
  std::string traceparent;
};

// State across the rounds of a call.
struct ResilientClient::Rounds {
  std::vector<absl::Status> ended;  // by service: the "no" of one that must not be asked again
  absl::Status refused;             // if no circuit lets the call through
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
  if (options_.cache != nullptr) {
    keeper_ = std::make_unique<ThreadPool>("fusion-keep", 1, kMostWaiting);
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
    // Requested texts are not in cached answers.
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
  const std::string trace =
      TraceparentOrNew(FirstTrace({request.traceparent, options_.client.traceparent}));
  const Call call{request, digest, until, stop, trace};
  const RetryTime time{.clock = clock,
                       .until = until - LookOf(until - clock.Now()),
                       .wait =
                           [stop](Nanoseconds pause) {
                             CallStop none;
                             return (stop == nullptr ? &none : stop)->Wait(pause);
                           },
                       .random = [this] { return Random(); }};
  FetchedBundle out;
  Rounds rounds{std::vector<absl::Status>(services_.size()), absl::OkStatus()};
  RETURN_IF_ERROR(WithRetries(
      options_.retry, time, [&] { return AskInTurn(call, &rounds, &out); },
      [this] { ++retries_; }));
  RETURN_IF_ERROR(rounds.refused);
  ++from_service_;
  return out;
}

// One round: the first service that gives an answer, or a "no" that others would repeat. OK and
// `rounds->refused` if no circuit lets a call through: another round would not, either.
absl::Status ResilientClient::AskInTurn(const Call& call, Rounds* rounds, FetchedBundle* out) {
  const Clock& clock = Clock::Real();
  const size_t first = preferred_;
  absl::Status soonest;
  std::vector<std::string> closed;
  for (size_t i = 0; i < services_.size(); ++i) {
    const size_t at = (first + i) % services_.size();
    Service& service = *services_[at];
    const Nanoseconds now = clock.Now();
    absl::Status status = rounds->ended[at];
    if (status.ok()) status = service.MayBeAsked(now);
    if (!status.ok()) {
      soonest = Sooner(soonest, status);
      continue;
    }
    absl::Status admitted = service.breaker.Admit();
    if (!admitted.ok()) {
      ++refused_;
      closed.emplace_back(Message(admitted));  // names the address
      continue;
    }
    // The others may be asked, too, if this one says nothing.
    const Nanoseconds share = (call.until - now) / static_cast<int64_t>(services_.size() - i);
    status = AskOne(service, call, now + std::max(share, Nanoseconds(0)), out);
    if (status.ok()) {
      preferred_ = at;
      return status;
    }
    if (!MayAskElsewhere(status)) return status;
    if (DelayOf(status) == Nanoseconds::max()) rounds->ended[at] = status;
    soonest = Sooner(soonest, status);
  }
  if (!soonest.ok()) return soonest;
  rounds->refused = services_.empty() ? Unavailable("no address of a service is given")
                                      : Unavailable(StrJoin(closed, "; "));
  return absl::OkStatus();
}

absl::Status ResilientClient::AskOne(Service& service, const Call& call, Nanoseconds until,
                                     FetchedBundle* out) {
  const Nanoseconds begin = Clock::Real().Now();
  absl::Status status = Ask(service, call, until - LookOf(until - begin), out);
  const absl::Status finding = Finding(service, status, begin, until);
  service.breaker.Record(finding);
  if (FoundNobody(finding)) service.Forget();
  if (const std::optional<Nanoseconds> delay = RetryAfterOf(status)) {
    service.LeaveAlone(Clock::Real().Now() + std::min(*delay, options_.breaker.most_pause), status);
  }
  return status;
}

// The status of an attempt for the breaker. An attempt without an answer may only have had too
// little time: then a health check decides.
absl::Status ResilientClient::Finding(Service& service, const absl::Status& status,
                                      Nanoseconds begin, Nanoseconds until) const {
  const bool heard = !FoundNobody(status) || (absl::IsUnavailable(status) && IsFromService(status));
  if (heard) return status;
  if (until - begin < kLeastTime) return Cancelled("there was no time to find out");
  if (!absl::IsDeadlineExceeded(status)) return status;  // it was not even reached
  ASSIGN_OR_RETURN(std::unique_ptr<Client> client, service.Limited(options_.client, {}));
  const absl::Status there = client->CheckHealth(until - Clock::Real().Now());
  return FoundNobody(there) ? status : absl::OkStatus();
}

absl::Status ResilientClient::Ask(Service& service, const Call& call, Nanoseconds until,
                                  FetchedBundle* out) {
  ++asked_;
  ASSIGN_OR_RETURN(
      std::unique_ptr<Client> client,
      service.Limited(options_.client,
                      {.until = until, .stop = call.stop, .traceparent = call.traceparent}));
  RETURN_IF_ERROR(client->Reach(options_.connect_timeout));
  std::string answer;
  ASSIGN_OR_RETURN(out->bundle.reply, client->PlanFusion(call.request, &answer));
  RETURN_IF_ERROR(FetchKernels(*client, &out->bundle));
  out->client = client->Share();
  const std::vector<KernelStatus>& kernels = out->bundle.reply.kernels;
  const bool whole = std::all_of(kernels.begin(), kernels.end(), [](const KernelStatus& kernel) {
    return kernel.state == KernelState::kReady;
  });
  if (options_.cache != nullptr && whole && call.request.dumps.empty()) {
    Keep(call, std::move(answer), out->bundle);
  }
  return absl::OkStatus();
}

// In the background: a directory may be slow, and loads do not wait for it.
void ResilientClient::Keep(const Call& call, std::string answer, const Bundle& bundle) {
  {
    MutexLock lock(&mutex_);
    ++keeping_;
  }
  auto end = [this] {
    MutexLock lock(&mutex_);
    --keeping_;
    kept_.NotifyAll();
  };
  const absl::Status queued = keeper_->Submit(
      [this, end, request = call.digest, answer = std::move(answer), kernels = bundle.kernels] {
        options_.cache->Store(request, answer, kernels);
        end();
      });
  if (queued.ok()) return;
  ++not_kept_;
  end();
}

bool ResilientClient::AwaitKept(Nanoseconds timeout) {
  const Nanoseconds until = Clock::Real().Now() + timeout;
  MutexLock lock(&mutex_);
  while (keeping_ > 0) {
    const Nanoseconds left = until - Clock::Real().Now();
    if (left <= Nanoseconds(0)) return false;
    kept_.WaitFor(&mutex_, left);
  }
  return true;
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
  // The plan is new, so its kernels were evicted since; a retry makes them again.
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
  out.not_kept = not_kept_;
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
