#include "server/check_config.h"

#include <unistd.h>

#include <filesystem>

#include "core/base/file.h"
#include "core/base/launcher.h"
#include "core/base/scratch.h"
#include "core/compile/toolchain.h"
#include "core/compile/worker_pool.h"
#include "core/plan/rule_match.h"
#include "core/wire/registered_kernels.h"
#include "core/wire/rules.h"
#include "server/certificates.h"
#include "server/known_callers.h"
#include "server/listen_address.h"
#include "server/signer.h"
#include "server/status_page.h"
#include "server/utc_time.h"

namespace fusion {
namespace {

class Checker {
 public:
  explicit Checker(const ServerConfig& config) : config_(config) {}

  void Addresses() {
    for (const std::string& address : config_.listen) {
      const bool tls = !config_.tls_cert.empty() && !address.starts_with("unix:");
      absl::Status allowed =
          tls || config_.allow_plaintext ? absl::OkStatus() : CheckPlaintext(address);
      Found(allowed, StrCat("--listen ", address, ": ",
                            tls                       ? "TLS"
                            : IsLocalAddress(address) ? "plaintext, this machine only"
                                                      : "plaintext, for everybody"));
    }
  }

  void Access() {
    if (!config_.tls_cert.empty()) {
      absl::StatusOr<CertificateSet> set =
          ReadCertificates(CertificateFilesOf(config_), std::chrono::system_clock::now());
      Found(set.status(), [&] {
        return StrCat("--tls-cert ", config_.tls_cert, ": ", set->subject, ", until ",
                      UtcTimeText(set->expires),
                      set->client_ca_pem.empty() ? "" : "; clients show certificates");
      });
    }
    if (!config_.tokens.empty()) {
      absl::StatusOr<KnownCallers> callers = ReadKnownCallers(config_.tokens);
      Found(Annotated(callers.status(), "--tokens"), [&] {
        return StrCat("--tokens ", config_.tokens, ": ", callers->tokens.size(), " tokens, ",
                      callers->ids.size() + callers->prefixes.size(), " identities");
      });
    }
    if (config_.signing_keys.empty()) return;
    absl::StatusOr<std::vector<SigningKey>> keys = ReadSigningKeys(config_.signing_keys);
    Found(keys.status(), [&] {
      return StrCat("--signing-key: ", StrJoin(*keys, ", ", [](const SigningKey& key) {
                      return StrCat(key.id(), " (", SignatureAlgorithmName(key.algorithm()), ")");
                    }));
    });
  }

  void Files() {
    if (!config_.rules_file.empty()) {
      absl::StatusOr<Rules> rules = ReadRulesFile(config_.rules_file, CheckRuleOps);
      Found(Annotated(rules.status(), "--rules-file"), [&] {
        return StrCat("--rules-file ", config_.rules_file, ": ", rules->size(), " rules");
      });
    }
    if (!config_.kernels.empty()) {
      absl::StatusOr<RegisteredKernels> kernels =
          ReadRegisteredKernels(config_.kernels, CheckRuleOps);
      Found(Annotated(kernels.status(), "--kernels"), [&] {
        return StrCat("--kernels ", config_.kernels, ": ", kernels->size(), " kernels");
      });
    }
    if (!config_.store_dir.empty()) {
      Found(CanBeMade("--store", config_.store_dir), StrCat("--store ", config_.store_dir));
    }
  }

  void Compiler(const Programs& programs) {
    absl::Status worker = access(programs.worker.c_str(), X_OK) == 0
                              ? absl::OkStatus()
                              : FailedPrecondition(programs.worker, ": no program");
    Found(worker, StrCat("worker ", programs.worker));
    absl::StatusOr<Scratch> scratch = Scratch::Create(config_.scratch_dir, "fusiond-");
    Found(Annotated(scratch.status(), "--scratch"), StrCat("--scratch ", config_.scratch_dir));
    if (!scratch.ok()) return;
    std::unique_ptr<CommandRunner> runner = MakeProcessRunner(programs.exec);
    ToolchainOptions options;
    options.compiler = config_.compiler;
    options.allowed = config_.allowed_compilers;
    options.scratch_dir = scratch->path();
    absl::StatusOr<Toolchain> toolchain = Toolchain::Open(options, *runner);
    // As at a start: plans need none.
    if (absl::IsFailedPrecondition(toolchain.status())) {
      Found(absl::OkStatus(), StrCat("no compiler: ", Message(toolchain.status()),
                                     "; plans are made, kernels are not"));
      return;
    }
    Found(Annotated(toolchain.status(), "--compiler"), [&] {
      return StrCat("compiler ", toolchain->version(), ", for ", SupportedIsas(*toolchain));
    });
  }

  std::vector<ConfigFinding> Take() { return std::move(findings_); }

 private:
  static absl::Status Annotated(const absl::Status& status, std::string_view flag) {
    return status.ok() ? status : Annotate(status, flag);
  }

  void Found(const absl::Status& status, std::string what) {
    findings_.push_back({status, status.ok() ? std::move(what) : ""});
  }
  template <typename Say>
  requires std::is_invocable_v<Say>
  void Found(const absl::Status& status, Say say) {
    findings_.push_back({status, status.ok() ? say() : ""});
  }

  // A directory that is there must be ours to write; else the first one above it that is.
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
  std::vector<ConfigFinding> findings_;
};

}  // namespace

CertificateFiles CertificateFilesOf(const ServerConfig& config) {
  return {.certificate = config.tls_cert, .key = config.tls_key, .client_ca = config.tls_client_ca};
}

std::vector<ConfigFinding> CheckConfig(const ServerConfig& config, const Programs& programs) {
  Checker checker(config);
  checker.Addresses();
  checker.Access();
  checker.Files();
  checker.Compiler(programs);
  return checker.Take();
}

}  // namespace fusion
