#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/hash.h"

namespace fusion {

// Parameters and results of the maintenance operations of a store.

/// Result of pinning or unpinning plans.
struct PinOutcome {
  int64_t changed = 0;       // plans that were not in this state before
  int64_t pinned_plans = 0;  // now
  int64_t pinned_bytes = 0;  // now, with their kernels
  // Kernels of the requested plans that are not stored: the sum over plans, shared ones repeatedly.
  int64_t missing_kernels = 0;
  // Why kernels that are only in memory could not be written; empty: no such failure.
  std::string not_written = {};
};

/// Entries to delete: the listed ones, or all.
struct ForgetQuery {
  std::vector<Digest> plans;  // their kernels are kept
  std::vector<Digest> kernels;
  bool all = false;
};

/// Numbers of deleted entries.
struct Forgotten {
  int64_t plans = 0;
  int64_t kernels = 0;
};

/// A damaged entry or file, or a plan that an import rejected.
struct StoreDamage {
  std::string kind;  // "plan", "kernel", "file", "archive"
  std::string name;  // key in hex, or file name
  std::string reason;
};

/// Maximum length of a list of StoreDamage. More are only counted.
inline constexpr size_t kMaxNamedDamage = 1000;

/// Result of verifying a store.
struct StoreCheck {
  int64_t plans = 0;                // read
  int64_t kernels = 0;              // read
  int64_t bytes = 0;                // read
  int64_t files = 0;                // files with compared checksums
  std::vector<StoreDamage> damage;  // the first kMaxNamedDamage
  int64_t damaged = 0;              // all
  int64_t missing_kernels = 0;      // kernels that plans name and that are not stored
};

/// Bytes on disk before and after a compaction.
struct StoreCompaction {
  int64_t bytes_before = 0;
  int64_t bytes_after = 0;
};

/// State of a store's directory.
struct DiskFacts {
  std::string dir;             // empty: not on disk
  int64_t free_bytes = 0;      // of its file system
  int64_t min_free_bytes = 0;  // writes fail if less is free
  int schema_version = 0;
  bool started_empty = false;   // a damaged database was renamed when the store was opened
  std::string set_aside;        // its new path
  int64_t set_aside_bytes = 0;  // of all renamed databases, also earlier ones
};

}  // namespace fusion
