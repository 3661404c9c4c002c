#include "server/config/config.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <map>
#include <thread>

#include "core/base/contains.h"
#include "core/base/files/file.h"
#include "core/base/parse/host_port.h"
#include "core/base/text/nearest_word.h"
#include "core/base/text/number_word.h"
#include "core/base/text/utf8.h"
#include "core/base/text/wrapped_text.h"
#include "server/transport/allowed_hosts.h"

namespace fusion {
namespace {

constexpr const char* kSummary =
    "fusiond serves PlanFusion and GetKernels over gRPC: it plans which operators of a graph run "
    "as one kernel, compiles the kernels in worker processes, and stores plans and kernels.\n"
    "Every option can be set in the --config file under its name without dashes.";

constexpr const char* kFooter =
    "Example:\n"
    "  fusiond --listen unix:/run/fusiond.sock --listen 127.0.0.1:50051 --store "
    "/var/lib/fusiond\n\n"
    "Signals: SIGTERM and SIGINT drain and stop, within drain-seconds + 2 * grace-seconds; another "
    "SIGINT stops at once. SIGHUP reloads certificates and tokens.\n"
    "Exit codes: 0 stopped on request, 1 startup failure or fatal error, 2 bad flags or config "
    "file.";

constexpr int64_t kMaxConfigBytes = int64_t{1} << 20;

// For CLI11: empty means valid.
std::string Complaint(const absl::Status& status) { return std::string(Message(status)); }

// Add it after AsSizeValue: CLI11 runs the last transform first.
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

void AddNetworkOptions(CLI::App* app, ServerConfig* config, std::string* socket_mode) {
  app->add_option("--listen", config->listen,
                  "Address of the gRPC service, HOST:PORT (port 0: any free one) or unix:/PATH; "
                  "may be given more than once")
      ->allow_extra_args(false)
      ->check([](const std::string& address) { return Complaint(CheckListenAddress(address)); })
      ->capture_default_str();
  app->add_option("--socket-mode", *socket_mode,
                  "Octal mode of the socket files of --listen, which controls who may connect. "
                  "Default: 0600, or 0660 with --socket-group")
      ->check([](const std::string& mode) {
        return mode.empty() ? "" : Complaint(ParseSocketMode(mode).status());
      });
  app->add_option("--socket-group", config->socket_access.group,
                  "Group (name or number) of the socket files of --listen; its members may plan "
                  "and report. Default: the group of this process");
  app->add_option(
         "--admin", config->admin,
         "HOST:PORT of the admin port with pages for people, /metrics, /healthz, /readyz, /statusz "
         "and /compile_log over HTTP (port 0: any free one). With --tokens the pages for people "
         "need a token with the role admin; the others are unauthenticated. An address that other "
         "machines can reach requires --allow-plaintext. Default: none")
      ->check([](const std::string& address) {
        return address.empty() ? "" : Complaint(ParseHostPort(address).status());
      });
  app->add_option("--admin-host", config->admin_hosts,
                  "Additional host name of the admin port, besides IP addresses, localhost and the "
                  "host of --admin. Other names in the Host header are refused (421), so that web "
                  "pages cannot read it through a browser. '*': any. May be given more than once. "
                  "Default: none")
      ->allow_extra_args(false)
      ->check([](const std::string& name) -> std::string {
        return name == "*" || IsHostName(name)
                   ? ""
                   : StrCat(QuoteShort(name), "; expected a host name, or '*'");
      });
  app->add_flag("--reflection", config->reflection,
                "Serve gRPC reflection, for tools like grpcurl; it is unauthenticated");
  app->add_option("--max-request-bytes", config->max_request_bytes,
                  "Maximum request size in bytes; suffixes KiB, MiB, GiB. Larger requests are "
                  "refused (RESOURCE_EXHAUSTED)")
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::Range(int64_t{1} << 10, int64_t{1} << 30))
      ->capture_default_str();
  app->add_option(
         "--max-inflight-bytes", config->max_inflight_bytes,
         "Maximum total bytes of requests in flight; more are refused (RESOURCE_EXHAUSTED). "
         "Importing and planning use up to three quarters of this in addition")
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app->add_option("--planning-bytes", config->planning_bytes,
                  "Maximum bytes of memory for importing or planning one request; requests that "
                  "need more are refused (RESOURCE_EXHAUSTED)")
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app->add_option("--planning-steps", config->planning_steps,
                  "Maximum steps, mostly allocations, for importing or planning one request; "
                  "requests that need more are refused (RESOURCE_EXHAUSTED)")
      ->check(CLI::Range(int64_t{1}, INT64_MAX))
      ->capture_default_str();
  app->add_option("--request-threads", config->request_threads,
                  "Maximum number of concurrent requests; most wait for the compiler")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  app->add_option("--request-queue", config->request_queue,
                  "Maximum number of requests waiting for a thread; more are refused "
                  "(RESOURCE_EXHAUSTED)")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 20))
      ->capture_default_str();
}

