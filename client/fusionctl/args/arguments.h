#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/clock.h"
#include "core/bundle/options.h"
#include "core/device/measured_constants.h"

namespace CLI {
class App;
}  // namespace CLI

namespace fusion {

/// Exit codes of the process, the same for every command.
enum ExitCode : int {
  kExitOk = 0,
  kExitMismatch = 1,  // verify, run --compare, repro --replay: values differ; store verify: damage;
                      // store import: refused plans
  kExitUsage = 2,
  kExitBadInput = 3,  // a file is missing or malformed, an op is unsupported, data do not fit the
                      // model, the request cannot be served as it is or exceeds a limit
  kExitService = 4,  // fusiond cannot be reached or started, is busy, refuses the caller, or failed
  kExitNoMemory = 5,  // this process has too little memory for the model
};

enum class CommandKind : uint8_t {
  kPlan,
  kRun,
  kBench,
  kVerify,
  kShow,
  kExplain,
  kDiff,
  kKernels,
  kExport,
  kRepro,
  kReport,
  kTune,
  kEpochs,
  kProbe,
  kList,
  kCapabilities,
  kStatus,
  kTop,
  kToken,
  kStore,
  kCompletion,
};
enum class ShowWhat : uint8_t { kGraph, kProgram, kSmg, kSchedule, kPlan, kSource };
enum class ShowFormat : uint8_t { kText, kJson, kDot };
enum class StoreAction : uint8_t {
  kStats,
  kVerify,
  kCompact,
  kPin,
  kUnpin,
  kInvalidate,
  kExport,
  kImport
};
enum class Shell : uint8_t { kBash, kZsh, kFish };

/// The level of tune without --seconds and --opt-level.
inline constexpr int kDefaultTuneLevel = 2;

/// Upper limit of --pairs: more samples would not narrow the result.
inline constexpr int kMaxBenchPairs = 10000;

/// The command line as values. Everything is checked that needs no file.
struct Arguments {
  CommandKind command = CommandKind::kPlan;
  std::string model;
  bool json = false;
  bool quiet = false;  // no progress

  // The service.
  std::string server;                    // address; empty: starts an embedded server
  std::string fusiond;                   // program of the embedded server; empty: beside this one
  std::string store;                     // directory of the embedded server; empty: none
  int64_t store_limit_bytes = 0;         // of `store`; 0: none
  bool insecure_permissions = false;     // allows a `store` that other users can write
  std::vector<std::string> import_keys;  // store import with `store`: files
  std::string signing_key;               // store export with `store`: file; empty: none
  int workers = 0;                       // of the embedded server; 0: its default

  // run without the service.
  std::string cache;               // directory; empty: none
  bool user_cache = false;         // main sets `cache` to this user's cache directory
  bool prefer_cache = false;       // uses a cached plan without a call of the service
  bool fallback = false;           // runs op by op without a plan
  double load_deadline = 30;       // seconds to get plan and kernels, with retries
  std::optional<double> deadline;  // of a call, in seconds; nullopt: the client library's default

  // The connection to --server.
  std::string ca;                        // file: TLS, with this CA; empty: plaintext
  std::string certificate;               // file; empty: none is presented
  std::string key;                       // file, of `certificate`
  std::string server_name;               // expected in the certificate; empty: that of the address
  std::string token_file;                // empty: none
  std::string token;                     // from FUSION_TOKEN; token_file overrides it
  std::string traceparent;               // from TRACEPARENT; empty: none
  bool background = false;               // calls give way to those of others
  std::vector<std::string> verify_keys;  // files; empty: signatures are not verified

  // The plan.
  int threads = 0;                            // 0: usable cores
  std::string isa;                            // empty: this machine's
  PlanOptions options;                        // completed by LoadRules, LoadCustomOps, LoadLock
  std::string rules;                          // file; main reads it into options.rules; empty: none
  std::map<std::string, std::string> fixed;   // --fix: value by input
  std::vector<std::string> as_inputs;         // initialisers to plan as inputs
  std::string custom_ops;                     // file; main reads it into options.custom_ops
  std::string lock;                           // file; empty: none
  std::string device_constants;               // file of probe; empty: those of the spec
  std::optional<MeasuredConstants> measured;  // main reads `device_constants` into it
  bool allow_fused = false;                   // accepts a model that `export` wrote

