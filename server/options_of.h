#pragma once

#include <string>

#include "core/cache/rocks/rocks_store.h"
#include "core/compile/toolchain.h"
#include "core/compile/worker_process.h"
#include "server/config/config.h"
#include "server/daemon.h"
#include "server/transport/certificates.h"

namespace fusion {

// What the configuration says about parts of the server: for a start, and for a look at whether
// that would work.

CertificateFiles CertificateFilesOf(const ServerConfig& config);

/// `scratch_dir`: the server's own.
ToolchainOptions ToolchainOptionsOf(const ServerConfig& config, const std::string& scratch_dir);

/// Of a process that runs compilers of `toolchain`, and kernels.
WorkerProcessOptions WorkerOptionsOf(const ServerConfig& config, const Programs& programs,
                                     const std::string& scratch_dir, const Toolchain& toolchain);

/// What answers, graphs and plans of recent requests and blocks of the store take at most, each: an
/// eighth of --memory-limit. Chosen: 32 MiB without the flag, some hundred answers of a layer.
int64_t RecentBytesOf(const ServerConfig& config);

/// Of what lies under `config.store_dir`.
RocksStoreOptions StoreOptionsOf(const ServerConfig& config);

/// FailedPrecondition, naming address and flags, for addresses of --listen and --admin that other
/// machines can reach though nothing protects them there.
absl::Status CheckExposure(const ServerConfig& config);

}  // namespace fusion