// Limits by which calls share the server.
void AddSharingOptions(CLI::App* app, ServerConfig* config, std::vector<std::string>* limits) {
  app->add_option(
         "--max-streams", config->max_streams,
         "Maximum number of GetKernels responses being read, at their callers' pace; more are "
         "refused (RESOURCE_EXHAUSTED)")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 20))
      ->capture_default_str();
  app->add_option("--max-connections", config->max_connections,
                  "Maximum number of concurrent connections, also bounded by the file descriptor "
                  "limit; more are closed at once")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 20))
      ->capture_default_str();
  app->add_option("--connection-idle-seconds", config->connection_idle_seconds,
                  "Seconds without a call after which a connection is closed; clients reconnect "
                  "when needed")
      ->check(CLI::Range(1.0, 86400.0))
      ->check(NumberError)
      ->capture_default_str();
  app->add_option(
         "--tenant-limit", *limits,
         "TENANT:rate=CALLS_PER_SECOND,burst=CALLS,stored=BYTES: limits of a tenant, '*' for each "
         "tenant without its own limits; parts are optional. Calls beyond the rate are refused "
         "(RESOURCE_EXHAUSTED); beyond the stored bytes the tenant's least used entries are "
         "evicted. May be given more than once. Default: none")
      ->allow_extra_args(false)
      ->check([](const std::string& limit) {
        TenantLimits alone;
        return Complaint(ParseTenantLimit(limit, &alone));
      });
  app->add_option("--call-seconds", config->call_seconds,
                  "Maximum duration of a call in seconds, regardless of its own deadline; "
                  "administrators are exempt")
      ->check(CLI::Range(0.1, 86400.0))
      ->check(NumberError)
      ->capture_default_str();
  app->add_option(
         "--abandoned-build-seconds", config->abandoned_build_seconds,
         "Grace period in seconds before abandoned planning and compiling is cancelled, for "
         "callers that retry. Below 0: it is never cancelled")
      ->check(CLI::Range(-1.0, 86400.0))
      ->check(NumberError)
      ->capture_default_str();
}

void AddAccessOptions(CLI::App* app, ServerConfig* config) {
  app->add_option("--tls-cert", config->tls_cert,
                  "Certificate of this server with its chain, PEM; every HOST:PORT of --listen "
                  "then uses TLS. Reloaded when it changes. Default: no TLS");
  app->add_option("--tls-key", config->tls_key,
                  "Private key of --tls-cert, PEM without a password");
  app->add_option("--tls-client-ca", config->tls_client_ca,
                  "CA certificates, PEM: clients must present a certificate of one of them; its "
                  "SPIFFE id identifies the client. Default: none");
  app->add_option(
      "--tokens", config->tokens,
      "Authorised callers: a fusion.v1.Access in protobuf's text format, with the SHA-256 of each "
      "token (fusionctl token). Reloaded when it changes. Default: everybody may plan and report; "
      "on a unix socket this process's user and root may do everything");
  app->add_flag("--allow-plaintext", config->allow_plaintext,
                "Allow addresses that other machines can reach, for --listen without TLS and for "
                "--admin");
  app->add_flag("--tenant-namespaces", config->tenant_namespaces,
                "Isolate tenants: plans and kernels are stored, shown and compiled per tenant, and "
                "never shared");
  app->add_option("--signing-key", config->signing_keys,
                  "Key that signs plans and kernels: an Ed25519 private key (PEM), or hex digits "
                  "for HMAC-SHA256; its id is the file name without extension. May be given more "
                  "than once: the first signs, the others are listed to clients")
      ->allow_extra_args(false);
  app->add_option("--import-key", config->import_keys,
                  "'store import' accepts entries signed by this key as they are: the "
                  "--signing-key of the exporting server, or its public half (PEM). Other entries "
                  "are rebuilt here and compared. May be given more than once")
      ->allow_extra_args(false);
  app->add_flag("--insecure-permissions", config->insecure_permissions,
                "Start even if other users can write the store, keys, tokens, configuration, "
                "rules, registered kernels or compilers");
}

