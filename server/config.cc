#include "server/config.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <map>
#include <thread>

#include "core/base/file.h"
#include "server/listen_address.h"

namespace fusion {
namespace {

constexpr const char* kSummary =
    "fusiond answers PlanFusion and GetKernels over gRPC: it plans which operators of a graph run "
    "as one kernel, compiles the kernels in worker processes, and keeps both in a store.\n"
    "Every option may stand in the file of --config under its name without dashes.";

constexpr const char* kFooter =
    "Signals: SIGTERM and SIGINT drain and stop, within drain-seconds + 2 grace-seconds; another "
    "SIGINT stops at once. SIGHUP reads certificates and tokens again.\n"
    "Exit codes: 0 stopped as asked, 1 cannot start or broken, 2 bad flags or config file.";

// For CLI11: empty if all is well.
std::string Complaint(const absl::Status& status) { return std::string(Message(status)); }

// Behind AsSizeValue: CLI11 runs the last transform first.
std::string NoneIfZero(std::string& bytes) {
  if (bytes == "0") bytes = StrCat(INT64_MAX);
  return "";
}

std::string IsWorkerMemory(const std::string& bytes) {
  constexpr int64_t kLeast = int64_t{128} << 20;  // it runs a kernel beside its check
  int64_t value = 0;
  auto [end, error] = std::from_chars(bytes.data(), bytes.data() + bytes.size(), value);
  if (error == std::errc() && (value == 0 || value >= kLeast)) return "";
  return StrCat("got ", bytes, ", expected 0 or at least ", kLeast);
}

void AddNetworkOptions(CLI::App* app, ServerConfig* config) {
  app->add_option("--listen", config->listen,
                  "Address of the gRPC service, HOST:PORT (port 0: any free one) or unix:/PATH "
                  "(mode 0600); may be given more than once")
      ->allow_extra_args(false)
      ->check([](const std::string& address) { return Complaint(CheckListenAddress(address)); })
      ->capture_default_str();
  app->add_option(
         "--admin", config->admin,
         "HOST:PORT of the admin port with /metrics, /healthz, /readyz, /statusz and "
         "/compile_log over HTTP (port 0: any free one); it has no access control, so other "
         "machines may reach it only with --allow-plaintext. Default: none")
      ->check([](const std::string& address) {
        return address.empty() ? "" : Complaint(ParseHostPort(address).status());
      });
  app->add_flag("--reflection", config->reflection,
                "Serve gRPC reflection, for tools like grpcurl; it asks nobody who he is");
  app->add_option("--max-request-bytes", config->max_request_bytes,
                  "Largest request, in bytes; suffixes KiB, MiB, GiB. Larger ones are refused "
                  "(RESOURCE_EXHAUSTED)")
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::Range(int64_t{1} << 10, int64_t{1} << 30))
      ->capture_default_str();
  app->add_option("--max-inflight-bytes", config->max_inflight_bytes,
                  "Bytes of all requests under way; more are refused (RESOURCE_EXHAUSTED)")
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app->add_option("--request-threads", config->request_threads,
                  "Requests handled at the same time; most of them wait for the compiler")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  app->add_option("--request-queue", config->request_queue,
                  "Requests that may wait for a thread; more are refused (RESOURCE_EXHAUSTED)")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 20))
      ->capture_default_str();
}

// How calls share the server.
void AddSharingOptions(CLI::App* app, ServerConfig* config, std::vector<std::string>* limits) {
  app->add_option(
         "--max-streams", config->max_streams,
         "GetKernels calls whose answers are being read, at the pace of their callers; more "
         "are refused (RESOURCE_EXHAUSTED)")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 20))
      ->capture_default_str();
  app->add_option("--max-connections", config->max_connections,
                  "Connections at a time, or as many as the limit of file descriptors leaves; more "
                  "are closed at once")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 20))
      ->capture_default_str();
  app->add_option("--connection-idle-seconds", config->connection_idle_seconds,
                  "A connection without a call for so long is closed; clients open another when "
                  "they need one")
      ->check(CLI::Range(1.0, 86400.0))
      ->capture_default_str();
  app->add_option(
         "--tenant-limit", *limits,
         "TENANT:rate=CALLS_PER_SECOND,burst=CALLS,stored=BYTES: what a tenant may use, '*' "
         "for each that has no limit of its own; parts may be left out. Calls beyond the "
         "rate are refused (RESOURCE_EXHAUSTED); what is stored beyond the bytes puts out "
         "the tenant's own least used entries. May be given more than once. Default: none")
      ->allow_extra_args(false)
      ->check([](const std::string& limit) {
        TenantLimits alone;
        return Complaint(ParseTenantLimit(limit, &alone));
      });
  app->add_option("--call-seconds", config->call_seconds,
                  "Longest a call may take, whatever its own deadline is; not of an administrator")
      ->check(CLI::Range(0.1, 86400.0))
      ->capture_default_str();
  app->add_option(
         "--abandoned-build-seconds", config->abandoned_build_seconds,
         "Planning and compiling that nobody waits for any more goes on for so long, for a "
         "caller that tries again; then it is cancelled. Below 0: it always goes on")
      ->check(CLI::Range(-1.0, 86400.0))
      ->capture_default_str();
}

