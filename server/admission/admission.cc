#include "server/admission/admission.h"

#include <algorithm>
#include <utility>

#include "core/wire/error_details.h"

namespace fusion {
namespace {

// Bounds of the retry time that a refused caller is given.
constexpr Nanoseconds kLeastWait = std::chrono::milliseconds(50);
constexpr Nanoseconds kMostWait = std::chrono::seconds(10);
// A tenant that uses at most 1/8 of a limit is admitted even if others use all of it, up to 1.5
// times the limit. Chosen: so there is room for four such tenants.
constexpr int64_t kModestPartOfLimit = 8;
// Weight of the newest sample in the moving average. Chosen: about the last 20 samples decide.
constexpr double kNewest = 0.05;

// Sum of OthersWorked of the task that runs on this thread.
thread_local Nanoseconds worked_by_others{0};

void NoteIn(Nanoseconds took, Nanoseconds* mean) {
  const double newest = mean->count() == 0 ? 1 : kNewest;
  *mean += Nanoseconds(static_cast<int64_t>(newest * static_cast<double>((took - *mean).count())));
}

}  // namespace

std::string_view RefusedName(Refused reason) {
  switch (reason) {
    case Refused::kCalls:
      return "calls";
    case Refused::kBytes:
      return "bytes";
    case Refused::kRate:
      return "rate";
    case Refused::kStreams:
      return "streams";
    case Refused::kDisplaced:
      return "displaced";
    case Refused::kDeadline:
      return "deadline";
    case Refused::kUnread:
      return "unread";
  }
  return "unknown";
}

Admission::Pass::Pass(Pass&& other) noexcept
    : admission_(std::exchange(other.admission_, nullptr)),
      owner_(std::move(other.owner_)),
      bytes_(other.bytes_),
      method_(other.method_),
      has_turn_(other.has_turn_),
      is_stream_(other.is_stream_) {}

Admission::Pass::~Pass() {
  if (admission_ != nullptr) admission_->Release(*this);
}

// The pool's own queue is unbounded: turns_ bounds the waiting calls. Streams queue further tasks,
// and a displaced call stays in the queue until it has been told.
Admission::Admission(const AdmissionLimits& limits, const Clock& clock)
    : limits_(limits),
      clock_(clock),
      threads_("request", limits.threads, static_cast<size_t>(INT32_MAX), limits.spare_threads) {}

absl::Status Admission::Refuse(Refused reason, absl::Status status, Nanoseconds retry_after) {
  CountRefused(reason);
  // The wait for a rate is known exactly; other waits are estimates.
  const Nanoseconds most = reason == Refused::kRate ? Nanoseconds::max() : kMostWait;
  return WithRetryAfter(std::move(status), std::clamp(retry_after, kLeastWait, most));
}

Admission::Tenant& Admission::TenantOf(const std::string& name) {
  auto [it, fresh] = tenants_.try_emplace(name);
  if (fresh) {
    it->second.tokens = limits_.tenants.Of(name).Burst();
    it->second.filled_at = clock_.Now();
  }
  return it->second;
}

// Erases a tenant without running calls and with a full bucket: it has the same state as a new one.
// Returns the next tenant.
Admission::Tenants::iterator Admission::ForgetIdle(Tenants::iterator it) {
  Tenant& tenant = it->second;
  Refill(it->first, &tenant);
  const bool idle = tenant.calls + tenant.streams == 0;
  const bool full = tenant.tokens >= limits_.tenants.Of(it->first).Burst();
  return idle && full ? tenants_.erase(it) : std::next(it);
}

// Checks `name` and one other tenant, round robin, so that idle tenants are erased eventually.
void Admission::Forget(const std::string& name) {
  auto it = tenants_.find(name);
  if (it != tenants_.end()) ForgetIdle(it);
  it = tenants_.lower_bound(looked_at_);
  if (it == tenants_.end()) it = tenants_.begin();
  if (it == tenants_.end()) return;
  it = ForgetIdle(it);
  looked_at_ = it == tenants_.end() ? "" : it->first;
}

void Admission::Refill(const std::string& name, Tenant* tenant) const {
  const TenantLimit& limit = limits_.tenants.Of(name);
  const Nanoseconds now = clock_.Now();
  const double seconds = std::chrono::duration<double>(now - tenant->filled_at).count();
  tenant->tokens = std::min(limit.Burst(), tenant->tokens + seconds * limit.calls_per_second);
  tenant->filled_at = now;
}

void Admission::GiveTokenBack(const std::string& name) {
  Tenant& tenant = TenantOf(name);
  tenant.tokens = std::min(limits_.tenants.Of(name).Burst(), tenant.tokens + 1);
}

// nullopt: taken; else the time until a token is available.
std::optional<Nanoseconds> Admission::TakeToken(const std::string& name, Tenant* tenant) {
  const TenantLimit& limit = limits_.tenants.Of(name);
  if (limit.calls_per_second == 0) return std::nullopt;
  Refill(name, tenant);
  if (tenant->tokens >= 1) {
    tenant->tokens -= 1;
    return std::nullopt;
  }
  return std::chrono::duration_cast<Nanoseconds>(
      std::chrono::duration<double>((1 - tenant->tokens) / limit.calls_per_second));
}

// Counts only the waiting tasks that would run before a call of `owner`.
Nanoseconds Admission::EstimatedWait(const WorkOwner& owner) const {
  const auto ahead = static_cast<int64_t>(threads_.Ahead(owner));
  return thread_time_ * ahead / std::max<int64_t>(limits_.threads, 1);
}

void Admission::OthersWorked(Nanoseconds took) { worked_by_others += took; }

void Admission::NoteTask(RpcMethod method, Nanoseconds took, Nanoseconds others_worked) {
  MutexLock lock(&mutex_);
  NoteIn(took, &thread_time_);
  NoteIn(took - others_worked, &own_time_[static_cast<size_t>(method)]);
}

bool Admission::HasRoom(int64_t limit, const Tenant& tenant, int64_t Tenant::*use, int64_t total,
                        int64_t more) {
  const int64_t others = total - tenant.*use;
  const int64_t own = tenant.*use + more;
  // A single call may exceed the limit while there is no other.
  if (total == 0) return true;
  if (others > 0 && own <= std::max<int64_t>(limit / kModestPartOfLimit, 1)) {
    return others + own <= limit + limit / 2;
  }
  const int64_t share = others == 0 ? limit : limit / 2;
  return (tenant.*use == 0 || own <= share) && others + own <= limit;
}

absl::Status Admission::CheckRoom(const WorkOwner& owner, int64_t bytes, Tenant* tenant) {
  if (!HasRoom(limits_.inflight_bytes, *tenant, &Tenant::bytes, bytes_, bytes)) {
    return Refuse(
        Refused::kBytes,
        ResourceExhausted("server is busy: requests of ", HumanBytes(bytes_),
                          " are under way, and this one of ", HumanBytes(bytes), " would exceed ",
                          HumanBytes(limits_.inflight_bytes), ", or its tenant's part of it"),
        EstimatedWait(owner));
  }
  if (std::optional<Nanoseconds> next = TakeToken(owner.tenant, tenant)) {
    return Refuse(Refused::kRate,
                  ResourceExhausted("tenant ", QuoteShort(owner.tenant), " makes more than ",
                                    limits_.tenants.Of(owner.tenant).calls_per_second,
                                    " calls a second; try again later"),
                  *next);
  }
  return absl::OkStatus();
}

absl::StatusOr<Admission::Pass> Admission::Enter(const WorkOwner& owner, int64_t bytes,
                                                 RpcMethod method) {
  MutexLock lock(&mutex_);
  Tenant& tenant = TenantOf(owner.tenant);
  absl::Status room = CheckRoom(owner, bytes, &tenant);
  // Checked under the lock, so that no call is admitted after Close and a count of zero.
  if (closed_) room = Unavailable("server is stopping");
  if (!room.ok()) {
    Forget(owner.tenant);
    return room;
  }
  ++tenant.calls;
  tenant.bytes += bytes;
  ++calls_;
  bytes_ += bytes;
  return Pass(this, owner, bytes, method);
}

bool Admission::TryTurn(Pass* pass, int64_t most) {
  MutexLock lock(&mutex_);
  if (turns_ >= most) return false;
  ++turns_;
  pass->has_turn_ = true;
  return true;
}

absl::Status Admission::TakeTurn(Pass* pass, Nanoseconds time_left) {
  Nanoseconds wait{0};
  {
    MutexLock lock(&mutex_);
    wait = EstimatedWait(pass->owner_);
    // Without waiting calls the mean says nothing about this call, so it is not refused.
    const Nanoseconds own =
        wait.count() > 0 ? own_time_[static_cast<size_t>(pass->method_)] : Nanoseconds(0);
    const Nanoseconds needs = wait + own;
    // These are means: a single call may take up to twice as long.
    if (2 * needs > time_left) {
      GiveTokenBack(pass->owner_.tenant);
      return Refuse(
          Refused::kDeadline,
          ResourceExhausted("server is busy: this call would take some ", ToMilliseconds(needs),
                            " ms, and its deadline is in ", ToMilliseconds(time_left), " ms"),
          wait);
    }
  }
  const int64_t most = limits_.threads + limits_.queue;
  if (TryTurn(pass, most)) return absl::OkStatus();
  // Unwanted calls keep their places until DropUnwanted.
  if (threads_.DropUnwanted() > 0 && TryTurn(pass, most)) return absl::OkStatus();
  {
    MutexLock lock(&mutex_);
    ++turns_;
    pass->has_turn_ = true;
  }
  if (threads_.Displace(pass->owner_)) return absl::OkStatus();
  MutexLock lock(&mutex_);
  --turns_;
  pass->has_turn_ = false;
  GiveTokenBack(pass->owner_.tenant);
  return Refuse(
      Refused::kCalls,
      ResourceExhausted("server is busy: ", most, " calls are under way; try again later"), wait);
}

absl::Status Admission::Run(const Pass& pass, std::function<void()> task,
                            std::function<void(const absl::Status&)> refused,
                            std::function<absl::Status()> over) {
  auto still_wanted = [over = std::move(over)] { return over ? over() : absl::OkStatus(); };
  // Abandoned calls end at once. They are left out of the mean: they would lower it, and calls that
  // cannot meet their deadline would be admitted.
  auto timed = [this, method = pass.method_, task = std::move(task), still_wanted] {
    const bool wanted = still_wanted().ok();
    const Nanoseconds start = clock_.Now();
    worked_by_others = Nanoseconds(0);
    task();
    if (wanted) NoteTask(method, clock_.Now() - start, worked_by_others);
  };
  auto displaced = [this, owner = pass.owner_, refused = std::move(refused), still_wanted] {
    if (absl::Status wanted = still_wanted(); !wanted.ok()) return refused(wanted);
    Nanoseconds wait{0};
    {
      MutexLock lock(&mutex_);
      GiveTokenBack(owner.tenant);
      wait = EstimatedWait(owner);
    }
    refused(Refuse(Refused::kDisplaced,
                   ResourceExhausted("server is busy: the place of this call in the queue went to "
                                     "a tenant with fewer of them; try again later"),
                   wait));
  };
  using Standing = ThreadPool::Standing;
  return threads_.SubmitFor(
      pass.owner_,
      {.run = std::move(timed), .displaced = std::move(displaced), .standing = [still_wanted] {
         return still_wanted().ok() ? Standing::kMayGo : Standing::kUnwanted;
       }});
}

void Admission::EndTurn(Pass* pass) {
  MutexLock lock(&mutex_);
  if (std::exchange(pass->has_turn_, false)) --turns_;
}

absl::Status Admission::BeginStream(Pass* pass) {
  if (pass->is_stream_) return absl::OkStatus();
  MutexLock lock(&mutex_);
  Tenant& tenant = TenantOf(pass->owner_.tenant);
  if (!HasRoom(limits_.streams, tenant, &Tenant::streams, streams_, 1)) {
    return Refuse(
        Refused::kStreams,
        ResourceExhausted("server is busy: ", streams_, " answers are being read; try again later"),
        kLeastWait);
  }
  ++tenant.streams;
  ++streams_;
  --tenant.calls;
  --calls_;
  if (std::exchange(pass->has_turn_, false)) --turns_;
  pass->is_stream_ = true;
  return absl::OkStatus();
}

absl::Status Admission::Hold(Pass* pass, int64_t bytes) {
  MutexLock lock(&mutex_);
  Tenant& tenant = TenantOf(pass->owner_.tenant);
  const int64_t others = bytes_ - pass->bytes_;
  Tenant without = tenant;
  without.bytes -= pass->bytes_;
  if (bytes > pass->bytes_ &&
      !HasRoom(limits_.inflight_bytes, without, &Tenant::bytes, others, bytes)) {
    return Refuse(
        Refused::kBytes,
        ResourceExhausted("server is busy: requests of ", HumanBytes(others),
                          " are under way, and this one of ", HumanBytes(bytes), " would exceed ",
                          HumanBytes(limits_.inflight_bytes), ", or its tenant's part of it"),
        kLeastWait);
  }
  tenant.bytes = without.bytes + bytes;
  bytes_ = others + bytes;
  pass->bytes_ = bytes;
  return absl::OkStatus();
}

void Admission::Release(const Pass& pass) {
  MutexLock lock(&mutex_);
  Tenant& tenant = TenantOf(pass.owner_.tenant);
  --(pass.is_stream_ ? tenant.streams : tenant.calls);
  --(pass.is_stream_ ? streams_ : calls_);
  if (pass.has_turn_) --turns_;
  tenant.bytes -= pass.bytes_;
  bytes_ -= pass.bytes_;
  Forget(pass.owner_.tenant);
}

int64_t Admission::calls() const {
  MutexLock lock(&mutex_);
  return calls_ + streams_;
}

int64_t Admission::streams() const {
  MutexLock lock(&mutex_);
  return streams_;
}

int64_t Admission::bytes() const {
  MutexLock lock(&mutex_);
  return bytes_;
}

std::map<std::string, int64_t> Admission::tenant_bytes() const {
  std::map<std::string, int64_t> out;
  MutexLock lock(&mutex_);
  for (const auto& [name, tenant] : tenants_) {
    if (tenant.bytes > 0) out[name] = tenant.bytes;
  }
  return out;
}

}  // namespace fusion