void AddStoreOptions(CLI::App* app, ServerConfig* config) {
  app->add_option("--store", config->store_dir,
                  "Directory for plans, kernels and logs of failed compiles; one server per "
                  "directory. Default: memory only, lost at exit");
  app->add_option("--store-limit", config->store_limit_bytes,
                  "Maximum bytes of plans and kernels on disk; the least used entries are evicted "
                  "first. The directory takes up to three times that plus 192 MiB. 0: no limit")
      ->transform(CLI::Validator(NoneIfZero, ""))
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app->add_option("--store-min-free", config->store_min_free_bytes,
                  "Free bytes of the store's file system below which nothing is written; reads and "
                  "answers continue, and writes resume when there is space")
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app->add_option("--memory-limit", config->memory_limit_bytes,
                  "Maximum bytes of plans and kernels in memory. Answers, graphs and plans of "
                  "recent requests and blocks of the store take up to an eighth of this each in "
                  "addition")
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
}

void AddPlanOptions(CLI::App* app, ServerConfig* config) {
  app->add_option("--max-opt-level", config->max_opt_level,
                  "Highest level of the tile search, which times kernels on this machine, one "
                  "search at a time; requests for more get this level and a warning. 0: no search")
      ->check(CLI::Range(0, kMaxOptLevel))
      ->capture_default_str();
  app->add_option("--learn", config->learn,
                  "Fit the constants of devices to reported latencies, and plan with what predicts "
                  "them better. false: plans are made with the constants of the device specs")
      ->capture_default_str();
  app->add_option("--canary-percent", config->canary_percent,
                  "Share of new plans that are made with newly fitted constants before all are")
      ->check(CLI::Range(0, 100))
      ->capture_default_str();
  app->add_option(
      "--rules-file", config->rules_file,
      "Rules that force, forbid or favour kernels, applied to every request before its own rules; "
      "a fusion.v1.FusionRules in protobuf's text format, read at start. Default: none");
  app->add_option(
      "--kernels", config->kernels,
      "Registered kernels: C sources for operator patterns, weighed against generated code; a "
      "fusion.v1.RegisteredKernels in protobuf's text format, or a directory of such files "
      "(*.textproto), read at start with the sources they name. Default: none");
}

void AddCompileOptions(CLI::App* app, ServerConfig* config) {
  app->add_option("--workers", config->workers,
                  "Worker processes that compile and check kernels. Default: one per core")
      ->check(CLI::Range(1, 1024));
  app->add_option(
         "--worker-memory", config->worker_memory_bytes,
         "Maximum address space of a worker process in bytes, at least 128 MiB; 0: no limit")
      ->transform(CLI::AsSizeValue(false))
      ->check(IsWorkerMemory)
      ->capture_default_str();
  app->add_option("--compile-queue", config->compile_queue,
                  "Maximum number of kernels waiting for a worker")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 20))
      ->capture_default_str();
  app->add_option("--compile-seconds", config->compile_seconds,
                  "Maximum compile time of one kernel in seconds")
      ->check(CLI::Range(0.1, 3600.0))
      ->check(NumberError)
      ->capture_default_str();
  app->add_option("--compiler", config->compiler,
                  "Absolute path of the kernel compiler, one of --allow-compiler. Default: the "
                  "first of those that exists");
  app->add_option("--allow-compiler", config->allowed_compilers,
                  "Allowed compilers (GCC or clang), absolute paths, preferred first; may be given "
                  "more than once")
      ->allow_extra_args(false)
      ->capture_default_str();
  app->add_option("--scratch", config->scratch_dir,
                  "Directory in which the compilers' working directory is created")
      ->capture_default_str();
}

