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

/// A plan that memory has, and the disk could not be given.
struct UnwrittenPlan {
  std::vector<Digest> kernels;  // that were to be written with it
  std::string tenant;           // who is charged
  std::string reason;           // of the last try
  int refusals = 0;             // tries when others could be written

  /// False: it is this plan that is refused, and it is not tried again. More than one try, because
  /// room may come just after one that failed for want of it.
  bool may_pass() const { return refusals < 3; }
};

/// Plans that could not be written when they were made, and a thread that tries again: a disk that
/// is full for a minute must not cost what is made in it at the next restart. Thread-safe.
class LateWriter {
 public:
  enum class Now : uint8_t { kDone, kLater };
  struct Disk {
    /// Whether anything can be written; asked before each round. Quick.
    std::function<bool()> is_writable;
    /// Whether memory has the plan still. Quick.
    std::function<bool(const Digest& plan)> is_kept;
    /// kDone: the plan is written, or memory has it no longer. kLater: `facts` says why.
    std::function<Now(const Digest& plan, UnwrittenPlan* facts)> write;
  };

  /// `disk` is called on the thread of this, `pause` after the last time.
  LateWriter(Disk disk, Nanoseconds pause) : disk_(std::move(disk)), pause_(pause) {}
  /// Tries a last time, for two seconds at most and what is under way.
  ~LateWriter();

  /// Of one that is there already the kernels of both count, and who was charged first is.
  void Add(const Digest& plan, UnwrittenPlan facts);
  void Remove(const Digest& plan);
  /// Forgets those that memory has no longer; done before each round too.
  void Prune();
  /// Nothing: the plan is written, or not known here.
  std::optional<UnwrittenPlan> Find(const Digest& plan) const;
  /// As Find's; empty: the plan is written, or not known here.
  std::string ReasonOf(const Digest& plan) const;
  /// Whether it knows of none.
  bool empty() const;
  /// Plans that will be tried again.
  int64_t waiting() const;

 private:
  struct Entry {
    UnwrittenPlan facts;
    uint64_t number = 0;  // another one: it was added anew
  };
  using Numbered = std::vector<std::pair<Digest, uint64_t>>;
  // Some 100 bytes each and 32 a kernel. Chosen: memory is full of plans before.
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
  std::thread thread_ ABSL_GUARDED_BY(mutex_);  // begins with the first plan
};

}  // namespace fusion
