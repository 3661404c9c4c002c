#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/base/clock.h"
#include "core/base/hash.h"
#include "core/base/status.h"
#include "core/base/threads/mutex.h"

namespace fusion {

/// A plan that is in memory but could not be written to disk.
struct UnwrittenPlan {
  std::vector<Digest> kernels;  // to be written with it
  std::string tenant;           // charged for it
  std::string reason;           // of the last failure
  int refusals = 0;             // failures while the disk was writable for other plans

  /// False after three refusals: the plan itself is the cause, and it is not retried. More than
  /// one, because space may have become free just after a failure.
  bool may_pass() const { return refusals < 3; }
};

/// Retries writes of plans on a background thread, so that plans made while the disk was full for a
/// minute survive the next restart. The thread starts with the first plan. Thread-safe.
class LateWriter {
 public:
  enum class Now : uint8_t { kDone, kLater };
  struct Disk {
    /// True if the disk can be written. Called before each round; must be fast.
    std::function<bool()> is_writable;
    /// True if the plan is still in memory. Must be fast.
    std::function<bool(const Digest& plan)> is_kept;
    /// Tries to write a plan. kDone: written, or no longer in memory. kLater: failed; it has
    /// updated `reason` and `refusals` of `facts`.
    std::function<Now(const Digest& plan, UnwrittenPlan* facts)> write;
  };

  /// `write` is called on the background thread; rounds begin `pause` after the last one.
  LateWriter(Disk disk, Nanoseconds pause) : disk_(std::move(disk)), pause_(pause) {}
  /// Makes a last round: no write starts after two seconds, and a running one is completed.
  ~LateWriter();

  /// Adds a plan to retry. If it is already known, the kernels are united and the tenant is kept.
  /// Ignored if 65536 plans wait already.
  void Add(const Digest& plan, UnwrittenPlan facts);
  void Remove(const Digest& plan);
  /// Removes plans that are no longer in memory. Each round does it first.
  void Prune();
  /// nullopt: the plan was written, or is unknown.
  std::optional<UnwrittenPlan> Find(const Digest& plan) const;
  /// UnwrittenPlan::reason; empty: the plan was written, or is unknown.
  std::string ReasonOf(const Digest& plan) const;
  /// True if no plan is known, including those that are not retried.
  bool empty() const;
  /// The number of plans that will be retried.
  int64_t waiting() const;

 private:
  struct Entry {
    UnwrittenPlan facts;
    uint64_t number = 0;  // changes when the plan is added again
  };
  using Numbered = std::vector<std::pair<Digest, uint64_t>>;
  // Some 100 bytes each and 32 per kernel. Chosen so that memory is full of plans before.
  static constexpr size_t kMost = 1 << 16;

  void Work();
  bool AwaitRound();
  void TryAll(const std::function<bool()>& may_go_on);
  bool IsStopping() const;
  Numbered All() const;
  Entry* FindLocked(const Digest& plan, uint64_t number) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Disk disk_;
  const Nanoseconds pause_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::map<Digest, Entry> plans_ ABSL_GUARDED_BY(mutex_);
  uint64_t added_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_ ABSL_GUARDED_BY(mutex_);  // started with the first plan
};

}  // namespace fusion