void AddSandboxOptions(CLI::App* app, ServerConfig* config, std::string* sandbox) {
  app->add_option("--sandbox", *sandbox,
                  "Sandbox of the processes that run compilers and kernels: bwrap (bubblewrap's "
                  "namespaces, plus all below), landlock (toolchain files only, plus all below), "
                  "seccomp (filtered system calls), none (resource limits only), or auto: the "
                  "strongest that works here. Any other is required for startup")
      ->check([](const std::string& name) { return Complaint(ParseSandbox(name).status()); })
      ->capture_default_str();
  app->add_option("--sandbox-readable", config->sandbox_readable,
                  "Absolute path of a file or directory that compilers may read besides /usr and "
                  "themselves; for compilers outside /usr. May be given more than once")
      ->allow_extra_args(false)
      ->check([](const std::string& path) -> std::string {
        return path.starts_with('/') ? "" : StrCat(Quote(path), " is no absolute path");
      });
  app->add_option(
         "--failure-ttl-seconds", config->failure_ttl_seconds,
         "Seconds before a kernel that fails to compile or fails its check, or a plan that took "
         "too long, is retried. A kernel that killed two workers is not retried at all")
      ->check(CLI::Range(0.0, 1e7))
      ->check(NumberError)
      ->capture_default_str();
}

void AddLifeOptions(CLI::App* app, ServerConfig* config, std::string* level) {
  app->add_option("--log-level", *level,
                  "Minimum log level: debug, info, warning, error, off. Calls of administrators "
                  "are always logged")
      ->check([](const std::string& name) -> std::string {
        absl::StatusOr<LogLevel> parsed = ParseLogLevel(name);
        return parsed.ok() ? "" : std::string(Message(parsed.status()));
      })
      ->capture_default_str();
  app->add_option("--drain-seconds", config->drain_seconds,
                  "Seconds between reporting 'not ready' and refusing calls, for load balancers to "
                  "notice; 0 without one")
      ->check(CLI::Range(0.0, 3600.0))
      ->check(NumberError)
      ->capture_default_str();
  app->add_option("--grace-seconds", config->grace_seconds,
                  "Seconds for running calls and compiles to finish after --drain-seconds")
      ->check(CLI::Range(0.0, 3600.0))
      ->check(NumberError)
      ->capture_default_str();
  app->add_option("--log-usual", config->log_usual,
                  "Maximum logged calls per second of those that end OK with a plan from the "
                  "caches; the next line has the number omitted ('left_out'). Below 0: all")
      ->check(CLI::Range(int64_t{-1}, int64_t{1} << 40))
      ->capture_default_str();
  app->add_flag("--exit-with-parent", config->exit_with_parent,
                "Stop when the thread that started this process ends, for a server owned by one "
                "program");
}

// The error text; replaces CLI11's text for unknown options.
std::string WordsOf(const CLI::ParseError& error) {
  std::string what = error.what();
  constexpr std::string_view kUnknown = "INI was not able to parse ";
  if (what.starts_with(kUnknown)) what = StrCat("unknown name ", what.substr(kUnknown.size()));
  return what;
}

// Values that stay text until all options have been parsed.
struct Words {
  std::string level = "info";
  std::string sandbox{SandboxName(Sandbox::kAuto)};
  std::string socket_mode;
  std::vector<std::string> tenant_limits;
};

// Errors that concern several options: one "--flag: ..." each.
std::vector<std::string> ContradictionsIn(const ServerConfig& config, const Words& words) {
  std::vector<std::string> out;
  auto unless = [&out](bool fine, std::string complaint) {
    if (!fine) out.push_back(std::move(complaint));
  };
  const bool certificate = !config.tls_cert.empty();
  unless(certificate || config.tls_key.empty(), "--tls-key: expected --tls-cert beside it");
  unless(!certificate || !config.tls_key.empty(), "--tls-cert: expected --tls-key beside it");
  unless(certificate || config.tls_client_ca.empty(),
         "--tls-client-ca: expected --tls-cert and --tls-key beside it");
  unless(!config.tenant_namespaces || !config.tokens.empty() || !config.tls_client_ca.empty(),
         "--tenant-namespaces: nobody says who he is; expected --tokens or --tls-client-ca");
  unless(config.socket_access.group.empty() || (config.socket_access.mode & 0060) == 0060,
         StrCat("--socket-mode: ", words.socket_mode,
                " keeps the group of --socket-group out; expected 0660"));
  const std::vector<std::string>& allowed = config.allowed_compilers;
  for (const std::string& path : allowed) {
    unless(path.starts_with('/'),
           StrCat("--allow-compiler: ", Quote(path), " is no absolute path"));
  }
  unless(config.compiler.empty() || Contains(allowed, config.compiler),
         StrCat("--compiler: ", Quote(config.compiler),
                " is not one of --allow-compiler: ", StrJoin(allowed, ", ")));
  unless(!config.store_dir.empty() || !config.tenant_limits.BoundsStores(),
         "--tenant-limit: stored= bounds what is on disk; expected --store beside it");
  return out;
}

