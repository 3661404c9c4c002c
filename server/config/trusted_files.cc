#include "server/config/trusted_files.h"

#include "core/base/files/trusted_path.h"
#include "server/transport/listen_address.h"

namespace fusion {
namespace {

// OK for missing files: reading them reports that.
absl::Status Named(std::string_view flag, const absl::Status& status) {
  if (status.ok() || absl::IsNotFound(status)) return absl::OkStatus();
  return FailedPrecondition(flag, ": ", Message(status), ", or --insecure-permissions");
}

class Findings {
 public:
  void Path(std::string_view flag, const std::string& path) {
    if (!path.empty()) Add(Named(flag, CheckTrustedPath(path)));
  }
  void Tree(std::string_view flag, const std::string& path) {
    if (path.empty()) return;
    absl::Status trusted = CheckTrustedTree(path);
    if (absl::IsNotFound(trusted)) trusted = CheckTrustedPlace(path);  // it will be made
    Add(Named(flag, trusted));
  }
  void Place(std::string_view flag, const std::string& path) {
    if (!path.empty()) Add(Named(flag, CheckTrustedPlace(path)));
  }
  std::vector<absl::Status> Take() { return std::move(out_); }

 private:
  void Add(absl::Status status) {
    if (!status.ok()) out_.push_back(std::move(status));
  }
  std::vector<absl::Status> out_;
};

}  // namespace

std::vector<absl::Status> UntrustedFiles(const ServerConfig& config) {
  Findings findings;
  findings.Path("--config", config.config_file);
  for (const std::string& address : config.listen) {
    findings.Place("--listen", UnixSocketPath(address));
  }
  findings.Tree("--store", config.store_dir);
  findings.Path("--tokens", config.tokens);
  findings.Path("--tls-cert", config.tls_cert);
  findings.Path("--tls-key", config.tls_key);
  findings.Path("--tls-client-ca", config.tls_client_ca);
  for (const std::string& path : config.signing_keys) findings.Path("--signing-key", path);
  for (const std::string& path : config.import_keys) findings.Path("--import-key", path);
  findings.Path("--rules-file", config.rules_file);
  findings.Tree("--kernels", config.kernels);
  for (const std::string& path : config.allowed_compilers) findings.Path("--allow-compiler", path);
  return findings.Take();
}

std::vector<absl::Status> UntrustedSources(const RegisteredKernels& kernels) {
  Findings findings;
  for (const auto& kernel : kernels) findings.Path("--kernels", kernel->path);
  return findings.Take();
}

absl::Status CheckTrustedWork(std::string_view flag, const std::string& directory) {
  return Named(flag, CheckTrustedPath(directory));
}

}  // namespace fusion
