#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/bundle/plan.h"
#include "core/bundle/plan_outline.h"

namespace fusion {

// Reports about plans and servers, as plain values that server and client share: progress of a
// request, measured latencies, stored plans, capabilities of a server.

/// Progress of a request.
struct PlanProgress {
  std::string stage;       // the stage that begins or whose counts changed: "import", "compile"
  Nanoseconds elapsed{0};  // since the server began to process the request
  int done = 0;            // steps of the stage: kernels compiled and checked
  int total = 0;           // 0: a stage without steps
};

/// SHA-256 over the kernel keys of plan.launches, in order. It identifies the launches that
/// positions in a report refer to. It may differ between plans with the same key, after kernels
/// failed.
Digest LaunchedKernels(const Plan& plan);

/// Maximum number of samples of one measurement in a report. More are InvalidArgument.
inline constexpr int kMaxReportSamples = 1024;
/// Maximum of LaunchLatency::calls and LatencyReport::runs.
inline constexpr int64_t kMaxReportCalls = 1'000'000'000'000;
/// Maximum duration of a launch or run in microseconds (1000 s). More is InvalidArgument.
inline constexpr double kMaxLatencyUs = 1e9;
/// Longer device names are truncated to this.
inline constexpr size_t kMaxDeviceNameBytes = 128;

/// Measured times of one launch of a plan.
struct LaunchLatency {
  int launch = 0;                  // position in Plan::launches
  std::vector<double> samples_us;  // at least one; each in (0, kMaxLatencyUs]
  int64_t calls = 0;               // number of launches that the samples represent; 0: one each
};

/// Measured times of one plan on one machine.
struct LatencyReport {
  Digest plan_key;
  Digest kernels;                       // LaunchedKernels of the plan that ran; all 0: unknown
  std::vector<LaunchLatency> launches;  // at most one entry per launch
  std::vector<double> run_samples_us;   // whole runs
  int64_t runs = 0;    // since the last report, measured or not; 0: as many as run_samples_us
  int threads = 1;     // used by the runs; samples are kept only if equal to Plan::threads
  std::string device;  // the machine, for people; at most kMaxDeviceNameBytes are kept
};

/// Count and quantiles of measured times, over the newest samples that are kept. All 0 without
/// measurements.
struct LatencySummary {
  int64_t calls = 0;     // total, with any number of threads
  int64_t samples = 0;   // number of samples behind the quantiles
  double median_us = 0;  // quantiles are interpolated between neighbouring samples
  double p10_us = 0;
  double p90_us = 0;
  double min_us = 0;
};

/// Measured and estimated times of one kernel of a plan.
struct KernelReport {
  Digest kernel_key;
  std::string label;                      // op types in order
  int launches = 0;                       // per inference
  int nodes = 0;                          // computed by one launch
  LatencySummary measured;                // of one launch
  double estimated_us = 0;                // of one launch
  double op_by_op_us = 0;                 // estimate for the nodes of one launch, one kernel each
  double op_by_op_measured_us = 0;        // measured for them (PlanReport::op_by_op_plan); 0: not
  SectionSet sections = 0;                // of all launches
  int64_t activation_bytes = 0;           // moved off chip by all launches of an inference
  int64_t op_by_op_activation_bytes = 0;  // the same with one kernel per node
};

/// Measured and estimated times of the launches of a plan that compute the same parts of
/// transformer layers. Sums over an inference; times in microseconds.
struct SectionReport {
  SectionSet sections = 0;
  int launches = 0;
  double measured_us = 0;  // of medians; 0: a launch was not measured
  double estimated_us = 0;
  int64_t activation_bytes = 0;
  // The same nodes with one kernel each.
  int64_t op_by_op_kernels = 0;
  double op_by_op_measured_us = 0;  // of medians; 0: a node was not measured
  double op_by_op_us = 0;           // estimated
  int64_t op_by_op_activation_bytes = 0;
};

/// Longer model names are truncated to this.
inline constexpr size_t kMaxModelNameBytes = 128;

/// Summary of the latency reports about one plan.
struct PlanReport {
  Digest plan_key;
  std::string model_name;  // of the request that created the plan; empty: unknown
  std::string target;
  int threads = 1;                   // Plan::threads
  std::vector<std::string> devices;  // that sent reports, the newest 16
  int64_t last_report_unix_ms = 0;
  LatencySummary runs;  // whole runs
  PlanTotals totals;
  PlanTotals op_by_op;
  std::vector<KernelReport> kernels;  // kernels of Plan::launches, in order of first launch
  // All fields below have default values in answers of earlier servers.
  FusionMode fusion = FusionMode::kFused;
  int64_t peak_bytes = 0;           // RunBytes; 0: not known
  int64_t op_by_op_peak_bytes = 0;  // of op_by_op_plan, else estimated; 0: not known
  /// The plan of the same model and options with one kernel per node, if there are reports about
  /// it; all 0: there are none.
  Digest op_by_op_plan = {};
  LatencySummary op_by_op_runs = {};         // whole runs of that plan
  std::vector<SectionReport> sections = {};  // by first launch; empty: the model has no attention
};

/// Summary of a stored plan.
struct PlanSummary {
  Digest plan_key;
  std::string model_name;  // of the request that created it; empty: unknown
  int64_t created_unix_ms = 0;
  std::string target;
  int threads = 1;
  FusionMode fusion = FusionMode::kFused;
  Numerics numerics = Numerics::kFp32Accumulate;
  int nodes = 0;
  PlanTotals totals;
  PlanTotals op_by_op;
  int fallbacks = 0;         // size of Plan::fallbacks
  int64_t bytes = 0;         // stored bytes of the plan, without kernels
  int distinct_kernels = 0;  // of the plan
  int compiled_kernels = 0;  // those of them that are stored
  bool pinned = false;       // exempt from eviction
  std::string tenant;        // charged for it (Store::TenantOf); empty: unknown
};

/// A device spec of a server.
struct DeviceCapability {
  std::string name;
  std::string description;  // for people
  std::string backend;      // code generator; empty: plans can be made but not compiled
  std::string isa;
};

/// A supported operator and its range of ONNX opsets. 0 and 0: not an ONNX operator.
struct OpCapability {
  std::string name;
  int min_opset = 0;
  int max_opset = 0;
};

/// State of a registered kernel since the server started.
enum class RegisteredState : uint8_t {
  kUnused,       // no plan has used it
  kReady,        // one of its kernels was compiled and checked, or found in the store
  kQuarantined,  // one of its kernels failed; new plans do not use it
};

/// "unused", "ready", "quarantined".
std::string_view RegisteredStateName(RegisteredState state);

/// A kernel that the server's operator registered for a pattern.
struct RegisteredCapability {
  std::string name;
  std::string pattern;  // for people: "Conv > LeakyRelu"
  Digest source;        // SHA-256 of the file
  bool force = false;
  RegisteredState state = RegisteredState::kUnused;
  std::string reason;  // kQuarantined: the failure
};

/// A limit that a server enforces.
struct ServiceLimit {
  std::string name;  // "request bytes"
  int64_t value = 0;
  std::string unit;    // "bytes"
  std::string option;  // the fusiond option that sets it; empty: fixed
};

/// Capabilities of a server.
struct Capabilities {
  std::string version;
  uint32_t plan_version = 0;
  uint32_t kernel_abi_version = 0;
  std::string compiler;  // empty: no compiler, nothing can be compiled
  int workers = 0;
  bool durable_store = false;
  std::vector<DeviceCapability> devices;              // by name
  std::vector<OpCapability> ops;                      // by name
  std::vector<ServiceLimit> limits;                   // in the order in which requests are checked
  std::string sandbox;                                // of compile workers, for people
  std::vector<RegisteredCapability> registered = {};  // in the order of the files
  // About the calling client. Empty: an older server that does not report it.
  std::string authentication = {};             // "none", "token", "mtls", "token mtls"
  std::string tenant = {};                     // to which the call is attributed
  std::vector<std::string> roles = {};         // "plan", "report", "admin"
  std::vector<std::string> signing_keys = {};  // ids; the first one is the signing key
};

}  // namespace fusion
