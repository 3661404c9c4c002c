#include "server/check_config.h"

#include <unistd.h>

#include <filesystem>
#include <set>

#include "core/base/files/file.h"
#include "core/base/files/launcher.h"
#include "core/base/files/scratch.h"
#include "core/base/files/trusted_path.h"
#include "core/base/utc_time.h"
#include "core/cache/rocks/rocks_schema.h"
#include "core/cache/rocks/store_lock.h"
#include "core/compile/toolchain.h"
#include "core/compile/worker_pool.h"
#include "core/plan/rules/rule_match.h"
#include "core/wire/options/registered_kernels.h"
#include "core/wire/options/rules.h"
#include "server/access/known_callers.h"
#include "server/access/signer.h"
#include "server/config/trusted_files.h"
#include "server/observe/status_page.h"
#include "server/options_of.h"
#include "server/transport/listen_address.h"

namespace fusion {
namespace {

class Checker {
 public:
  explicit Checker(const ServerConfig& config) : config_(config) {}

  void Permissions() {
    for (const absl::Status& untrusted : UntrustedFiles(config_)) Untrusted(untrusted);
  }

  void Addresses() {
    const bool forced = config_.allow_plaintext;
    const SocketAccess& access = config_.socket_access;
    if (!access.group.empty()) {
      Found(Annotated(CheckSocketGroup(access.group), "--socket-group"),
            StrCat("--socket-group ", access.group, ": mode ", ModeText(access.mode)));
    }
    for (const std::string& address : config_.listen) {
      const bool tls = !config_.tls_cert.empty() && !address.starts_with("unix:");
      absl::Status works = tls || forced ? absl::OkStatus() : CheckPlaintext(address);
      if (works.ok()) works = Listen("--listen", address);
      Found(works, StrCat("--listen ", address, ": ",
                          tls                       ? "TLS"
                          : IsLocalAddress(address) ? "plaintext, this machine only"
                                                    : "plaintext, for everybody"));
    }
    if (config_.admin.empty()) return;
    absl::Status works = forced ? absl::OkStatus() : CheckOpenAdmin(config_.admin);
    if (works.ok()) works = Listen("--admin", config_.admin);
    Found(works, StrCat("--admin ", config_.admin, ": HTTP, ",
                        IsLocalAddress(config_.admin) ? "this machine only" : "for everybody"));
  }

  void Access() {
    if (!config_.tls_cert.empty()) Certificates();
    if (!config_.tokens.empty()) Tokens();
    Keys("--signing-key", config_.signing_keys, ReadSigningKeys(config_.signing_keys));
    Keys("--import-key", config_.import_keys, ReadImportKeys(config_.import_keys));
  }

  void Files() {
    if (const std::string& path = config_.rules_file; !path.empty()) {
      for (const absl::Status& one : ProblemsOfRulesFile(path, CheckRuleOps)) {
        Found(Annotate(one, "--rules-file"), "");
      }
      absl::StatusOr<Rules> rules = ReadRulesFile(path, CheckRuleOps);
      if (rules.ok()) {
        Found(absl::OkStatus(), StrCat("--rules-file ", path, ": ", rules->size(), " rules"));
      }
    }
    if (const std::string& path = config_.kernels; !path.empty()) {
      for (const absl::Status& one : ProblemsOfRegisteredKernels(path, CheckRuleOps)) {
        Found(Annotate(one, "--kernels"), "");
      }
      absl::StatusOr<RegisteredKernels> kernels = ReadRegisteredKernels(path, CheckRuleOps);
      if (!kernels.ok()) return;
      Found(absl::OkStatus(), StrCat("--kernels ", path, ": ", kernels->size(), " kernels"));
      for (const absl::Status& untrusted : UntrustedSources(*kernels)) Untrusted(untrusted);
    }
  }

  void Store() {
    if (config_.store_dir.empty()) return;
    const std::string what = StrCat("--store ", config_.store_dir);
    absl::Status usable = CanBeMade("--store", config_.store_dir);
    const std::string db = StoreOptionsOf(config_).dir;
    if (!usable.ok() || !std::filesystem::exists(db)) {
      return Found(usable, StrCat(what, ": nothing is stored yet"));
    }
    absl::StatusOr<StoreLock> lock = LockStore(db);
    if (absl::IsFailedPrecondition(lock.status())) {
      Found(Annotate(lock.status(), "--store"), "");
      findings_.back().busy = true;
      return;
    }
    // A server on a full disk still reads its store.
    usable = absl::IsResourceExhausted(lock.status()) ? absl::OkStatus() : lock.status();
    if (usable.ok()) usable = RefuseNewerSchema(db);
    Found(Annotated(usable, "--store"), what);
  }