void AddAccessOptions(CLI::App* app, ServerConfig* config) {
  app->add_option("--tls-cert", config->tls_cert,
                  "Certificate of this server with its chain, PEM; every HOST:PORT of --listen "
                  "speaks TLS then. Read again when it changes. Default: no TLS");
  app->add_option("--tls-key", config->tls_key, "Its private key, PEM without a password");
  app->add_option("--tls-client-ca", config->tls_client_ca,
                  "CA certificates, PEM: clients must show a certificate of one of them, and the "
                  "SPIFFE id in it says who they are. Default: none");
  app->add_option("--tokens", config->tokens,
                  "Who may call: a fusion.v1.Access in protobuf's text format, with the SHA-256 of "
                  "each token (fusionctl token). Read again when it changes. Default: everybody");
  app->add_flag("--allow-plaintext", config->allow_plaintext,
                "Listen without TLS, and with --admin, where other machines can connect");
  app->add_flag("--tenant-namespaces", config->tenant_namespaces,
                "No tenant is answered with what was made for another one: plans and kernels are "
                "kept, shown and compiled for each of them");
  app->add_option("--signing-key", config->signing_keys,
                  "Signs plans and kernels: an Ed25519 private key (PEM), or the hex digits of a "
                  "key for HMAC-SHA256; called as the file without its ending. May be given more "
                  "than once: the first signs, the others are named to clients")
      ->allow_extra_args(false);
}

void AddStoreOptions(CLI::App* app, ServerConfig* config) {
  app->add_option("--store", config->store_dir,
                  "Directory that keeps plans, kernels and logs of failed compiles; one server "
                  "per directory. Default: memory only, lost at exit");
  app->add_option("--store-limit", config->store_limit_bytes,
                  "Bytes of plans and kernels on disk, least used out first; the directory takes "
                  "up to three times that and 192 MiB. 0: nothing goes")
      ->transform(CLI::Validator(NoneIfZero, ""))
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app->add_option("--store-min-free", config->store_min_free_bytes,
                  "Free bytes of the store's file system below which nothing is written; reads "
                  "and answers go on, and writing when there is room again")
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app->add_option("--memory-limit", config->memory_limit_bytes,
                  "Bytes of plans and kernels kept in memory. Answers, graphs and plans of recent "
                  "requests and blocks of the store take up to a quarter of it each, besides")
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
}

void AddPlanOptions(CLI::App* app, ServerConfig* config) {
  app->add_option("--max-opt-level", config->max_opt_level,
                  "Highest level of the search for tiles, which times kernels on this machine, one "
                  "search at a time; requests for more get this one and a warning. 0: no search")
      ->check(CLI::Range(0, kMaxOptLevel))
      ->capture_default_str();
  app->add_option(
      "--rules-file", config->rules_file,
      "Rules that force, forbid or favour kernels, for every request before its own; "
      "a fusion.v1.FusionRules in protobuf's text format, read at start. Default: none");
  app->add_option(
      "--kernels", config->kernels,
      "Registered kernels: C sources for patterns of operators, weighed against generated code; a "
      "fusion.v1.RegisteredKernels in protobuf's text format, or a directory of such files "
      "(*.textproto), read at start with the sources that they name. Default: none");
}

void AddCompileOptions(CLI::App* app, ServerConfig* config) {
  app->add_option("--workers", config->workers,
                  "Worker processes that compile and check kernels. Default: one per core")
      ->check(CLI::Range(1, 1024));
  app->add_option("--worker-memory", config->worker_memory_bytes,
                  "Address space of a worker process, in bytes, at least 128 MiB; 0: no limit")
      ->transform(CLI::AsSizeValue(false))
      ->check(IsWorkerMemory)
      ->capture_default_str();
  app->add_option("--compile-queue", config->compile_queue, "Kernels that may wait for a worker")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 20))
      ->capture_default_str();
  app->add_option("--compile-seconds", config->compile_seconds,
                  "Seconds the compiler may take for one kernel")
      ->check(CLI::Range(0.1, 3600.0))
      ->capture_default_str();
  app->add_option("--compiler", config->compiler,
                  "Compiler of the kernels, absolute path; one of --allow-compiler. Default: the "
                  "first of those that exists");
  app->add_option("--allow-compiler", config->allowed_compilers,
                  "Compilers that may be used, best first, absolute paths, GCC or clang; may be "
                  "given more than once")
      ->allow_extra_args(false)
      ->capture_default_str();
  app->add_option("--scratch", config->scratch_dir,
                  "Directory in which the compilers work, in a directory of their own")
      ->capture_default_str();
}

