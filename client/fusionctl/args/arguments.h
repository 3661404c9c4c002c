#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/bundle/options.h"

namespace CLI {
class App;
}  // namespace CLI

namespace fusion {

/// What the process answers; the same for every command.
enum ExitCode : int {
  kExitOk = 0,
  kExitMismatch = 1,  // verify, run --compare: values differ; store verify: damage; store import:
                      // plans that were refused
  kExitUsage = 2,
  kExitBadInput = 3,  // a file is missing or malformed, an op is not supported, data do not fit,
                      // what is asked for cannot be done as it is, or takes more than it may
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
  kList,
  kCapabilities,
  kStatus,
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

/// More samples say nothing more.
inline constexpr int kMaxBenchPairs = 10000;

/// The command line, checked as far as it goes without looking at a file.
struct Arguments {
  CommandKind command = CommandKind::kPlan;
  std::string model;
  bool json = false;
  bool quiet = false;  // no progress

  // Where the plan comes from.
  std::string server;                    // empty: an embedded one
  std::string fusiond;                   // program of the embedded server; empty: beside this one
  std::string store;                     // of the embedded server; empty: none
  int64_t store_limit_bytes = 0;         // of it; 0: none
  bool insecure_permissions = false;     // of it: though others can write `store`
  std::vector<std::string> import_keys;  // of it, store import: files
  std::string signing_key;               // of it, store export: file; empty: none
  int workers = 0;                       // of the embedded server; 0: its default

  // Of run: what there is when the service is away.
  std::string cache;               // directory; empty: none
  bool user_cache = false;         // main puts this user's directory into `cache`
  bool prefer_cache = false;       // what is cached is used without asking
  bool fallback = false;           // runs op by op without a plan
  double load_deadline = 30;       // seconds
  std::optional<double> deadline;  // of a call, in seconds; none: the client library's

  // How --server is spoken to.
  std::string ca;           // file: TLS, with this CA; empty: plain text
  std::string certificate;  // file; empty: none is shown
  std::string key;          // file, of `certificate`
  std::string server_name;  // empty: that of the address
  std::string token_file;   // empty: none
  std::string token;        // of the environment, if there is no file
  std::string traceparent;  // of the environment; empty: none
  bool background = false;
  std::vector<std::string> verify_keys;  // files; empty: signatures are not looked at

  // What is asked for.
  int threads = 0;                           // 0: usable cores
  std::string isa;                           // empty: this machine's
  PlanOptions options;                       // without the lock, until LoadLock
  std::string rules;                         // file; main reads it into options.rules; empty: none
  std::map<std::string, std::string> fixed;  // of --fix: value by input
  std::vector<std::string> as_inputs;        // initialisers that are inputs of a run
  std::string custom_ops;                    // the same into options.custom_ops
  std::string lock;                          // file; empty: none
  bool allow_fused = false;

  // Of single commands.
  std::string data;                           // run, bench, verify, report
  std::map<std::string, std::string> inputs;  // run, bench, verify: files by name of the input
  std::optional<double> atol;                 // verify
  std::optional<double> rtol;                 // verify
  uint64_t seed = 1;                          // run, bench, verify
  int repeat = 1;                             // run
  int steps = 0;                              // run: of what shares buffers; 0: none
  std::string out;           // run: directory for the outputs; export, repro: file; empty: none
  bool npy = false;          // run: outputs as .npy, not .pb
  std::string trace;         // run: file for a timeline; empty: none
  bool compare = false;      // run: each intermediate tensor with what it should be
  std::string reference;     // run --compare: directory of --dump-tensors; empty: the evaluator
  std::string dump_tensors;  // run: directory for the intermediate tensors; empty: none
  std::vector<std::string> tensors;  // run: only these, by name of tensor or node; empty: all
  std::optional<double> seconds;     // bench, of paired runs
  bool suite = false;                // bench: SuiteModels in the place of a model
  int pairs = 0;                     // bench; 0: as many as fit into `seconds`
  int warmup = 3;                    // bench
  bool per_kernel = false;           // bench, run
  bool report = true;                // bench: tells a service that keeps reports
  std::string target;       // plan, explain, export: device spec; empty: this machine, or `isa`
  bool node_names = false;  // plan
  bool compile = true;      // plan, export
  bool fused = false;       // export
  std::string write_lock;   // plan: file; empty: none
  ShowWhat what = ShowWhat::kPlan;
  ShowFormat format = ShowFormat::kText;
  std::string subject;           // report, explain, diff, repro: plan key or model; of report
                                 // empty: every plan
  std::string other;             // diff: what the subject is compared with
  std::vector<std::string> why;  // explain: one node or two
  int group = -1;                // explain; -1: every one
  bool candidates = false;       // explain: those of the search too
  bool miss = false;             // explain: which stored plan is nearest
  std::string dot;               // explain: file; empty: none
  std::string svg;               // explain: file; empty: none
  std::string save;              // explain: file; empty: none
  std::string html;              // report: file; empty: none
  std::string model_option;      // report, explain: the first one given that says how a model
                                 // is planned
  std::string replay;            // repro: file; empty: none
  int limit = 0;                 // list; 0: all
  bool full_keys = false;        // list
  bool ops = false;              // capabilities
  StoreAction action = StoreAction::kStats;  // store
  std::vector<std::string> plan_keys;        // store: keys or beginnings of keys
  std::vector<std::string> kernel_keys;      // store invalidate
  bool all = false;                          // store invalidate
  std::string reason;                        // store invalidate
  std::string from;                          // store import: file
  Shell shell = Shell::kBash;
  std::string name;                // token
  std::string tenant;              // token; empty: "default"
  std::vector<std::string> roles;  // token; empty: plan and report
  std::string expires;             // token; empty: never
};

/// The outcome of reading the command line.
struct ParsedArguments {
  Arguments arguments;
  /// Set if the program should print `text` and leave: kExitOk for --help and --version (stdout),
  /// kExitUsage (one line, stderr).
  std::optional<ExitCode> exit_code;
  std::string text;
  /// The first word, if it is a command: whose --help says more.
  std::string command;
};

ParsedArguments ParseArguments(int argc, const char* const* argv);

/// Commands and options as the parser knows them; they write into `arguments`, which outlives it.
/// The type name of what takes a value says what fits: "{a,b}" these words, "FILE" and "PROGRAM" a
/// file, "FILE.onnx" one of that kind, "DIR" a directory, others something else.
std::unique_ptr<CLI::App> MakeCommandLine(Arguments* arguments);

}  // namespace fusion
