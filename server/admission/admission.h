#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "core/base/clock.h"
#include "core/base/threads/thread_pool.h"
#include "server/access/rpc_record.h"
#include "server/admission/tenant_limits.h"

namespace fusion {

struct AdmissionLimits {
  int threads = 64;
  int spare_threads = 0;  // extra threads, for tenants with fewer than this number of running calls
  int64_t queue = 256;    // calls that may wait while all threads are busy
  int64_t inflight_bytes = int64_t{256} << 20;  // held by all calls together
  int64_t streams = 1024;                       // calls that stream their answers
  TenantLimits tenants;
};

/// Why a call was refused.
enum class Refused : uint8_t {
  kCalls,      // threads and queue are full
  kBytes,      // inflight_bytes, or the tenant's share of it
  kRate,       // the tenant's calls per second
  kStreams,    // streams, or the tenant's share of it
  kDisplaced,  // its place in the queue went to a tenant with fewer calls
  kDeadline,   // its deadline is too near
  kUnread      // too many bytes of unread answers (CallTracker)
};
inline constexpr std::array kRefusedReasons = {
    Refused::kCalls,     Refused::kBytes,    Refused::kRate,  Refused::kStreams,
    Refused::kDisplaced, Refused::kDeadline, Refused::kUnread};
/// "calls", "bytes", "rate", "streams", "displaced", "deadline", "unread".
std::string_view RefusedName(Refused reason);

/// Admits calls and runs their work on a fixed number of threads.
///
///   ASSIGN_OR_RETURN(Admission::Pass pass, admission.Enter(owner, request_bytes, method));
///   ... answer now, if that takes no thread ...
///   RETURN_IF_ERROR(admission.TakeTurn(&pass, time_left));
///   RETURN_IF_ERROR(admission.Run(pass, [] { ... }, [](absl::Status why) { ... }));
///
/// Limits are shared fairly between tenants. A single tenant may use all of them. With several:
/// - A tenant gets at most half of the bytes and of the streams, but its first call may take more.
///   A tenant that uses at most an eighth is admitted even if others use everything, up to 1.5
///   times the limit.
/// - Threads go to the tenant with the fewest running calls.
/// - When the queue is full, the newest waiting call of the tenant with the most waiting calls is
///   displaced by a call of a tenant with fewer.
///
/// A call may exceed a limit while there is no other. Background calls wait for interactive ones. A
/// refused call fails at once with ResourceExhausted and the time after which to retry
/// (kRetryAfter). It never gets Unavailable, which makes clients try another server.
///
/// A task may block (on planning, on compiling). When all threads do, further calls wait, except
/// calls of tenants that spare threads serve. The wait is bounded by the caller's deadline and by
/// the limits of planning and of the worker pool. Thread-safe. `clock` must outlive it.
class Admission {
 public:
  /// An admitted call. Its destructor releases what the call holds. The Admission must outlive it.
  class Pass {
   public:
    Pass(Pass&& other) noexcept;
    Pass& operator=(Pass&&) = delete;
    ~Pass();

   private:
    friend class Admission;
    Pass(Admission* admission, WorkOwner owner, int64_t bytes, RpcMethod method)
        : admission_(admission), owner_(std::move(owner)), bytes_(bytes), method_(method) {}
    Admission* admission_;
    WorkOwner owner_;
    int64_t bytes_;
    RpcMethod method_;
    bool has_turn_ = false;
    bool is_stream_ = false;
  };

  explicit Admission(const AdmissionLimits& limits, const Clock& clock = Clock::Real());

  /// Admits a call that holds `bytes`. ResourceExhausted with kRetryAfter: the byte limit, or the
  /// tenant's share of it, or the tenant's rate is exceeded. Unavailable: closed.
  absl::StatusOr<Pass> Enter(const WorkOwner& owner, int64_t bytes, RpcMethod method);

  /// Reserves a place among the running and waiting calls; required before Run. ResourceExhausted
  /// with kRetryAfter: no place is free and no waiting call can be displaced; or calls are waiting,
  /// and the expected wait plus the mean time of a call of this method exceeds half of `time_left`.
  /// That mean excludes time spent waiting for shared work (OthersWorked), because a retried call
  /// benefits from that work.
  absl::Status TakeTurn(Pass* pass, Nanoseconds time_left);

