#pragma once

#include <string>

#include "core/cache/rocks/rocks_store.h"
#include "core/compile/toolchain.h"
#include "core/compile/worker_process.h"
#include "server/config/config.h"
#include "server/daemon.h"
#include "server/transport/certificates.h"

namespace fusion {

// Options of the server's parts, from its configuration. Used by Daemon and CheckConfig.

CertificateFiles CertificateFilesOf(const ServerConfig& config);

/// `scratch_dir`: the server's own scratch directory.
ToolchainOptions ToolchainOptionsOf(const ServerConfig& config, const std::string& scratch_dir);

/// For worker processes, which run the compilers of `toolchain` and kernels.
WorkerProcessOptions WorkerOptionsOf(const ServerConfig& config, const Programs& programs,
                                     const std::string& scratch_dir, const Toolchain& toolchain);

/// Memory limit of each of these: answers, graphs and plans of recent requests, and the store's
/// block cache. An eighth of --memory-limit. Chosen: 32 MiB by default, about a hundred answers of
/// a layer.
int64_t RecentBytesOf(const ServerConfig& config);

/// For the database in `config.store_dir`.
RocksStoreOptions StoreOptionsOf(const ServerConfig& config);

/// FailedPrecondition, naming address and flags, if other machines can reach an address of --listen
/// without TLS, or that of --admin. OK with --allow-plaintext.
absl::Status CheckExposure(const ServerConfig& config);

}  // namespace fusion
