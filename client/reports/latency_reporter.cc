#include "client/reports/latency_reporter.h"

#include <unistd.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "core/base/threads/named_thread.h"

namespace fusion {
namespace {

// What a clock cannot tell from 0; a report holds times above 0.
constexpr double kShortestUs = 1e-3;

// Of a random id: no two reports of a tenant have the same.
constexpr size_t kIdBytes = 16;

constexpr Nanoseconds kShortestInterval = std::chrono::milliseconds(1);

std::vector<double> Reportable(const std::vector<double>& samples_us) {
  size_t n = std::min(samples_us.size(), static_cast<size_t>(kMaxReportSamples));
  std::vector<double> out(samples_us.end() - static_cast<std::ptrdiff_t>(n), samples_us.end());
  for (double& us : out) us = std::clamp(us, kShortestUs, kMaxLatencyUs);
  return out;
}

bool IsForGood(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kUnimplemented:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnauthenticated:
      return true;
    default:
      return false;
  }
}

}  // namespace

std::optional<LatencyReport> MakeReport(const LatencyReport& header,
                                        const LatencySamples& samples) {
  if (samples.run_us.empty() && samples.runs <= 0) return std::nullopt;
  LatencyReport report = header;
  report.run_samples_us = Reportable(samples.run_us);
  auto timed = static_cast<int64_t>(report.run_samples_us.size());
  report.runs = std::clamp(samples.runs, timed, kMaxReportCalls);
  if (samples.run_us.empty()) return report;
  for (const std::vector<double>& launch_us : samples.launch_us) {
    report.launches.push_back({.launch = static_cast<int>(report.launches.size()),
                               .samples_us = Reportable(launch_us),
                               .calls = report.runs});
  }
  return report;
}

LatencyReporter::LatencyReporter(LatencyReport header, Callbacks callbacks,
                                 const ReportOptions& options)
    : header_(std::move(header)), callbacks_(std::move(callbacks)), options_(options) {
  try {
    thread_ = NamedThread("fusion-report", [this] { Work(); });
  } catch (const std::system_error&) {
    // The library has no other way to say that there are no more threads. A model runs without
    // reports.
    callbacks_.stopped();
  }
}

LatencyReporter::~LatencyReporter() {
  {
    MutexLock lock(&mutex_);
    stop_at_ = Clock::Real().Now();
    if (under_way_ != nullptr) under_way_->Cancel();
    changed_.NotifyAll();
  }
  if (thread_.joinable()) thread_.join();
}

void LatencyReporter::Work() {
  const Clock& clock = Clock::Real();
  for (bool last = false; !last;) {
    Await(clock.Now() + std::max(options_.every, kShortestInterval));
    std::optional<CancelToken> until;
    {
      MutexLock lock(&mutex_);
      last = stop_at_.has_value();
      until.emplace(clock,
                    last ? *stop_at_ + options_.last_timeout : clock.Now() + options_.timeout);
      under_way_ = last ? nullptr : &*until;
    }
    bool wanted = SendSamples(*until, last);
    {
      MutexLock lock(&mutex_);
      under_way_ = nullptr;
    }
    if (!wanted) {
      callbacks_.stopped();
      return;
    }
  }
}

// Until `due` or the destructor.
void LatencyReporter::Await(Nanoseconds due) {
  MutexLock lock(&mutex_);
  for (;;) {
    Nanoseconds left = due - Clock::Real().Now();
    if (stop_at_.has_value() || left <= Nanoseconds(0)) return;
    changed_.WaitFor(&mutex_, left);
  }
}

// False if no report will ever be wanted.
bool LatencyReporter::SendSamples(const CancelToken& until, bool last) {
  LatencySamples samples = callbacks_.take();
  samples.runs = std::min(samples.runs, kMaxReportCalls) + untold_runs_;
  untold_runs_ = 0;
  if (samples.run_us.empty() && !last) {
    // Launches are counted where they are measured: with the next timed run.
    untold_runs_ = std::min(samples.runs, kMaxReportCalls);
    return true;
  }
  if (unsent_.has_value() && !SendUnsent(until)) return false;
  std::optional<LatencyReport> report = MakeReport(header_, samples);
  if (!report) return true;
  unsent_ = {.report = *std::move(report), .origin = MakeOrigin()};
  return SendUnsent(until);
}

// Sends the waiting report. It waits on after the first attempt, if an answer may be different the
// next time. False if no report will ever be wanted.
bool LatencyReporter::SendUnsent(const CancelToken& until) {
  const absl::Status ended = until.Check();
  const absl::Status sent =
      ended.ok() ? callbacks_.send(unsent_->report, unsent_->origin, until) : ended;
  if (sent.ok() || IsForGood(sent) || std::exchange(unsent_->again, true)) unsent_.reset();
  return !IsForGood(sent);
}

ReportOrigin LatencyReporter::MakeOrigin() {
  ReportOrigin origin{.id = std::string(kIdBytes, '\0')};
  if (getentropy(origin.id.data(), origin.id.size()) != 0) origin.id.clear();
  if (options_.background_load) origin.background_load = load_.Take().value_or(0);
  return origin;
}

}  // namespace fusion
