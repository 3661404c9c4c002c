#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/hash.h"

namespace fusion {

// What an operator asks of a store, and what it answers.

/// What came of pinning plans, or of unpinning them.
struct PinOutcome {
  int64_t changed = 0;       // plans that were not so before
  int64_t pinned_plans = 0;  // now
  int64_t pinned_bytes = 0;  // now, with their kernels
  // Kernels of the plans asked for that are not stored; each plan's count.
  int64_t missing_kernels = 0;
  // Why some of those that are in memory could not be written now; empty: none.
  std::string not_written = {};
};

/// What is to be forgotten: these, or everything.
struct ForgetQuery {
  std::vector<Digest> plans;  // their kernels stay
  std::vector<Digest> kernels;
  bool all = false;
};

/// What was stored and is no more.
struct Forgotten {
  int64_t plans = 0;
  int64_t kernels = 0;
};

/// An entry or a file that is not what was written, or a plan that was not taken.
struct StoreDamage {
  std::string kind;  // "plan", "kernel", "file", "archive"
  std::string name;  // key in hex, or name of the file
  std::string reason;
};

/// At most so many are named; all are counted.
inline constexpr size_t kMaxNamedDamage = 1000;

/// What reading a whole store found.
struct StoreCheck {
  int64_t plans = 0;    // read
  int64_t kernels = 0;  // read
  int64_t bytes = 0;    // read
  int64_t files = 0;    // whose checksums were compared
  std::vector<StoreDamage> damage;
  int64_t damaged = 0;
  int64_t missing_kernels = 0;  // named by a plan, and not stored
};

/// Bytes occupied on disk.
struct StoreCompaction {
  int64_t bytes_before = 0;
  int64_t bytes_after = 0;
};

/// Where and how a store lies on disk.
struct DiskFacts {
  std::string dir;             // empty: it does not
  int64_t free_bytes = 0;      // of its file system
  int64_t min_free_bytes = 0;  // below, nothing is written
  int schema_version = 0;
  bool started_empty = false;   // a damaged store was put aside
  std::string set_aside;        // where
  int64_t set_aside_bytes = 0;  // of that, and of one that was put aside before
};

}  // namespace fusion