  void Compiling(const Programs& programs) {
    for (const std::string& program : {programs.worker, programs.exec}) {
      Found(access(program.c_str(), X_OK) == 0 ? absl::OkStatus()
                                               : FailedPrecondition(program, ": no program"),
            StrCat("program ", program));
    }
    absl::StatusOr<Scratch> scratch = Scratch::Create(config_.scratch_dir, "fusiond-");
    Found(Annotated(scratch.status(), "--scratch"), StrCat("--scratch ", config_.scratch_dir));
    if (scratch.ok()) {
      const absl::Status untrusted = CheckTrustedWork("--scratch", scratch->path());
      if (!untrusted.ok()) Untrusted(untrusted);
    } else {
      scratch = Scratch::Create("/tmp", "fusiond-");  // for the rest
      if (!scratch.ok()) return;
    }
    std::unique_ptr<CommandRunner> runner = MakeProcessRunner(programs.exec);
    const ToolchainOptions options = ToolchainOptionsOf(config_, scratch->path());
    absl::StatusOr<Toolchain> toolchain = Toolchain::Open(options, *runner);
    // As at a start: planning needs no compiler.
    const absl::Status why = toolchain.status();
    if (absl::IsFailedPrecondition(why)) {
      Found(absl::OkStatus(),
            StrCat("no compiler: ", Message(why), "; plans are made, kernels are not"));
    } else {
      Found(Annotated(why, "--compiler"), [&] {
        return StrCat("compiler ", toolchain->version(), ", for ", SupportedIsas(*toolchain));
      });
    }
    if (!toolchain.ok()) toolchain = Toolchain::Without(options, why, /*record=*/"");
    absl::StatusOr<SandboxProbe> sandbox =
        ProbeSandbox(WorkerOptionsOf(config_, programs, scratch->path(), *toolchain), *runner);
    Found(Annotated(sandbox.status(), "--sandbox"),
          [&] { return StrCat("--sandbox ", SandboxName(config_.sandbox), ": ", sandbox->level); });
  }

  std::vector<ConfigFinding> Take() { return std::move(findings_); }

 private:
  // Keeps the sockets open, so that two flags with the same address conflict.
  absl::Status Listen(std::string_view flag, const std::string& address) {
    const bool given_before = !given_.insert(address).second && !address.ends_with(":0");
    if (given_before) return FailedPrecondition(flag, ": ", address, " is given twice");
    if (address.starts_with("unix:")) return Annotated(TryListening(address), flag);
    absl::StatusOr<ListeningSockets> sockets = ListenOn(address);
    if (sockets.ok()) held_.push_back(*std::move(sockets));
    return Annotated(sockets.status(), flag);
  }

  void Certificates() {
    const CertificateFiles files = CertificateFilesOf(config_);
    const std::vector<absl::Status> unreadable = UnreadableCertificates(files);
    for (const absl::Status& one : unreadable) Found(one, "");
    if (!unreadable.empty()) return;
    absl::StatusOr<CertificateSet> set = ReadCertificates(files, std::chrono::system_clock::now());
    Found(set.status(), [&] {
      return StrCat("--tls-cert ", config_.tls_cert, ": ", set->subject, ", until ",
                    UtcTimeText(set->expires),
                    set->client_ca_pem.empty() ? "" : "; clients show certificates");
    });
  }

  void Tokens() {
    const std::vector<absl::Status> problems = ProblemsOfKnownCallers(config_.tokens);
    for (const absl::Status& one : problems) Found(Annotate(one, "--tokens"), "");
    if (!problems.empty()) return;
    absl::StatusOr<KnownCallers> callers = ReadKnownCallers(config_.tokens);
    Found(Annotated(callers.status(), "--tokens"), [&] {
      return StrCat("--tokens ", config_.tokens, ": ", callers->tokens.size(), " tokens, ",
                    callers->ids.size() + callers->prefixes.size(), " identities");
    });
  }

  void Keys(std::string_view flag, const std::vector<std::string>& paths,
            const absl::StatusOr<std::vector<SigningKey>>& keys) {
    bool bad = false;
    for (const std::string& path : paths) {
      const absl::Status one = SigningKey::Read(path).status();
      if (!one.ok()) Found(Annotate(one, flag), "");
      bad |= !one.ok();
    }
    if (bad || paths.empty()) return;
    Found(keys.status(), [&] {
      return StrCat(flag, ": ", StrJoin(*keys, ", ", [](const SigningKey& key) {
                      return StrCat(key.id(), " (", SignatureAlgorithmName(key.algorithm()), ")");
                    }));
    });
  }

  // An error, unless --insecure-permissions is given.
  void Untrusted(const absl::Status& why) {
    const bool insists = config_.insecure_permissions;
    Found(insists ? absl::OkStatus() : why,
          StrCat(Message(why), insists ? " (which is given)" : ""));
  }

  static absl::Status Annotated(const absl::Status& status, std::string_view flag) {
    return status.ok() ? status : Annotate(status, flag);
  }

  void Found(const absl::Status& status, std::string what) {
    findings_.push_back({status, IsInUse(status), status.ok() ? std::move(what) : ""});
  }
  template <typename Say>
  requires std::is_invocable_v<Say>
  void Found(const absl::Status& status, Say say) {
    findings_.push_back({status, IsInUse(status), status.ok() ? say() : ""});
  }

  // An existing directory must be writable; else the nearest existing one above it.
  static absl::Status CanBeMade(std::string_view flag, const std::string& path) {
    std::filesystem::path at = AbsolutePath(path);
    std::error_code error;
    while (!std::filesystem::exists(at, error) && at.has_relative_path()) at = at.parent_path();
    if (!std::filesystem::is_directory(at, error)) {
      return FailedPrecondition(flag, ": ", at.string(), " is no directory");
    }
    if (access(at.c_str(), W_OK | X_OK) != 0) {
      return FailedPrecondition(flag, ": nothing can be written into ", at.string());
    }
    return absl::OkStatus();
  }

  const ServerConfig& config_;
  std::set<std::string> given_;  // addresses
  std::vector<ListeningSockets> held_;
  std::vector<ConfigFinding> findings_;
};

}  // namespace

std::vector<ConfigFinding> CheckConfig(const ServerConfig& config, const Programs& programs) {
  Checker checker(config);
  checker.Permissions();
  checker.Addresses();
  checker.Access();
  checker.Files();
  checker.Store();
  checker.Compiling(programs);
  return checker.Take();
}

}  // namespace fusion
