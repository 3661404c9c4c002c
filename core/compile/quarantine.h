#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/base/hash.h"
#include "core/base/status.h"
#include "core/base/threads/mutex.h"

namespace fusion {

/// Kernels that are not compiled any more, because they killed their workers.
///
///   ASSIGN_OR_RETURN(auto quarantine, Quarantine::Open(store_dir + "/quarantine"));
///   if (auto entry = quarantine->Find(key)) return entry->ToStatus();
///
/// Survives a restart: one file per key, `<key in hex>.json`, replaced as a whole. Holds at most
/// kMaxEntries, the oldest forgotten first. Thread-safe; `clock` outlives it.
class Quarantine {
 public:
  static constexpr size_t kMaxEntries = 4096;

  struct Entry {
    Digest key;
    std::string reason;         // why, for people
    int64_t since_unix_ms = 0;  // wall time
    std::string tenant = {};    // whose the kernel is, where tenants are kept apart
    /// Internal, naming the reason and since when.
    absl::Status ToStatus() const;
  };

  /// Reads what is in `dir`, which is made when it is needed; files that are not ours are left
  /// alone, damaged ones and halves of a crash deleted. One that cannot be read stays, and so does
  /// its kernel. Empty: nothing survives. Unavailable if `dir` cannot be read.
  static absl::StatusOr<std::unique_ptr<Quarantine>> Open(std::string dir,
                                                          const Clock& clock = Clock::Real());

  /// Takes a kernel in; one that is in keeps its entry. An error, of the system, means that it will
  /// be forgotten at the end of this process.
  absl::Status Add(const Digest& key, std::string_view reason, std::string_view tenant = "");
  std::optional<Entry> Find(const Digest& key) const;
  /// By key.
  std::vector<Entry> List() const;
  size_t size() const;

  /// Lets a kernel be tried again; false if it was not in.
  bool Forget(const Digest& key);
  /// All of them; how many there were.
  int64_t ForgetAll();

 private:
  Quarantine(std::string dir, const Clock& clock) : dir_(std::move(dir)), clock_(clock) {}
  absl::Status Read();
  std::string PathOf(const Digest& key) const;
  bool Erase(const Digest& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DropOldest() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string dir_;
  const Clock& clock_;
  mutable Mutex mutex_;
  std::map<Digest, Entry> entries_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace fusion