void AddSandboxOptions(CLI::App* app, ServerConfig* config, std::string* sandbox) {
  app->add_option("--sandbox", *sandbox,
                  "What confines the processes that run compilers and kernels: bwrap (bubblewrap's "
                  "namespaces, and all that follows), landlock (no files but the toolchain's, and "
                  "what follows), seccomp (filtered system calls), none (resource limits only), "
                  "or auto: the strongest that works here. Any other is a condition for starting")
      ->check([](const std::string& name) { return Complaint(ParseSandbox(name).status()); })
      ->capture_default_str();
  app->add_option("--sandbox-readable", config->sandbox_readable,
                  "File or directory, absolute path, that compilers may read besides /usr and "
                  "themselves; for compilers that lie elsewhere. May be given more than once")
      ->allow_extra_args(false)
      ->check([](const std::string& path) -> std::string {
        return path.starts_with('/') ? "" : StrCat(Quote(path), " is no absolute path");
      });
  app->add_option(
         "--failure-ttl-seconds", config->failure_ttl_seconds,
         "Seconds for which a kernel that does not compile, or that its check refuses, and "
         "a plan that took too long, are not tried again. A kernel that killed two workers "
         "is not tried again at all")
      ->check(CLI::Range(0.0, 1e7))
      ->capture_default_str();
}

void AddLifeOptions(CLI::App* app, ServerConfig* config, std::string* level) {
  app->add_option("--log-level", *level,
                  "Least level that is logged: debug, info, warning, error, off. Calls of "
                  "administrators are logged at any")
      ->check([](const std::string& name) -> std::string {
        absl::StatusOr<LogLevel> parsed = ParseLogLevel(name);
        return parsed.ok() ? "" : std::string(Message(parsed.status()));
      })
      ->capture_default_str();
  app->add_option("--drain-seconds", config->drain_seconds,
                  "Seconds between saying 'not ready' and refusing calls, for load balancers to "
                  "notice; 0 where there is none")
      ->check(CLI::Range(0.0, 3600.0))
      ->capture_default_str();
  app->add_option("--grace-seconds", config->grace_seconds,
                  "Seconds that running calls and compiles get to end after that")
      ->check(CLI::Range(0.0, 3600.0))
      ->capture_default_str();
  app->add_option("--log-usual", config->log_usual,
                  "Most calls a second that are logged of those that end OK with a plan from the "
                  "caches; the next line says how many were left out ('left_out'). Below 0: all")
      ->check(CLI::Range(int64_t{-1}, int64_t{1} << 40))
      ->capture_default_str();
  app->add_flag("--exit-with-parent", config->exit_with_parent,
                "Stop when the thread that started this process ends: for a server that belongs to "
                "one program");
}

// The library's words for a name that is no option are not ours.
std::string WordsOf(const CLI::ParseError& error) {
  std::string what = error.what();
  constexpr std::string_view kUnknown = "INI was not able to parse ";
  if (what.starts_with(kUnknown)) what = StrCat("unknown name ", what.substr(kUnknown.size()));
  return what;
}

// What no option can check alone; empty if all is well.
std::string ContradictionIn(const ServerConfig& config) {
  if (config.tls_cert.empty() != config.tls_key.empty()) {
    return config.tls_cert.empty() ? "--tls-key: expected --tls-cert beside it"
                                   : "--tls-cert: expected --tls-key beside it";
  }
  if (!config.tls_client_ca.empty() && config.tls_cert.empty()) {
    return "--tls-client-ca: expected --tls-cert and --tls-key beside it";
  }
  if (config.tenant_namespaces && config.tokens.empty() && config.tls_client_ca.empty()) {
    return "--tenant-namespaces: nobody says who he is; expected --tokens or --tls-client-ca";
  }
  const std::vector<std::string>& allowed = config.allowed_compilers;
  for (const std::string& path : allowed) {
    if (!path.starts_with('/')) {
      return StrCat("--allow-compiler: ", Quote(path), " is no absolute path");
    }
  }
  if (config.compiler.empty() ||
      std::find(allowed.begin(), allowed.end(), config.compiler) != allowed.end()) {
    return "";
  }
  return StrCat("--compiler: ", Quote(config.compiler),
                " is not one of --allow-compiler: ", StrJoin(allowed, ", "));
}

