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
  int spare_threads = 0;  // more, for tenants with fewer calls on threads than that
  int64_t queue = 256;    // calls that may wait while all threads are busy
  int64_t inflight_bytes = int64_t{256} << 20;
  /// Answers that are being sent in parts: their callers may read slowly.
  int64_t streams = 1024;
  TenantLimits tenants;
};

/// Why calls are refused.
enum class Refused : uint8_t { kCalls, kBytes, kRate, kStreams, kDisplaced, kDeadline, kUnread };
inline constexpr std::array kRefusedReasons = {
    Refused::kCalls,     Refused::kBytes,    Refused::kRate,  Refused::kStreams,
    Refused::kDisplaced, Refused::kDeadline, Refused::kUnread};
/// "calls", "bytes", "rate", "streams", "displaced", "deadline", "unread".
std::string_view RefusedName(Refused reason);

/// Decides which calls are let in, and runs their work on a fixed number of threads.
///
///   ASSIGN_OR_RETURN(Admission::Pass pass, admission.Enter(owner, request_bytes, method));
///   ... answered, if that takes no thread ...
///   RETURN_IF_ERROR(admission.TakeTurn(&pass, time_left));
///   admission.Run(pass, [] { ... }, [](absl::Status why) { ... });
///
/// All bounds are shared fairly between tenants. A tenant alone may use all of them. Of several,
/// none takes more than half of the bytes or of the streams (one with no more than an eighth of
/// them is let in though others use them all: there are half as many more for that); threads go to
/// the tenant with the fewest calls under way; and when everything is full the newest waiting call
/// of the tenant with the most of them gives its place to one with fewer. Background calls wait for
/// interactive ones. Whoever is refused is told at once, with the time after which to try again
/// (kRetryAfter), and never with Unavailable, which clients take for a reason to ask elsewhere.
///
/// A task may wait (for planning, for compiling): when all threads do, calls that need a thread
/// wait behind them, but for those of tenants that spare threads serve. The wait of each is
/// bounded: by the caller's deadline, by the limits of planning and of the worker pool.
/// Thread-safe. `clock` outlives it.
class Admission {
 public:
  /// A call that was let in, until the end of its life. Not longer than the Admission.
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

  /// ResourceExhausted, with kRetryAfter: too many bytes in the calls under way, or more calls of
  /// the tenant than its rate allows. Unavailable: closed.
  absl::StatusOr<Pass> Enter(const WorkOwner& owner, int64_t bytes, RpcMethod method);

  /// A place among those that run or wait. ResourceExhausted, with kRetryAfter: there is none; or,
  /// where calls wait for a thread before it, that wait and the work of a call of its method would
  /// take more than half of `time_left`. What it may have to wait for later (OthersWorked) is not
  /// reckoned with: that is done for others too, and helps a call that comes again.
  absl::Status TakeTurn(Pass* pass, Nanoseconds time_left);

  /// Runs the first task of a call that has its turn soon, on another thread; or calls `refused`,
  /// on any thread, if it has to give its place to another tenant's, or once `over` (may be empty;
  /// any thread) says that nobody waits for it any more. Unavailable: stopped.
  absl::Status Run(const Pass& pass, std::function<void()> task,
                   std::function<void(const absl::Status&)> refused,
                   std::function<absl::Status()> over = nullptr);
  /// Runs a further task of a call that has begun; it finds room. The call has no other task under
  /// way. Unavailable: stopped.
  absl::Status Resume(const Pass& pass, std::function<void()> task) {
    return threads_.SubmitFor(pass.owner_, {std::move(task)});
  }

  /// Of the time of the task that runs on this thread, so much was spent waiting for work that goes
  /// on without it.
  static void OthersWorked(Nanoseconds took);

  /// The call's work is done: another may have its place, however long its answer is being read.
  void EndTurn(Pass* pass);

  /// From now on the call sends its answer in parts, at the pace of its reader: it is counted with
  /// the streams, and makes room for another call. ResourceExhausted, with kRetryAfter: too many
  /// do.
  absl::Status BeginStream(Pass* pass);

  /// The call holds so many bytes from now on, for what it takes in after it was let in.
  /// ResourceExhausted: that is more than its tenant's share, as in Enter; then it holds what it
  /// did.
  absl::Status Hold(Pass* pass, int64_t bytes);

  /// Lets nobody in any more.
  void Close() { closed_ = true; }

  /// Runs what waits, joins the threads.
  void Stop() { threads_.Stop(); }

  /// Now; calls include streams.
  int64_t calls() const;
  int64_t streams() const;
  int64_t bytes() const;
  int64_t byte_limit() const { return limits_.inflight_bytes; }
  int64_t queued() const { return static_cast<int64_t>(threads_.queued()); }
  /// A call that was let in, and refused by others.
  void CountRefused(Refused reason) {
    refused_[static_cast<size_t>(reason)].fetch_add(1, std::memory_order_relaxed);
  }
  /// Since the start.
  int64_t refused(Refused reason) const {
    return refused_[static_cast<size_t>(reason)].load(std::memory_order_relaxed);
  }
  /// Bytes in flight by tenant, of those that have any.
  std::map<std::string, int64_t> tenant_bytes() const;

 private:
  // What a tenant has under way, and what its rate still allows.
  struct Tenant {
    int64_t calls = 0;
    int64_t streams = 0;
    int64_t bytes = 0;
    double tokens = 0;         // calls it may make now
    Nanoseconds filled_at{0};  // when `tokens` was right
  };

  // The call is refused though it was let in: its tenant may make another one.
  void GiveTokenBack(const std::string& name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Refuse(Refused reason, absl::Status status, Nanoseconds retry_after);
  Tenant& TenantOf(const std::string& name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  using Tenants = std::map<std::string, Tenant>;
  Tenants::iterator ForgetIdle(Tenants::iterator it) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Forget(const std::string& name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::optional<Nanoseconds> TakeToken(const std::string& name, Tenant* tenant)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Refill(const std::string& name, Tenant* tenant) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether the tenant may use `more` of a bound, of which `total` is in use.
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
  // Means of what first tasks took of late; 0: none was run.
  Nanoseconds thread_time_ ABSL_GUARDED_BY(mutex_){0};
  std::array<Nanoseconds, kRpcMethods.size()> own_time_ ABSL_GUARDED_BY(mutex_){};  // by method
  Tenants tenants_ ABSL_GUARDED_BY(mutex_);
  std::string looked_at_ ABSL_GUARDED_BY(mutex_);  // by Forget, next
  int64_t calls_ ABSL_GUARDED_BY(mutex_) = 0;      // without streams
  int64_t turns_ ABSL_GUARDED_BY(mutex_) = 0;      // of the calls, those that take or want a thread
  int64_t streams_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  ThreadPool threads_;
};

}  // namespace fusion