void AddOptions(CLI::App* app, CommandLine* line, Words* words) {
  app->footer(kFooter);
  app->set_version_flag("--version", StrCat("fusiond ", ServerVersion()));
  app->set_config("--config", "", "File with options, one 'name = value' per line")
      ->check([](const std::string& path) {
        return Complaint(ReadFile(path, kMaxConfigBytes).status());
      });
  app->add_flag("--check-config", line->check_only,
                "Check whether a start with these options would work, report why not, and exit. "
                "Exit code 0 or 2")
      ->configurable(false);
  app->allow_config_extras(CLI::config_extras_mode::error);
  AddNetworkOptions(app, &line->config, &words->socket_mode);
  AddSharingOptions(app, &line->config, &words->tenant_limits);
  AddAccessOptions(app, &line->config);
  AddStoreOptions(app, &line->config);
  AddPlanOptions(app, &line->config);
  AddCompileOptions(app, &line->config);
  AddSandboxOptions(app, &line->config, &words->sandbox);
  AddLifeOptions(app, &line->config, &words->level);
}

// A config formatter that returns given entries as if they were the whole file.
class SomeEntries final : public CLI::ConfigTOML {
 public:
  explicit SomeEntries(std::vector<CLI::ConfigItem> entries) : entries_(std::move(entries)) {}
  std::vector<CLI::ConfigItem> from_config(std::istream& /*input*/) const override {
    return entries_;
  }

 private:
  std::vector<CLI::ConfigItem> entries_;
};

// A command line and the entries of its config file without those that are invalid by themselves.
struct Sifted {
  std::vector<std::string> words;  // without the program's name
  std::vector<CLI::ConfigItem> items;
  std::vector<std::string> problems;  // "FILE:LINE: ..." or "--flag: ..."
};

// Wraps CLI11's help text, whose descriptions are single lines of any length.
std::string WrappedHelp(const std::string& text) {
  constexpr size_t kColumns = 100;
  constexpr size_t kDescriptions = 30;  // CLI::FormatterBase's width of names
  return StrJoin(StrSplit(text, '\n'), "\n", [&](std::string_view line) {
    const bool option = line.starts_with("  -") || line.starts_with("      ");
    return Wrapped(line, kColumns, option ? kDescriptions : 0);
  });
}

// For an unknown option: a suggestion.
std::string MeantOption(const CLI::App& app, std::string_view name) {
  std::vector<std::string> known;
  const bool dashes = name.starts_with("--");
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& one : option->get_lnames()) {
      known.push_back(StrCat(dashes ? "--" : "", one));
    }
  }
  name = name.substr(0, name.find('='));
  return Contains(known, std::string(name)) ? "" : DidYouMean(name, known);
}

// The error of one option parsed alone; empty: none.
std::string WhyNot(std::vector<std::string> words, std::vector<CLI::ConfigItem> items) {
  const std::string name = items.empty() ? words.front() : items.front().name;
  CommandLine ignored;
  Words more;
  CLI::App app("", "fusiond");
  AddOptions(&app, &ignored, &more);
  app.config_formatter(std::make_shared<SomeEntries>(std::move(items)));
  std::reverse(words.begin(), words.end());  // CLI11 wants them reversed
  try {
    app.parse(std::move(words));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) return StrCat(WordsOf(error), MeantOption(app, name));
  }
  return "";
}

// If `path` cannot be read, the check of --config reports it.
void SiftConfigFile(const std::string& path, ConfigLines* lines, Sifted* out) {
  absl::StatusOr<std::string> text = ReadFile(path, kMaxConfigBytes);
  if (!text.ok()) return;
  *lines = ConfigLines(path, *text);
  std::istringstream in(*text);
  std::map<std::string, size_t> seen;
  for (const CLI::ConfigItem& item : CLI::ConfigTOML().from_config(in)) {
    const std::string place = lines->Place(item.name, seen[item.name]++);
    const std::string why = WhyNot({"--config", path}, {item});
    if (why.empty()) {
      out->items.push_back(item);
    } else {
      out->problems.push_back(StrCat(place.empty() ? StrCat(path, ": ") : place, why));
    }
  }
}

