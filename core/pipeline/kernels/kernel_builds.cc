#include "core/pipeline/kernels/kernel_builds.h"

#include <utility>

#include "core/base/key_field.h"

namespace fusion {

KernelBuilds::KernelBuilds(WorkerPool& workers, Nanoseconds failure_ttl, Quarantine* quarantine,
                           Logger& logger, const Clock& clock)
    : workers_(workers),
      failure_ttl_(failure_ttl),
      quarantine_(quarantine),
      logger_(logger),
      state_(std::make_shared<State>(clock)) {}

std::optional<FailureCache::Failure> KernelBuilds::Failure(const Digest& key) {
  if (quarantine_ != nullptr) {
    if (std::optional<Quarantine::Entry> entry = quarantine_->Find(key)) {
      return FailureCache::Failure{entry->ToStatus(), entry->tenant};
    }
  }
  return state_->failures.Find(key);
}

bool KernelBuilds::ForgetFailure(const Digest& key) {
  bool held = state_->failures.Forget(key);
  {
    MutexLock lock(&state_->mutex);
    held = state_->killers.erase(key) > 0 || held;
  }
  return (quarantine_ != nullptr && quarantine_->Forget(key)) || held;
}

int64_t KernelBuilds::ForgetFailures(const std::vector<Digest>& keys, bool all) {
  if (all) {
    {
      MutexLock lock(&state_->mutex);
      state_->killers.clear();
    }
    return state_->failures.ForgetAll() + (quarantine_ == nullptr ? 0 : quarantine_->ForgetAll());
  }
  int64_t known = 0;
  for (const Digest& key : keys) known += ForgetFailure(key) ? 1 : 0;
  return known;
}

KernelBuilds::Claim::Claim(KernelBuilds* builds, const Digest& key,
                           std::shared_ptr<const CompileTicket> ticket, bool from_beside)
    : builds_(builds), key_(key), ticket_(std::move(ticket)), from_beside_(from_beside) {}

KernelBuilds::Claim::Claim(Claim&& other) noexcept
    : builds_(std::exchange(other.builds_, nullptr)),
      key_(other.key_),
      ticket_(std::move(other.ticket_)),
      from_beside_(other.from_beside_),
      wanted_(other.wanted_) {}

KernelBuilds::Claim::~Claim() {
  if (builds_ == nullptr) return;
  Abandon();
  builds_->Release(key_, ticket_.get());
}

void KernelBuilds::Claim::Abandon() {
  if (std::exchange(wanted_, false)) builds_->Abandon(key_, ticket_.get(), from_beside_);
}

void KernelBuilds::Claim::RetireFailure() const { builds_->RetireFailure(key_, ticket_.get()); }

KernelBuilds::Claim KernelBuilds::ClaimOn(const Digest& key, Build* build, bool from_beside) {
  ++build->claims;
  ++build->wanted;
  if (from_beside) ++*build->beside;
  return Claim(this, key, build->ticket, from_beside);
}

// A build that was cancelled or could not be tried has no result: the next caller starts anew.
KernelBuilds::Build* KernelBuilds::FindLive(const Digest& key) {
  auto it = builds_.find(key);
  if (it == builds_.end() || it->second.wanted == 0) return nullptr;
  if (!it->second.ticket->IsDone()) return &it->second;
  const absl::Status ended = it->second.ticket->Wait(CancelToken()).status();
  return ended.ok() || IsKernelsFault(ended) ? &it->second : nullptr;
}

absl::StatusOr<KernelBuilds::Started> KernelBuilds::Start(
    const CompileJob& job, const std::function<std::shared_ptr<const KernelArtifact>()>& stored,
    const WorkOwner& owner) {
  // The store is read without the lock, because it may read a disk. A build is published before its
  // last claim ends, so a missing kernel stays missing unless a build was released meanwhile.
  for (std::optional<int64_t> released;;) {
    {
      MutexLock lock(&mutex_);
      if (Build* live = FindLive(job.key)) {
        return Started(ClaimOn(job.key, live, owner.tenant != live->tenant));
      }
      if (released == released_) return Begin(job, owner);
      released = released_;
    }
    if (std::shared_ptr<const KernelArtifact> kernel = stored()) return Started(std::move(kernel));
  }
}

bool KernelBuilds::HasKilledTwo(const Digest& key, const absl::Status& why, State* state) {
  constexpr size_t kMostKillers = 4096;
  const int lost = WorkersLostTo(why);
  if (lost == 0 && !why.ok()) return false;
  MutexLock lock(&state->mutex);
  const bool killed_before = state->killers.erase(key) > 0;
  if (lost == 0) return false;
  if (lost > 1 || killed_before) return true;
  if (state->killers.size() >= kMostKillers) state->killers.erase(state->killers.begin());
  state->killers.insert(key);
  return false;
}

absl::StatusOr<KernelBuilds::Started> KernelBuilds::Begin(const CompileJob& job,
                                                          const WorkOwner& owner) {
  if (std::optional<FailureCache::Failure> failure = Failure(job.key)) return failure->why;
  auto on_done = [state = state_, key = job.key, tenant = std::string(TenantOfKey(job.full_key)),
                  ttl = failure_ttl_, quarantine = quarantine_,
                  &logger = logger_](const CompileResult& result) {
    const absl::Status& why = result.status();
    if (quarantine != nullptr && HasKilledTwo(key, why, state.get())) {
      absl::Status kept = quarantine->Add(key, Message(why), tenant);
      logger.Warning("kernel_quarantined", {{"key", key.ToHex()},
                                            {"reason", Message(why)},
                                            {"not_kept", kept.ok() ? "" : Message(kept)}});
    } else if (IsKernelsFault(why)) {
      state->failures.Remember(key, {why, tenant}, ttl);
    }
  };
  Build build;
  build.cancel = std::make_shared<CancelToken>();
  build.tenant = owner.tenant;
  // A build that another tenant also wants is not displaced.
  auto may_go = [beside = build.beside] { return *beside == 0; };
  ASSIGN_OR_RETURN(build.ticket, workers_.Submit(job, build.cancel, on_done, owner, may_go));
  Build& placed = builds_[job.key] = std::move(build);
  return Started(ClaimOn(job.key, &placed, /*from_beside=*/false));
}

void KernelBuilds::Abandon(const Digest& key, const CompileTicket* ticket, bool from_beside) {
  MutexLock lock(&mutex_);
  auto it = builds_.find(key);
  if (it == builds_.end() || it->second.ticket.get() != ticket) return;
  if (from_beside) --*it->second.beside;
  if (--it->second.wanted == 0 && !ticket->IsDone()) it->second.cancel->Cancel();
}

void KernelBuilds::Release(const Digest& key, const CompileTicket* ticket) {
  MutexLock lock(&mutex_);
  auto it = builds_.find(key);
  if (it == builds_.end() || it->second.ticket.get() != ticket) return;
  if (--it->second.claims > 0) return;
  builds_.erase(it);
  ++released_;
}

// It has published nothing: `released_` does not count it.
void KernelBuilds::RetireFailure(const Digest& key, const CompileTicket* ticket) {
  if (!ticket->IsDone() || !IsKernelsFault(ticket->Wait(CancelToken()).status())) return;
  MutexLock lock(&mutex_);
  auto it = builds_.find(key);
  if (it != builds_.end() && it->second.ticket.get() == ticket) builds_.erase(it);
}

std::optional<KernelBuilds::Claim> KernelBuilds::Join(const Digest& key) {
  MutexLock lock(&mutex_);
  Build* live = FindLive(key);
  if (live == nullptr) return std::nullopt;
  return ClaimOn(key, live, /*from_beside=*/false);
}

}  // namespace fusion
