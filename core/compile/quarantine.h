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

/// Kernels that are no longer compiled, because they killed their workers.
///
///   ASSIGN_OR_RETURN(auto quarantine, Quarantine::Open(store_dir + "/quarantine"));
///   if (auto entry = quarantine->Find(key)) return entry->ToStatus();
///
/// Survives a restart: one file per key, `<key in hex>.json`, replaced atomically. Holds at most
/// kMaxEntries; the oldest are dropped first. Thread-safe; `clock` outlives it.
class Quarantine {
 public:
  static constexpr size_t kMaxEntries = 4096;

  struct Entry {
    Digest key;
    std::string reason;         // why, for people
    int64_t since_unix_ms = 0;  // wall time
    std::string tenant = {};    // of the kernel, if tenants are isolated
    /// Internal, with the reason and the time.
    absl::Status ToStatus() const;
  };

  /// Reads the entries in `dir`; the directory is created by the first Add. Foreign files are
  /// ignored; damaged files and leftovers of a crash are deleted. An entry that cannot be read
  /// stays, and its kernel stays quarantined. Empty `dir`: nothing survives a restart. Unavailable
  /// if `dir` cannot be read.
  static absl::StatusOr<std::unique_ptr<Quarantine>> Open(std::string dir,
                                                          const Clock& clock = Clock::Real());

  /// Adds a kernel; an existing entry is kept. An error (of the file system) means that the entry
  /// is lost at the end of this process.
  absl::Status Add(const Digest& key, std::string_view reason, std::string_view tenant = "");
  std::optional<Entry> Find(const Digest& key) const;
  /// By key.
  std::vector<Entry> List() const;
  size_t size() const;

  /// Removes an entry, so that the kernel is tried again; false if there was none.
  bool Forget(const Digest& key);
  /// Removes all entries; returns their number.
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