  // Options of single commands; the comment of each names its commands.
  std::string data;                           // run, bench, verify, report
  std::map<std::string, std::string> inputs;  // run, bench, verify: files by name of the input
  std::optional<double> atol;                 // verify
  std::optional<double> rtol;                 // verify
  uint64_t seed = 1;                          // run, bench, verify
  int repeat = 1;                             // run
  int steps = 0;                              // run: RunSteps; 0: none
  std::string out;        // run: directory for the outputs; export, repro, probe: file; empty: none
  bool npy = false;       // run: outputs as .npy, not .pb
  std::string trace;      // run: file for a timeline; empty: none
  bool compare = false;   // run: compares each intermediate tensor with a reference
  std::string reference;  // run --compare: directory of --dump-tensors; empty: the evaluator
  std::string dump_tensors;          // run: directory for the intermediate tensors; empty: none
  std::vector<std::string> tensors;  // run: only these, by name of tensor or node; empty: all
  std::optional<double> seconds;     // bench, of paired runs; tune, probe: of measuring
  bool suite = false;                // bench: SuiteModels, no model
  int pairs = 0;                     // bench; 0: as many as fit into `seconds`
  int warmup = 3;                    // bench
  bool per_kernel = false;           // bench, run
  bool report = true;                // bench: reports latencies to the service
  bool accuracy = false;             // report: of the estimates, by device
  std::string target;       // plan, explain, export: device spec; empty: this machine, or `isa`
  bool node_names = false;  // plan: lists the nodes of each group
  bool compile = true;      // plan, export; false: plans only
  bool fused = false;       // export
  std::string write_lock;   // plan: file; empty: none
  ShowWhat what = ShowWhat::kPlan;
  ShowFormat format = ShowFormat::kText;
  std::string subject;           // report, explain, diff, repro: plan key or model; for report
                                 // empty: all plans
  std::string other;             // diff: the second plan
  std::vector<std::string> why;  // explain: one node or two
  int group = -1;                // explain; -1: all groups
  bool candidates = false;       // explain: also the candidates of the search
  bool miss = false;             // explain: the nearest stored plan
  std::string dot;               // explain: file; empty: none
  std::string svg;               // explain: file; empty: none
  std::string save;              // explain: file; empty: none
  std::string html;              // report: file; empty: none
  std::string post;              // report: file of reports to send, "-": standard input; or empty
  std::string markdown;          // report: file; "-": stdout; empty: none
  std::string model_option;      // report, explain: the first option given that only applies to
                                 // a model, for errors if `subject` is not one
  std::string replay;            // repro: file; empty: none
  int limit = 0;                 // list; 0: all
  bool full_keys = false;        // list
  bool ops = false;              // capabilities
  double interval = 2;           // top: seconds between frames
  bool once = false;             // top: one frame
  StoreAction action = StoreAction::kStats;  // store
  std::vector<std::string> plan_keys;        // store: keys or prefixes of keys
  std::vector<std::string> kernel_keys;      // store invalidate
  bool all = false;                          // store invalidate
  std::string reason;                        // store invalidate, epochs --roll-back
  bool train = false;                        // epochs
  int64_t roll_back = 0;                     // epochs; 0: none
  std::string from;                          // store import: file
  Shell shell = Shell::kBash;
  std::string name;                // token
  std::string tenant;              // token; empty: "default"
  std::vector<std::string> roles;  // token; empty: plan and report
  std::string expires;             // token; empty: never
};

/// The duration of an option in seconds.
inline Nanoseconds FromSeconds(double seconds) {
  return std::chrono::duration_cast<Nanoseconds>(std::chrono::duration<double>(seconds));
}

/// The result of ParseArguments.
struct ParsedArguments {
  Arguments arguments;
  /// If set, the program should print `text` and exit with this code: kExitOk for --help and
  /// --version (on stdout), kExitUsage for an error (one line, on stderr).
  std::optional<ExitCode> exit_code;
  std::string text;
  /// The first word, if it is a command; for a hint to its --help.
  std::string command;
};

ParsedArguments ParseArguments(int argc, const char* const* argv);

/// The parser with all commands and options. It writes into `arguments`, which must outlive it. The
/// type name of an option tells which values fit: "{a,b}" these words, "FILE" and "PROGRAM" a file,
/// "FILE.onnx" a file with that suffix, "DIR" a directory, others any text.
std::unique_ptr<CLI::App> MakeCommandLine(Arguments* arguments);

}  // namespace fusion
