#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <variant>

#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "core/cache/failure_cache.h"
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
/// be found here until it is in the store. Remembers for a while what failed.
///
///   ASSIGN_OR_RETURN(KernelBuilds::Started started, builds.Start(job, lookup));
///   ... a claim: claim.ticket().Wait(cancel) ...
///   ... publish it; only then let go of the claim ...
///
/// Thread-safe. `workers` and `clock` outlive it.
class KernelBuilds {
 public:
  /// Keeps a build findable as long as it lives; not longer than the KernelBuilds.
  class Claim {
   public:
    Claim(Claim&& other) noexcept;
    Claim& operator=(Claim&&) = delete;
    ~Claim();
    const CompileTicket& ticket() const { return *ticket_; }

   private:
    friend class KernelBuilds;
    Claim(KernelBuilds* builds, const Digest& key, std::shared_ptr<const CompileTicket> ticket);
    KernelBuilds* builds_;
    Digest key_;
    std::shared_ptr<const CompileTicket> ticket_;
  };

  KernelBuilds(WorkerPool& workers, Nanoseconds failure_ttl, const Clock& clock);

  /// A kernel that is there, or else a claim on its build.
  using Started = std::variant<std::shared_ptr<const KernelArtifact>, Claim>;
  /// Joins the build of `job.key` or starts it, unless `stored` finds the kernel: whoever published
  /// it may have done so after the caller looked. Fails at once with what WorkerPool::Submit says,
  /// or with the remembered status of a recent failure. Calls `stored` under its lock.
  absl::StatusOr<Started> Start(
      const CompileJob& job, const std::function<std::shared_ptr<const KernelArtifact>()>& stored);

  /// The build of a kernel that is under way or not yet published; null if there is none.
  std::shared_ptr<const CompileTicket> Find(const Digest& key) const;
  /// Why a kernel failed lately.
  std::optional<absl::Status> Failure(const Digest& key) { return state_->failures.Find(key); }
  /// Tries kernels again that failed lately: these, or all. How many there were.
  int64_t ForgetFailures(const std::vector<Digest>& keys, bool all) {
    if (all) return state_->failures.ForgetAll();
    int64_t known = 0;
    for (const Digest& key : keys) known += state_->failures.Forget(key);
    return known;
  }

 private:
  struct Build {
    std::shared_ptr<const CompileTicket> ticket;
    int claims = 0;
  };
  void Release(const Digest& key);

  // Jobs may end after this object is gone.
  struct State {
    explicit State(const Clock& clock) : failures(/*limit=*/4096, clock) {}
    FailureCache failures;
  };

  WorkerPool& workers_;
  const Nanoseconds failure_ttl_;
  const std::shared_ptr<State> state_;
  mutable Mutex mutex_;
  std::map<Digest, Build> builds_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace fusion
