#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/bundle/plan.h"

namespace fusion {

// What is said about plans after they were made: how long they take to make, how fast they ran,
// which there are, and what a server can do at all. Plain values, as server and client both see
// them.

/// How far a request is.
struct PlanProgress {
  std::string stage;       // the one that begins, or whose counts changed: "import", "compile"
  Nanoseconds elapsed{0};  // since the server began with the request
  int done = 0;            // steps of the stage: kernels compiled and checked
  int total = 0;           // 0: a stage without steps
};

/// SHA-256 over the keys of the kernels of plan.launches, in order: what a position in a report
/// stands for. Plans under one key may differ in it, when kernels have failed.
Digest LaunchedKernels(const Plan& plan);

/// Samples of one measurement in a report; more are InvalidArgument.
inline constexpr int kMaxReportSamples = 1024;
/// Launches or runs that one measurement may stand for.
inline constexpr int64_t kMaxReportCalls = 1'000'000'000'000;
/// A longer launch or run is InvalidArgument. Microseconds: a thousand seconds.
inline constexpr double kMaxLatencyUs = 1e9;
/// What is kept of a device's name.
inline constexpr size_t kMaxDeviceNameBytes = 128;

/// What one launch of a plan took in some runs.
struct LaunchLatency {
  int launch = 0;                  // position in Plan::launches
  std::vector<double> samples_us;  // at least one; each in (0, kMaxLatencyUs]
  int64_t calls = 0;               // launches that these stand for; 0: as many as samples
};

/// What the kernels of one plan took on one machine.
struct LatencyReport {
  Digest plan_key;
  Digest kernels;                       // LaunchedKernels of the plan that ran
  std::vector<LaunchLatency> launches;  // at most one of each
  std::vector<double> run_samples_us;   // whole runs
  int64_t runs = 0;    // since the last report, measured or not; 0: as many as run_samples_us
  int threads = 1;     // that ran the plan; samples count only where it was made for so many
  std::string device;  // the machine, for people; kMaxDeviceNameBytes of it are kept
};

/// Count and spread of measured times, over the newest samples that are kept. All 0 where nothing
/// was measured.
struct LatencySummary {
  int64_t calls = 0;     // ever, with any number of threads
  int64_t samples = 0;   // that the figures come from
  double median_us = 0;  // half of the samples are shorter
  double p10_us = 0;     // as all of these, interpolated between neighbours
  double p90_us = 0;
  double min_us = 0;
};

/// One kernel of a plan: measured beside estimated.
struct KernelReport {
  Digest kernel_key;
  std::string label;                      // op types in order
  int launches = 0;                       // of one inference
  int nodes = 0;                          // that one launch computes
  LatencySummary measured;                // of one launch
  double estimated_us = 0;                // of one launch
  double op_by_op_us = 0;                 // the same nodes with one kernel each, of one launch
  int64_t activation_bytes = 0;           // moved off chip, all launches of an inference
  int64_t op_by_op_activation_bytes = 0;  // the same with one kernel per node
};

/// What is kept of a model's name.
inline constexpr size_t kMaxModelNameBytes = 128;

/// What was reported about one plan.
struct PlanReport {
  Digest plan_key;
  std::string model_name;  // of the request that made it; empty: unknown
  std::string target;
  int threads = 1;                   // that the plan was made for
  std::vector<std::string> devices;  // that reported, the newest 16
  int64_t last_report_unix_ms = 0;
  LatencySummary runs;  // whole ones
  PlanTotals totals;
  PlanTotals op_by_op;
  std::vector<KernelReport> kernels;  // those of Plan::launches, by first launch
};

/// A stored plan in short.
struct PlanSummary {
  Digest plan_key;
  std::string model_name;  // of the request that made it; empty: unknown
  int64_t created_unix_ms = 0;
  std::string target;
  int threads = 1;
  FusionMode fusion = FusionMode::kFused;
  Numerics numerics = Numerics::kFp32Accumulate;
  int nodes = 0;
  PlanTotals totals;
  PlanTotals op_by_op;
  /// Nodes kept alone, and families left without a variant, because of a failed kernel.
  int fallbacks = 0;
  int64_t bytes = 0;         // stored, without kernels
  int distinct_kernels = 0;  // of the plan
  int compiled_kernels = 0;  // of them, those that are stored
  bool pinned = false;       // kept whatever room is needed
  std::string tenant;        // whose request made it; empty: unknown
};

/// A device spec of a server.
struct DeviceCapability {
  std::string name;
  std::string description;  // for people
  std::string backend;      // code generator; empty: its plans can be made, but not compiled
  std::string isa;
};

/// An operator that graphs may contain, and the opsets of ONNX that are known of it. 0 and 0: it is
/// ours, ONNX does not know it.
struct OpCapability {
  std::string name;
  int min_opset = 0;
  int max_opset = 0;
};

/// What became of a registered kernel since the server started.
enum class RegisteredState : uint8_t {
  kUnused,       // no plan has had a kernel of it
  kReady,        // one was compiled and checked, or found
  kQuarantined,  // one failed: no new plan uses it
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
  std::string reason;  // kQuarantined: what failed
};

/// The largest value of something that a server takes.
struct ServiceLimit {
  std::string name;  // "request bytes"
  int64_t value = 0;
  std::string unit;    // "bytes"
  std::string option;  // of fusiond; empty: fixed
};

/// What a server can do.
struct Capabilities {
  std::string version;
  uint32_t plan_version = 0;
  uint32_t kernel_abi_version = 0;
  std::string compiler;  // empty: none, nothing can be compiled
  int workers = 0;
  bool durable_store = false;
  std::vector<DeviceCapability> devices;              // by name
  std::vector<OpCapability> ops;                      // by name
  std::vector<ServiceLimit> limits;                   // in the order in which a request meets them
  std::string sandbox;                                // of compile workers, for people
  std::vector<RegisteredCapability> registered = {};  // in the order of the files
  // Of the call that asks; empty: the server is older than that.
  std::string authentication = {};             // "none", "token", "mtls", "token mtls"
  std::string tenant = {};                     // under which it is counted
  std::vector<std::string> roles = {};         // "plan", "report", "admin"
  std::vector<std::string> signing_keys = {};  // ids, the one that signs first
};

}  // namespace fusion
