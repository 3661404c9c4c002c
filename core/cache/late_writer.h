#pragma once

#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "core/base/clock.h"
#include "core/base/hash.h"
#include "core/base/mutex.h"
#include "core/base/status.h"

namespace fusion {

/// A plan that memory has, and the disk could not be given.
struct UnwrittenPlan {
  std::vector<Digest> kernels;  // that were to be written with it
  std::string tenant;           // who is charged
  std::string reason;           // of the last try
};

/// Plans that could not be written when they were made, and a thread that tries again: a disk that
/// was full for a minute must not cost what was made in it at the next restart. Thread-safe.
class LateWriter {
 public:
  /// Of each round of tries; doubles from one to the other while nothing can be written.
  struct Pauses {
    Nanoseconds first = std::chrono::seconds(1);
    Nanoseconds most = std::chrono::minutes(1);
  };
  /// OK: it is written, or need not be any more.
  using Write = std::function<absl::Status(const Digest& plan, const UnwrittenPlan& facts)>;

  /// `write` is called on the thread of this.
  LateWriter(Write write, const Pauses& pauses) : write_(std::move(write)), pauses_(pauses) {}
  /// Ends after the try that is under way.
  ~LateWriter();

  void Add(const Digest& plan, UnwrittenPlan facts);
  void Remove(const Digest& plan);
  /// Why the plan is not written; empty: nothing is known of it here.
  std::string ReasonOf(const Digest& plan) const;
  int64_t size() const;

 private:
  // Some 100 bytes each and 32 a kernel. Chosen: memory is full of plans before.
  static constexpr size_t kMost = 1 << 16;

  void Work();
  bool AwaitRound(Nanoseconds pause, std::map<Digest, UnwrittenPlan>* plans);
  bool TryAll(const std::map<Digest, UnwrittenPlan>& plans);

  const Write write_;
  const Pauses pauses_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::map<Digest, UnwrittenPlan> plans_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_ ABSL_GUARDED_BY(mutex_);  // begins with the first plan
};

}  // namespace fusion
