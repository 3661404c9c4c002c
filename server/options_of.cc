#include "server/options_of.h"

#include "server/transport/listen_address.h"

namespace fusion {

CertificateFiles CertificateFilesOf(const ServerConfig& config) {
  return {.certificate = config.tls_cert,
          .key = config.tls_key,
          .client_ca = config.tls_client_ca,
          .trusted_only = !config.insecure_permissions};
}

ToolchainOptions ToolchainOptionsOf(const ServerConfig& config, const std::string& scratch_dir) {
  ToolchainOptions options;
  options.compiler = config.compiler;
  options.allowed = config.allowed_compilers;
  options.scratch_dir = scratch_dir;
  return options;
}

WorkerProcessOptions WorkerOptionsOf(const ServerConfig& config, const Programs& programs,
                                     const std::string& scratch_dir, const Toolchain& toolchain) {
  WorkerProcessOptions options{.worker_path = programs.worker,
                               .exec_path = programs.exec,
                               .scratch_dir = scratch_dir,
                               .memory_bytes = config.worker_memory_bytes,
                               .sandbox = config.sandbox,
                               .readable = toolchain.files()};
  const std::vector<std::string>& more = config.sandbox_readable;
  options.readable.insert(options.readable.end(), more.begin(), more.end());
  return options;
}

int64_t RecentBytesOf(const ServerConfig& config) { return config.memory_limit_bytes / 8; }

RocksStoreOptions StoreOptionsOf(const ServerConfig& config) {
  RocksStoreOptions options;
  options.dir = StrCat(config.store_dir, "/db");
  options.budget_bytes = config.store_limit_bytes;
  options.tenant_budget = [limits = config.tenant_limits](const std::string& tenant) {
    return limits.Of(tenant).stored_bytes;
  };
  options.min_free_bytes = config.store_min_free_bytes;
  options.block_cache_bytes = RecentBytesOf(config);
  return options;
}

absl::Status CheckExposure(const ServerConfig& config) {
  if (config.allow_plaintext) return absl::OkStatus();
  if (config.tls_cert.empty()) {
    for (const std::string& address : config.listen) {
      RETURN_IF_ERROR(CheckPlaintext(address));
    }
  }
  if (config.admin.empty()) return absl::OkStatus();
  return CheckOpenAdmin(config.admin);
}

}  // namespace fusion
