#pragma once

#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/base/clock.h"
#include "core/base/threads/cancel.h"
#include "core/base/threads/fair_queue.h"
#include "core/base/threads/job.h"
#include "core/base/threads/mutex.h"
#include "core/pipeline/requests/dump.h"

namespace fusion {

/// Stages in which a request waits for work that continues without it.
inline constexpr std::string_view kCompileStage = "compile";
inline constexpr std::string_view kSearchStage = "search";

/// Receives the progress of a request: a stage begins, or `done` of its `total` steps are finished
/// (0 of 0 for stages without steps). Called on the thread that waits for the answer; must return
/// quickly.
class StageObserver {
 public:
  virtual ~StageObserver() = default;
  virtual void OnStage(std::string_view stage, int done, int total) = 0;
  /// Whether to report also the progress of work that runs on other threads. The waiting thread
  /// must then poll, which takes CPU time from that work if many threads wait.
  virtual bool FollowsOthers() const { return true; }
};

/// The current stage of work on another thread, for its waiters. Thread-safe.
class StageWatch final : public StageObserver {
 public:
  void OnStage(std::string_view stage, int /*done*/, int /*total*/) override {
    MutexLock lock(&mutex_);
    stage_ = stage;
  }
  /// Empty until the first stage has begun.
  std::string stage() const {
    MutexLock lock(&mutex_);
    return stage_;
  }

 private:
  mutable Mutex mutex_;
  std::string stage_ ABSL_GUARDED_BY(mutex_);
};

/// State that the stages of one request share. Not thread-safe; refers to its parts.
struct StageContext {
  const CancelToken& cancel;
  const Clock& clock;
  /// Requested texts.
  DumpKinds wanted = {};
  /// Times and texts of the stages so far, in order.
  std::vector<StageTime> times = {};
  std::vector<Dump> dumps = {};
  /// Null: progress is not reported.
  StageObserver* observer = nullptr;
  /// Owner of the request.
  WorkOwner owner = {};
  /// Limits the current stages, which must be pure then; null: no limits.
  Job* job = nullptr;
};

/// Runs one stage of a request, a function from value to value: checks for cancellation, notifies
/// the observer, runs, verifies the result if its type has Verify() (Internal if that fails),
/// records the time, and dumps the result if wanted. Nothing else does these between stages.
///
///   ASSIGN_OR_RETURN(Graph graph, RunStage(context, "import", [&] { return ImportGraph(...); }));
template <typename Run>
auto RunStage(StageContext& context, std::string_view name, Run run) -> decltype(run()) {
  RETURN_IF_ERROR(context.cancel.Check());
  if (context.observer != nullptr) context.observer->OnStage(name, 0, 0);
  Nanoseconds start = context.clock.Now();
  auto whole = [&]() -> decltype(run()) {
    auto result = run();
    if constexpr (requires { static_cast<absl::Status>(Verify(*result)); }) {
      if (result.ok()) {
        absl::Status sound = Verify(*result);
        if (!sound.ok()) return Internal("stage ", name, " gave a bad result: ", Message(sound));
      }
    }
    context.times.push_back({std::string(name), context.clock.Now() - start});
    if constexpr (requires { AppendDumps(*result, context.wanted, &context.dumps); }) {
      if (result.ok() && !context.wanted.empty()) {
        AppendDumps(*result, context.wanted, &context.dumps);
      }
    }
    return result;
  };
  return context.job == nullptr ? whole() : context.job->Do(whole);
}

}  // namespace fusion
