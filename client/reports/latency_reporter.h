#pragma once

#include <functional>
#include <optional>
#include <thread>

#include "client/reports/background_load.h"
#include "core/base/threads/cancel.h"
#include "core/base/threads/mutex.h"
#include "core/bundle/measured/report_origin.h"
#include "core/bundle/report.h"
#include "core/runtime/latency_sampler.h"

namespace fusion {

/// Background reports of latencies to a service. They contain durations of launches and runs, the
/// number of runs, the plan's key, the threads, the name of the CPU, the share of the machine that
/// other processes use, and a random id; nothing else about the machine, the model or its data.
struct ReportOptions {
  bool enabled = true;
  /// Interval of reports, at least 1 ms; the last report is sent when the model is destroyed.
  Nanoseconds every = std::chrono::seconds(30);
  /// Deadline of one report.
  Nanoseconds timeout = std::chrono::seconds(5);
  /// Longest wait of the model's destructor for its last report.
  Nanoseconds last_timeout = std::chrono::milliseconds(100);
  /// Tell the service how much of the machine other processes used (BackgroundLoad). It counts runs
  /// that were measured under more than kMaxBackgroundLoad and does not keep their samples.
  bool background_load = true;
};

/// Makes a report of the samples; `header` identifies plan and machine. Contains runs without
/// launches if no launch was timed; nullopt if there were no runs.
std::optional<LatencyReport> MakeReport(const LatencyReport& header, const LatencySamples& samples);

/// A thread that takes the samples of an executor periodically and sends them.
///
/// Runs that were not timed are reported with the next timed run. Each report has a random id. One
/// that cannot be sent is sent once more, before the next one, and then dropped: memory stays
/// bounded, and the service counts none twice. It stops for good after an answer
/// that would recur: NotFound (the service does not have the plan), or InvalidArgument,
/// FailedPrecondition, Unimplemented, PermissionDenied or Unauthenticated (it does not accept such
/// reports).
class LatencyReporter {
 public:
  struct Callbacks {
    std::function<LatencySamples()> take;
    /// Sends a report; returns soon after `until` has ended.
    std::function<absl::Status(const LatencyReport&, const ReportOrigin&, const CancelToken& until)>
        send;
    /// Called once if no further report will be sent, before the destructor of the reporter ends.
    std::function<void()> stopped = [] {};
  };

  /// `callbacks` are called on the reporter's thread, one at a time. If no thread can be started,
  /// the constructor calls `stopped` itself, and nothing is sent.
  LatencyReporter(LatencyReport header, Callbacks callbacks, const ReportOptions& options);
  /// Cancels a report that is being sent, then sends the remaining samples for at most
  /// `last_timeout`.
  ~LatencyReporter();
  LatencyReporter(const LatencyReporter&) = delete;
  LatencyReporter& operator=(const LatencyReporter&) = delete;

 private:
  void Work();
  void Await(Nanoseconds due);
  bool SendSamples(const CancelToken& until, bool last);
  bool SendUnsent(const CancelToken& until);
  ReportOrigin MakeOrigin();

  const LatencyReport header_;
  const Callbacks callbacks_;
  const ReportOptions options_;
  struct Unsent {
    LatencyReport report;
    ReportOrigin origin;
    bool again = false;  // its first attempt has failed
  };
  // Of the reporter's thread only:
  int64_t untold_runs_ = 0;       // since the last timed run
  std::optional<Unsent> unsent_;  // the report that is sent next
  BackgroundLoad load_;
  Mutex mutex_;
  CondVar changed_;
  std::optional<Nanoseconds> stop_at_ ABSL_GUARDED_BY(mutex_);  // set by the destructor
  CancelToken* under_way_ ABSL_GUARDED_BY(mutex_) = nullptr;
  std::thread thread_;
};

}  // namespace fusion
