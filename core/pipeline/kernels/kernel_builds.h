#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <variant>

#include "core/base/clock.h"
#include "core/base/threads/cancel.h"
#include "core/base/threads/mutex.h"
#include "core/cache/memory/failure_cache.h"
#include "core/compile/kernel_failure.h"
#include "core/compile/quarantine.h"
#include "core/compile/worker_pool.h"

namespace fusion {

/// Kernel builds under way. Concurrent builds of one key are merged, and a build can be joined
/// until its kernel is published. Remembers failures for a while, and in `quarantine` (may be null)
/// the kernels that killed two workers.
///
///   ASSIGN_OR_RETURN(KernelBuilds::Started started, builds.Start(job, lookup));
///   ... if it is a claim: claim.ticket().Wait(cancel) ...
///   ... publish the kernel; destroy the claim only after that ...
///
/// Thread-safe. `workers`, `clock` and `logger` outlive it, and `quarantine` outlives the jobs of
/// `workers`.
class KernelBuilds {
 public:
  /// A reference to a build. A build can be joined while it has claims, unless it was cancelled or
  /// retired. When all its claims are abandoned or destroyed, it is cancelled. The KernelBuilds
  /// outlives its claims.
  class Claim {
   public:
    Claim(Claim&& other) noexcept;
    Claim& operator=(Claim&&) = delete;
    ~Claim();
    const CompileTicket& ticket() const { return *ticket_; }
    /// Gives up interest in the build; the ticket can still be read.
    void Abandon();
    /// If the build has failed: later callers no longer join it, whatever claims still exist.
    void RetireFailure() const;

   private:
    friend class KernelBuilds;
    Claim(KernelBuilds* builds, const Digest& key, std::shared_ptr<const CompileTicket> ticket,
          bool from_beside);
    KernelBuilds* builds_;
    Digest key_;
    std::shared_ptr<const CompileTicket> ticket_;
    bool from_beside_;  // its tenant is not the one that started the build
    bool wanted_ = true;
  };

  KernelBuilds(WorkerPool& workers, Nanoseconds failure_ttl, Quarantine* quarantine, Logger& logger,
               const Clock& clock);

  /// A finished kernel, or a claim on its build.
  using Started = std::variant<std::shared_ptr<const KernelArtifact>, Claim>;
  /// Joins the build of `job.key` or starts it, unless `stored` finds the kernel (it may have been
  /// published after the caller looked). `stored` may block; it is called without locks. Errors, at
  /// once: those of WorkerPool::Submit, or the status of a remembered failure. If the queue of
  /// `workers` is full, a queued build without claims of other tenants may lose its place.
  absl::StatusOr<Started> Start(
      const CompileJob& job, const std::function<std::shared_ptr<const KernelArtifact>()>& stored,
      const WorkOwner& owner = {});

  /// Joins a build that is under way or not yet published; nullopt if there is none.
  std::optional<Claim> Join(const Digest& key);
  /// Why a kernel would not be tried now: it is quarantined, or failed lately. Nullopt: it would be
  /// tried.
  std::optional<FailureCache::Failure> Failure(const Digest& key);
  /// Lets a kernel be tried again; false if no failure was remembered.
  bool ForgetFailure(const Digest& key);
  /// The same for these kernels, or for all. Returns the number of forgotten failures.
  int64_t ForgetFailures(const std::vector<Digest>& keys, bool all);
  /// Remembered failures; quarantined kernels are not counted.
  int64_t failures() const { return state_->failures.size(); }

 private:
  struct Build {
    std::shared_ptr<const CompileTicket> ticket;
    std::shared_ptr<CancelToken> cancel;  // cancelled when `wanted` becomes 0
    std::string tenant;                   // that started it
    int claims = 0;
    // Claims that were not abandoned.
    int wanted = 0;
    // Those of `wanted` that belong to other tenants; changed under the mutex.
    std::shared_ptr<std::atomic<int>> beside = std::make_shared<std::atomic<int>>(0);
  };
  // The build of a kernel if it can be joined, else null.
  Build* FindLive(const Digest& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Claim ClaimOn(const Digest& key, Build* build, bool from_beside)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Starts a build, which replaces one that FindLive does not return.
  absl::StatusOr<Started> Begin(const CompileJob& job, const WorkOwner& owner)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Abandon(const Digest& key, const CompileTicket* ticket, bool from_beside);
  void Release(const Digest& key, const CompileTicket* ticket);
  void RetireFailure(const Digest& key, const CompileTicket* ticket);

  // Jobs may end after this object is gone.
  struct State {
    explicit State(const Clock& clock) : failures(/*limit=*/4096, clock) {}
    FailureCache failures;
    Mutex mutex;
    // Kernels that have killed one worker, until one is made or forgotten.
    std::set<Digest> killers ABSL_GUARDED_BY(mutex);
  };
  // Counts the workers that this job killed; true if the kernel has killed two since it was last
  // made.
  static bool HasKilledTwo(const Digest& key, const absl::Status& why, State* state);

  WorkerPool& workers_;
  const Nanoseconds failure_ttl_;
  Quarantine* const quarantine_;
  Logger& logger_;
  const std::shared_ptr<State> state_;
  mutable Mutex mutex_;
  std::map<Digest, Build> builds_ ABSL_GUARDED_BY(mutex_);
  int64_t released_ ABSL_GUARDED_BY(mutex_) = 0;  // number of builds that were removed
};

}  // namespace fusion
