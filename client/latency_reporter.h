#pragma once

#include <functional>
#include <optional>
#include <thread>

#include "core/base/threads/cancel.h"
#include "core/base/threads/mutex.h"
#include "core/bundle/report.h"
#include "core/runtime/latency_sampler.h"

namespace fusion {

/// What a service is told about runs in the background: how long launches and runs took, how many
/// runs there were, the plan's key, the threads and the name of the CPU. Nothing else about the
/// machine, the model or its data.
struct ReportOptions {
  bool enabled = true;
  /// Between two reports; the last one goes when the model does. Less than a millisecond is taken
  /// for one.
  Nanoseconds every = std::chrono::seconds(30);
  /// For one report.
  Nanoseconds timeout = std::chrono::seconds(5);
  /// How long the end of a model may wait for its last report.
  Nanoseconds last_timeout = std::chrono::milliseconds(100);
};

/// The samples as a report: `header` says which plan ran where. Runs alone, without launches, if
/// none was timed; nothing if there were no runs.
std::optional<LatencyReport> MakeReport(const LatencyReport& header, const LatencySamples& samples);

/// A thread that takes the samples of an executor now and then and sends them.
///
/// Waits for the next timed run before it tells of runs that were not timed. A report that cannot
/// be sent is dropped: memory stays bounded, and no report is sent twice. It sends no more once the
/// service answers what it would answer again: it does not have the plan (NotFound), or does not
/// want such reports (InvalidArgument, FailedPrecondition, Unimplemented, PermissionDenied,
/// Unauthenticated).
class LatencyReporter {
 public:
  struct Callbacks {
    std::function<LatencySamples()> take;
    /// Sends it; gives up soon after `until` has ended.
    std::function<absl::Status(const LatencyReport&, const CancelToken& until)> send;
    /// Called once if no report will be sent any more, before the reporter is destroyed.
    std::function<void()> stopped = [] {};
  };

  /// `callbacks` are called on the reporter's thread, one at a time. If the system gives no thread,
  /// the constructor calls `stopped` itself, and nothing is ever sent.
  LatencyReporter(LatencyReport header, Callbacks callbacks, const ReportOptions& options);
  /// Sends what there is, for `last_timeout` at most; gives up a report that is being sent.
  ~LatencyReporter();
  LatencyReporter(const LatencyReporter&) = delete;
  LatencyReporter& operator=(const LatencyReporter&) = delete;

 private:
  void Work();
  void Await(Nanoseconds due);
  bool SendSamples(const CancelToken& until, bool last);

  const LatencyReport header_;
  const Callbacks callbacks_;
  const ReportOptions options_;
  int64_t untold_runs_ = 0;  // on the reporter's thread: those since the last timed one
  Mutex mutex_;
  CondVar changed_;
  std::optional<Nanoseconds> stop_at_ ABSL_GUARDED_BY(mutex_);  // when the destructor began
  CancelToken* under_way_ ABSL_GUARDED_BY(mutex_) = nullptr;
  std::thread thread_;
};

}  // namespace fusion
