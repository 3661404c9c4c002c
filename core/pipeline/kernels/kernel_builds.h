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
#include "core/compile/quarantine.h"
#include "core/compile/worker_pool.h"

namespace fusion {

/// True for failures of a kernel itself, which would happen again: it cannot be generated, does not
/// compile, its check refuses it, it kills its worker or runs into a limit. False for a busy or
/// stopping server.
bool IsKernelsFault(const absl::Status& status);

/// True for a kernel's fault that another day may not see: a limit it ran into on a busy machine, a
/// worker that died (which the kernel need not have done).
bool MayPass(const absl::Status& status);

/// The kernels under way: each key is compiled once at a time, however many plans need it, and can
/// be found here until it is in the store. Remembers for a while what failed, and in `quarantine`
/// (may be null) what killed its workers.
///
///   ASSIGN_OR_RETURN(KernelBuilds::Started started, builds.Start(job, lookup));
///   ... a claim: claim.ticket().Wait(cancel) ...
///   ... publish it; only then let go of the claim ...
///
/// Thread-safe. `workers`, `clock` and `logger` outlive it, and `quarantine` the jobs of `workers`.
class KernelBuilds {
 public:
  /// Somebody who wants a build: it is findable as long as he does, unless it was given up or
  /// retired, and once nobody does it is cancelled. Not longer than the KernelBuilds.
  class Claim {
   public:
    Claim(Claim&& other) noexcept;
    Claim& operator=(Claim&&) = delete;
    ~Claim();
    const CompileTicket& ticket() const { return *ticket_; }
    /// He does not want it any more, though he goes on to read how it ended.
    void Abandon();
    /// If the build has failed: nobody finds it from now on, whoever still has a claim on it.
    void RetireFailure() const;

   private:
    friend class KernelBuilds;
    Claim(KernelBuilds* builds, const Digest& key, std::shared_ptr<const CompileTicket> ticket,
          bool from_beside);
    KernelBuilds* builds_;
    Digest key_;
    std::shared_ptr<const CompileTicket> ticket_;
    bool from_beside_;  // of another tenant than the one that started the build
    bool wanted_ = true;
  };

  KernelBuilds(WorkerPool& workers, Nanoseconds failure_ttl, Quarantine* quarantine, Logger& logger,
               const Clock& clock);

  /// A kernel that is there, or else a claim on its build.
  using Started = std::variant<std::shared_ptr<const KernelArtifact>, Claim>;
  /// Joins the build of `job.key` or starts it, unless `stored` finds the kernel: whoever published
  /// it may have done so after the caller looked. Fails at once with what WorkerPool::Submit says,
  /// or with the remembered status of a recent failure. Where the queue of `workers` is full, a
  /// build that nobody of another tenant wants may lose its place.
  absl::StatusOr<Started> Start(
      const CompileJob& job, const std::function<std::shared_ptr<const KernelArtifact>()>& stored,
      const WorkOwner& owner = {});

  /// Joins the build of a kernel that is under way or not yet published; nullopt if there is none.
  std::optional<Claim> Join(const Digest& key);
  /// Why a kernel is not tried now: it is in quarantine, or failed lately.
  std::optional<FailureCache::Failure> Failure(const Digest& key);
  /// Lets it be tried again; false if nothing was held against it.
  bool ForgetFailure(const Digest& key);
  /// Likewise these, or all. How many there were.
  int64_t ForgetFailures(const std::vector<Digest>& keys, bool all);
  /// Failures that are remembered for a while; those in quarantine are not among them.
  int64_t failures() const { return state_->failures.size(); }

 private:
  struct Build {
    std::shared_ptr<const CompileTicket> ticket;
    std::shared_ptr<CancelToken> cancel;  // once nobody wants it
    std::string tenant;                   // who started it
    int claims = 0;
    // Claims that were not abandoned.
    int wanted = 0;
    // Of those, the ones of other tenants; changed under the mutex.
    std::shared_ptr<std::atomic<int>> beside = std::make_shared<std::atomic<int>>(0);
  };
  // The build of a kernel that a claim may be made on, or null.
  Build* FindLive(const Digest& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Claim ClaimOn(const Digest& key, Build* build, bool from_beside)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Starts a build that is not there, or takes the place of one that FindLive does not see.
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
    // Kernels that have cost a worker, until they are made or forgotten.
    std::set<Digest> killers ABSL_GUARDED_BY(mutex);
  };
  // Whether the kernel has cost two workers by now, since it was made last.
  static bool HasKilledTwo(const Digest& key, const absl::Status& why, State* state);

  WorkerPool& workers_;
  const Nanoseconds failure_ttl_;
  Quarantine* const quarantine_;
  Logger& logger_;
  const std::shared_ptr<State> state_;
  mutable Mutex mutex_;
  std::map<Digest, Build> builds_ ABSL_GUARDED_BY(mutex_);
  int64_t released_ ABSL_GUARDED_BY(mutex_) = 0;  // builds that are no longer there
};

}  // namespace fusion
