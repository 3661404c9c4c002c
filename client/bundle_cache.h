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

/// Everything that runs a model, but its weights.
struct Bundle {
  FusionReply reply;
  std::vector<FetchedKernel> kernels;  // by plan kernel
};

struct BundleCacheOptions {
  /// Of all files together; what was used longest ago goes first.
  int64_t max_bytes = int64_t{256} << 20;
  /// Of one file; longer ones are corrupt, or not stored.
  int64_t max_file_bytes = int64_t{64} << 20;
  /// Told once that nothing can be written, and why; on the thread of a call.
  std::function<void(const std::string&)> warn = [](const std::string&) {};
  /// Wall time orders what was used; outlives the cache.
  const Clock* clock = &Clock::Real();
};

/// Since the cache was opened, by this object.
struct BundleCacheStats {
  int64_t hits = 0;         // whole bundles
  int64_t misses = 0;       // bundles of which something was not there
  int64_t kernel_hits = 0;  // single kernels
  int64_t corrupt = 0;      // files that were not what their name says; deleted
  int64_t stored = 0;       // files
  int64_t evicted = 0;      // files
  int64_t failed_writes = 0;
};

/// Plans and kernels in a directory, for the next start of this machine's runtimes.
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
/// Kernels are code that this process runs, so nobody else may put any there: Open refuses a
/// directory that others can write to or that is not this user's, and a file that another user owns
/// or can write to is corrupt. Every digest is checked at every read. Whatever a file holds, the
/// worst that comes of it is a miss.
///
/// Several processes may use one directory, also while one evicts or dies: files appear whole or
/// not at all, but for a machine that stops (nothing is synced; see above). A full disk or a
/// directory that became read-only stops no call: see `warn`. Thread-safe.
class BundleCache {
 public:
  /// Creates the directory if need be. FailedPrecondition for one that is refused; else as
  /// MakeDirectories.
  static absl::StatusOr<std::shared_ptr<BundleCache>> Open(const std::string& directory,
                                                           const BundleCacheOptions& options = {});

  const std::string& directory() const { return directory_; }

  /// The plan and all of its kernels; with `verify_keys` only if one of them signed both.
  std::optional<Bundle> Find(const Digest& request,
                             const std::vector<SigningKey>& verify_keys = {});
  /// One kernel.
  std::optional<FetchedKernel> FindKernel(const Digest& key, const Digest& content);
  /// Keeps an answer, a serialised v1::PlanFusionResponse, and its kernels; those that are there
  /// are not written again. Then evicts, if there is too much.
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
  const uint32_t nonce_;  // of this object's temporary files
  mutable Mutex mutex_;
  BundleCacheStats stats_ ABSL_GUARDED_BY(mutex_);
  bool warned_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t names_ ABSL_GUARDED_BY(mutex_) = 0;  // of temporary files
  int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // as far as this process knows
  int stores_since_scan_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace fusion