// An option begins with two dashes and has at most one value, which follows it.
void SiftCommandLine(const std::vector<std::string>& given, Sifted* out) {
  for (size_t i = 0; i < given.size();) {
    std::vector<std::string> group = {given[i++]};
    const bool option = group[0].starts_with("--") && group[0].find('=') == std::string::npos;
    if (option && i < given.size() && !given[i].starts_with("--")) group.push_back(given[i++]);
    const std::string why = WhyNot(group, {});
    if (why.empty()) {
      out->words.insert(out->words.end(), group.begin(), group.end());
    } else {
      out->problems.push_back(why);
    }
  }
}

// Converts `words` and stores them in the configuration.
void TakeWords(const Words& words, CommandLine* line, std::vector<std::string>* problems) {
  ServerConfig& config = line->config;
  for (const std::string& limit : words.tenant_limits) {
    absl::Status parsed = ParseTenantLimit(limit, &config.tenant_limits);
    if (!parsed.ok()) problems->push_back(StrCat("--tenant-limit: ", Message(parsed)));
  }
  config.sandbox = ParseSandbox(words.sandbox).value_or(Sandbox::kAuto);
  config.log_level = ParseLogLevel(words.level).value_or(LogLevel::kInfo);
  if (config.workers == 0) {
    config.workers = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  }
  constexpr mode_t kForGroup = 0660;
  SocketAccess& access = config.socket_access;
  if (!access.group.empty()) access.mode = kForGroup;
  if (!words.socket_mode.empty()) {
    access.mode = ParseSocketMode(words.socket_mode).value_or(access.mode);
  }
}

// Parses the valid entries, so that --check-config can check them further.
void ParseSound(const Sifted& sifted, CommandLine* line, Words* words) {
  CLI::App app("", "fusiond");
  AddOptions(&app, line, words);
  app.config_formatter(std::make_shared<SomeEntries>(sifted.items));
  std::vector<std::string> reversed(sifted.words.rbegin(), sifted.words.rend());
  try {
    app.parse(std::move(reversed));
  } catch (const CLI::ParseError&) {
    // The errors have been reported already.
  }
}

}  // namespace

std::string_view ServerVersion() { return FUSION_VERSION; }

CommandLine ParseCommandLine(int argc, const char* const* argv) {
  CommandLine line;
  line.given.assign(argv + std::min(argc, 1), argv + argc);
  CLI::App app(kSummary, "fusiond");
  Words words;
  AddOptions(&app, &line, &words);
  Sifted sifted;
  std::string failure;
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {  // CLI11 reports errors only by exceptions
    std::ostringstream out, err;
    if (app.exit(error, out, err) == 0) {
      line.exit_code = 0;
      line.text = WrappedHelp(out.str());
      return line;
    }
    // CLI11 stops at the first error: parse every option alone to find all of them.
    SiftCommandLine(line.given, &sifted);
    failure = WordsOf(error);
  }
  if (app.get_config_ptr()->count() > 0) {
    line.config.config_file = app.get_config_ptr()->results().back();
    SiftConfigFile(line.config.config_file, &line.lines, &sifted);
  }
  if (sifted.problems.empty() && !failure.empty()) sifted.problems.push_back(failure);
  const bool sound = sifted.problems.empty();
  if (!sound && Contains(line.given, std::string("--check-config"))) {
    line.check_only = true;
    ParseSound(sifted, &line, &words);
  }
  if (sound || line.check_only) {
    std::vector<std::string> more;
    TakeWords(words, &line, &more);
    for (std::string& one : ContradictionsIn(line.config, words)) more.push_back(std::move(one));
    for (const std::string& one : more) {
      sifted.problems.push_back(line.lines.Locate(one, line.given));
    }
  }
  if (line.check_only) {
    line.problems = std::move(sifted.problems);
  } else if (!sifted.problems.empty()) {
    line.exit_code = 2;
    for (const std::string& one : sifted.problems) {
      line.text += StrCat("fusiond: ", OneLine(one), "\n");
    }
  }
  return line;
}

}  // namespace fusion
