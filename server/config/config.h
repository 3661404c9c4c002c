#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/logging.h"
#include "core/base/sanitizer.h"
#include "core/base/threads/job.h"
#include "core/bundle/options.h"
#include "core/compile/sandbox/sandbox.h"
#include "server/admission/tenant_limits.h"
#include "server/config/config_file.h"
#include "server/transport/listen_address.h"

namespace fusion {

/// The configuration of fusiond, from flags and the config file. The help text of each flag states
/// unit and meaning. deploy/fusiond.conf is an example with reasons.
struct ServerConfig {
  std::string config_file;                                // empty: none
  std::vector<std::string> listen = {"127.0.0.1:50051"};  // "host:port" or "unix:/path"
  SocketAccess socket_access;                             // of every "unix:/path"
  std::string admin;                                      // "host:port"; empty: no admin port
  std::vector<std::string> admin_hosts;                   // further names, see AllowedHosts
  std::string store_dir;                                  // empty: memory only
  int64_t store_limit_bytes = int64_t{4} << 30;           // INT64_MAX: no limit (the flag: 0)
  int64_t store_min_free_bytes = int64_t{256} << 20;
  int64_t memory_limit_bytes = int64_t{256} << 20;
  int workers = 0;  // ParseCommandLine replaces 0 by the number of cores
  int64_t worker_memory_bytes = kSanitized ? 0 : int64_t{8} << 30;  // 0: no limit
  int64_t compile_queue = 4096;
  double compile_seconds = 30;
  std::string compiler;  // empty: the first of allowed_compilers that exists
  std::vector<std::string> allowed_compilers = {"/usr/bin/g++", "/usr/bin/clang++"};
  Sandbox sandbox = Sandbox::kAuto;
  std::vector<std::string> sandbox_readable;  // absolute paths
  double failure_ttl_seconds = 600;
  int request_threads = 64;
  int64_t request_queue = 256;
  int64_t max_request_bytes = int64_t{32} << 20;
  int64_t max_inflight_bytes = int64_t{256} << 20;
  int64_t planning_bytes = JobLimits().bytes;
  int64_t planning_steps = JobLimits().steps;
  int64_t max_streams = 1024;
  int64_t max_connections = 16384;
  double connection_idle_seconds = 1800;
  TenantLimits tenant_limits;
  double call_seconds = 600;
  double abandoned_build_seconds = 1;  // grace period; below 0: never cancelled
  double drain_seconds = 2;
  double grace_seconds = 10;
  std::string scratch_dir = "/tmp";
  LogLevel log_level = LogLevel::kInfo;
  bool exit_with_parent = false;
  int max_opt_level = kMaxOptLevel;
  bool learn = true;        // from reported latencies
  int canary_percent = 20;  // of new plans
  std::string rules_file;   // FusionRules in text format, applied to every request; empty: none
  std::string tls_cert;     // PEM files; empty: no TLS
  std::string tls_key;
  std::string tls_client_ca;  // empty: clients need no certificates
  std::string tokens;         // file of tokens and identities (KnownCallers); empty: none
  bool tenant_namespaces = false;
  bool allow_plaintext = false;
  bool reflection = false;
  std::vector<std::string> signing_keys;  // files; the first one signs
  std::vector<std::string> import_keys;   // files; archive entries they signed are trusted
  bool insecure_permissions = false;      // starts despite UntrustedFiles
  int64_t log_usual = 100;  // calls answered from the caches logged per second; below 0: all
  std::string kernels;      // file or directory of RegisteredKernels in text format; empty: none
};

/// The result of ParseCommandLine.
struct CommandLine {
  ServerConfig config;
  /// If set, the program should print `text` and exit with this code: 0 for --help and --version
  /// (stdout), 2 for invalid flags or an invalid config file (stderr).
  std::optional<int> exit_code;
  std::string text;
  /// --check-config: report whether a start would work, and exit.
  bool check_only = false;
  /// With check_only: the errors in flags and config file, one line each. `config` then has the
  /// valid entries, to be checked too.
  std::vector<std::string> problems = {};
  /// The arguments of the command line, and the line numbers of the config file: for
  /// ConfigLines::Locate.
  std::vector<std::string> given = {};
  ConfigLines lines = {};
};

/// Reads the flags, then the file of --config; flags override the file. Every error has a line that
/// names the flag, or the file with line number and name. Lines of the file that a flag overrides
/// are checked too.
CommandLine ParseCommandLine(int argc, const char* const* argv);

/// Version of this program: "0.1.0".
std::string_view ServerVersion();

}  // namespace fusion
