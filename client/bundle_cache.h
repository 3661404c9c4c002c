#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/client.h"
#include "core/base/files/signature.h"
#include "core/base/files/unique_fd.h"
#include "core/base/hash.h"
#include "core/base/threads/mutex.h"

namespace fusion {

/// Everything that is needed to run a model except its weights.
struct Bundle {
  FusionReply reply;
  std::vector<FetchedKernel> kernels;  // by plan kernel
};

struct BundleCacheOptions {
  /// Limit of all files together; the least recently used are evicted first.
  int64_t max_bytes = int64_t{256} << 20;
  /// Limit of one file; longer ones are treated as corrupt when read, and are not stored.
  int64_t max_file_bytes = int64_t{64} << 20;
  /// Called once, on the thread of a call, with the reason why nothing can be written.
  std::function<void(const std::string&)> warn = [](const std::string&) {};
  /// Its wall time orders uses for eviction; outlives the cache.
  const Clock* clock = &Clock::Real();
};

/// Counters of this object since it was opened.
struct BundleCacheStats {
  int64_t hits = 0;         // whole bundles
  int64_t misses = 0;       // bundles with a missing part
  int64_t kernel_hits = 0;  // single kernels
  int64_t corrupt = 0;      // files that did not match their digest; deleted
  int64_t stored = 0;       // files
  int64_t evicted = 0;      // files
  int64_t failed_writes = 0;
};

/// A directory of plans and kernels for later starts of runtimes on this machine.
///
///   ASSIGN_OR_RETURN(auto cache, BundleCache::Open("/var/cache/app/fusiond"));
///   ASSIGN_OR_RETURN(Digest request, RequestDigest(wanted));
///   if (std::optional<Bundle> bundle = cache->Find(request)) ...
///   cache->Store(request, answer, kernels);
///
/// Files, mode 0600, in a directory of mode 0700:
///
///   plan-<digest of the request>               magic, SHA-256 of the rest, v1::PlanFusionResponse
///   kernel-<key of the kernel>-<its SHA-256>   a shared object; plans share it
///   lock                                       held while files are evicted
///
/// Kernels are code that this process runs, so other users must not be able to write them: Open
/// refuses a directory that others can write to or that another user owns, and a file that another
/// user owns or can write to is corrupt. Every read checks the digest. Any file content leads at
/// worst to a miss.
///
/// Several processes may use one directory, also while one evicts or dies. Files appear atomically,
/// except after a crash of the machine, because nothing is synced; the digests detect that. A full
/// disk or a read-only directory fails no call: see `warn`. Thread-safe.
class BundleCache {
 public:
  /// Creates the directory if necessary. FailedPrecondition if it is refused; else errors of
  /// MakeDirectories.
  static absl::StatusOr<std::shared_ptr<BundleCache>> Open(const std::string& directory,
                                                           const BundleCacheOptions& options = {});

  const std::string& directory() const { return directory_; }

  /// The plan and all its kernels, or nullopt. With `verify_keys`, both must be signed by one of
  /// them.
  std::optional<Bundle> Find(const Digest& request,
                             const std::vector<SigningKey>& verify_keys = {});
  /// One kernel, or nullopt.
  std::optional<FetchedKernel> FindKernel(const Digest& key, const Digest& content);
  /// Stores an answer (a serialised v1::PlanFusionResponse) and its kernels; existing files are not
  /// rewritten. Then evicts if the limit is exceeded.
  void Store(const Digest& request, std::string_view answer,
             const std::vector<FetchedKernel>& kernels);

  BundleCacheStats stats() const;

 private:
  BundleCache(std::string directory, UniqueFd fd, const BundleCacheOptions& options);
  std::optional<std::string> Read(const std::string& name);
  void Write(const std::string& name, std::string_view head, std::string_view bytes);
  absl::Status WriteNew(const std::string& temporary, const std::string& name,
                        std::string_view head, std::string_view bytes) const;
  void Discard(const std::string& name);
  void MarkUsed(int fd) const;
  bool HoldsSame(const Digest& request, std::string_view answer);
  void Evict();
  void Count(int64_t BundleCacheStats::*what, int64_t by = 1);

  const std::string directory_;
  const UniqueFd fd_;
  const BundleCacheOptions options_;
  const uint32_t nonce_;  // in the names of this object's temporary files
  mutable Mutex mutex_;
  BundleCacheStats stats_ ABSL_GUARDED_BY(mutex_);
  bool warned_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t names_ ABSL_GUARDED_BY(mutex_) = 0;  // number of temporary files so far
  int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // of all files, as known to this process
  int stores_since_scan_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace fusion