  /// Queues the first task of a call after TakeTurn. After OK, either `task` is called, on another
  /// thread, or `refused`, on any thread: the queue was full, and a call of another tenant
  /// displaced this one (ResourceExhausted with kRetryAfter) or `over` returned an error. `over`
  /// tells whether a caller still waits. It may be empty; it runs on any thread under a lock of the
  /// pool, so it must be quick and must not call the Admission. Unavailable: stopped; neither is
  /// called.
  absl::Status Run(const Pass& pass, std::function<void()> task,
                   std::function<void(const absl::Status&)> refused,
                   std::function<absl::Status()> over = nullptr);
  /// Queues a further task of a call whose first task has run; it is never refused for lack of
  /// room. At most one task of a call at a time. Unavailable: stopped.
  absl::Status Resume(const Pass& pass, std::function<void()> task) {
    return threads_.SubmitFor(pass.owner_, {std::move(task)});
  }

  /// Called by a task: it has spent `took` waiting for work that continues without it.
  static void OthersWorked(Nanoseconds took);

  /// Gives up the place of TakeTurn: the work is done, though the answer may not be read yet.
  void EndTurn(Pass* pass);

  /// Counts the call as a stream from now on, because it sends its answer at the pace of its
  /// reader. Gives up the place of TakeTurn. OK if it is a stream already. ResourceExhausted with
  /// kRetryAfter: the stream limit, or the tenant's share of it, is exceeded.
  absl::Status BeginStream(Pass* pass);

  /// Sets the bytes that the call holds, in place of the previous number. ResourceExhausted with
  /// kRetryAfter: more than the limit or the tenant's share allows, as in Enter; then the number
  /// stays as it was. Never fails for a smaller number.
  absl::Status Hold(Pass* pass, int64_t bytes);

  /// Makes Enter refuse all calls from now on.
  void Close() { closed_ = true; }

  /// Runs the queued tasks, then joins the threads.
  void Stop() { threads_.Stop(); }

  /// Current numbers; calls() includes streams.
  int64_t calls() const;
  int64_t streams() const;
  int64_t bytes() const;
  int64_t byte_limit() const { return limits_.inflight_bytes; }
  int64_t queued() const { return static_cast<int64_t>(threads_.queued()); }
  /// Counts a refusal that another component made after Enter.
  void CountRefused(Refused reason) {
    refused_[static_cast<size_t>(reason)].fetch_add(1, std::memory_order_relaxed);
  }
  /// Number of refusals since the start.
  int64_t refused(Refused reason) const {
    return refused_[static_cast<size_t>(reason)].load(std::memory_order_relaxed);
  }
  /// Held bytes by tenant; tenants with none are left out.
  std::map<std::string, int64_t> tenant_bytes() const;

 private:
  // The running calls of a tenant and its token bucket.
  struct Tenant {
    int64_t calls = 0;
    int64_t streams = 0;
    int64_t bytes = 0;
    double tokens = 0;         // calls that its rate allows now
    Nanoseconds filled_at{0};  // when `tokens` was computed
  };

  // Undoes TakeToken for a call that is refused after Enter.
  void GiveTokenBack(const std::string& name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Refuse(Refused reason, absl::Status status, Nanoseconds retry_after);
  Tenant& TenantOf(const std::string& name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  using Tenants = std::map<std::string, Tenant>;
  Tenants::iterator ForgetIdle(Tenants::iterator it) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Forget(const std::string& name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::optional<Nanoseconds> TakeToken(const std::string& name, Tenant* tenant)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Refill(const std::string& name, Tenant* tenant) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether the tenant may use `more` of `limit` when all tenants use `total`.
  static bool HasRoom(int64_t limit, const Tenant& tenant, int64_t Tenant::*use, int64_t total,
                      int64_t more);
  absl::Status CheckRoom(const WorkOwner& owner, int64_t bytes, Tenant* tenant)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Nanoseconds EstimatedWait(const WorkOwner& owner) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool TryTurn(Pass* pass, int64_t most);
  void NoteTask(RpcMethod method, Nanoseconds took, Nanoseconds others_worked);
  void Release(const Pass& pass);

  const AdmissionLimits limits_;
  const Clock& clock_;
  std::atomic<bool> closed_{false};
  std::array<std::atomic<int64_t>, kRefusedReasons.size()> refused_{};
  mutable Mutex mutex_;
  // Moving averages of the time of first tasks; 0: none has run.
  Nanoseconds thread_time_ ABSL_GUARDED_BY(mutex_){0};
  std::array<Nanoseconds, kRpcMethods.size()> own_time_ ABSL_GUARDED_BY(mutex_){};  // by method
  Tenants tenants_ ABSL_GUARDED_BY(mutex_);
  std::string looked_at_ ABSL_GUARDED_BY(mutex_);  // the tenant that Forget checks next
  int64_t calls_ ABSL_GUARDED_BY(mutex_) = 0;      // without streams
  int64_t turns_ ABSL_GUARDED_BY(mutex_) = 0;      // calls that run or wait for a thread
  int64_t streams_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  ThreadPool threads_;
};

}  // namespace fusion