// Values that are words of their own until all of them are known.
struct Words {
  std::string level = "info";
  std::string sandbox{SandboxName(Sandbox::kAuto)};
  std::vector<std::string> tenant_limits;
};

void AddOptions(CLI::App* app, CommandLine* line, Words* words) {
  app->footer(kFooter);
  app->set_version_flag("--version", StrCat("fusiond ", ServerVersion()));
  app->set_config("--config", "", "File with options, one 'name = value' a line");
  app->add_flag("--check-config", line->check_only,
                "Say whether a start with these options would work, and why not; start nothing. "
                "Exit code 0 or 2")
      ->configurable(false);
  app->allow_config_extras(CLI::config_extras_mode::error);
  AddNetworkOptions(app, &line->config);
  AddSharingOptions(app, &line->config, &words->tenant_limits);
  AddAccessOptions(app, &line->config);
  AddStoreOptions(app, &line->config);
  AddPlanOptions(app, &line->config);
  AddCompileOptions(app, &line->config);
  AddSandboxOptions(app, &line->config, &words->sandbox);
  AddLifeOptions(app, &line->config, &words->level);
}

// Gives an entry of a config file as if it were the whole file.
class OneEntry final : public CLI::ConfigTOML {
 public:
  explicit OneEntry(CLI::ConfigItem item) : item_(std::move(item)) {}
  std::vector<CLI::ConfigItem> from_config(std::istream& /*input*/) const override {
    return {item_};
  }

 private:
  CLI::ConfigItem item_;
};

// One line "fusiond: FILE:LINE: ..." for each entry that no option takes; empty if all are well, or
// if there is no such file, which the parser says itself.
std::string CheckConfigFile(const std::string& path, ConfigLines* lines) {
  constexpr int64_t kMaxFileBytes = int64_t{1} << 20;
  absl::StatusOr<std::string> text = ReadFile(path, kMaxFileBytes);
  if (!text.ok()) return "";
  *lines = ConfigLines(path, *text);
  std::istringstream in(*text);
  std::string wrong;
  std::map<std::string, size_t> seen;
  for (const CLI::ConfigItem& item : CLI::ConfigTOML().from_config(in)) {
    CommandLine ignored;
    Words words;
    CLI::App app("", "fusiond");
    AddOptions(&app, &ignored, &words);
    app.config_formatter(std::make_shared<OneEntry>(item));
    const std::string place = lines->Place(item.name, seen[item.name]++);
    try {
      app.parse(std::vector<std::string>{path, "--config"});  // the last word first
    } catch (const CLI::ParseError& error) {
      wrong +=
          StrCat("fusiond: ", place.empty() ? StrCat(path, ": ") : place, WordsOf(error), "\n");
    }
  }
  return wrong;
}

}  // namespace

std::string_view ServerVersion() { return FUSION_VERSION; }

CommandLine ParseCommandLine(int argc, const char* const* argv) {
  CommandLine line;
  line.given.assign(argv + std::min(argc, 1), argv + argc);
  CLI::App app(kSummary, "fusiond");
  Words words;
  AddOptions(&app, &line, &words);
  std::string wrong;
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {  // the library has no other way to say it
    std::ostringstream out, err;
    if (app.exit(error, out, err) == 0) {
      line.exit_code = 0;
      line.text = out.str();
      return line;
    }
    wrong = StrCat("fusiond: ", WordsOf(error), "\n");
  }
  // Which line of the file is to blame only a look at each of them says.
  if (app.get_config_ptr()->count() > 0) {
    std::string in_file = CheckConfigFile(app.get_config_ptr()->as<std::string>(), &line.lines);
    if (!in_file.empty()) wrong = std::move(in_file);
  }
  if (wrong.empty()) {
    std::string contradiction = ContradictionIn(line.config);
    for (const std::string& limit : words.tenant_limits) {
      absl::Status parsed = ParseTenantLimit(limit, &line.config.tenant_limits);
      if (!parsed.ok()) contradiction = StrCat("--tenant-limit: ", Message(parsed));
    }
    if (contradiction.empty() && line.config.store_dir.empty() &&
        line.config.tenant_limits.BoundsStores()) {
      contradiction = "--tenant-limit: stored= bounds what is on disk; expected --store beside it";
    }
    if (!contradiction.empty()) {
      wrong = StrCat("fusiond: ", line.lines.Locate(contradiction, line.given), "\n");
    }
  }
  if (!wrong.empty()) {
    line.exit_code = 2;
    line.text = std::move(wrong);
    return line;
  }
  line.config.sandbox = ParseSandbox(words.sandbox).value_or(Sandbox::kAuto);
  line.config.log_level = ParseLogLevel(words.level).value_or(LogLevel::kInfo);
  if (line.config.workers == 0) {
    line.config.workers = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  }
  return line;
}

}  // namespace fusion
