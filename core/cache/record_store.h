#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/bundle/measured/kernel_timings.h"
#include "core/bundle/measured/measurements.h"

namespace fusion {

/// State of a record store. Counters start at 0 when the process starts.
struct RecordStats {
  int64_t records = 0;
  int64_t bytes = 0;
  int64_t limit_bytes = 0;
  int64_t evicted = 0;  // removed to free space
  int64_t dropped = 0;  // bad records that a read found and deleted
};

/// Measured records by key, within a budget of bytes. Evicts records of the owner (OwnerOf) who has
/// most bytes, those with the oldest report first. A read never fails: missing and damaged records
/// are misses; damaged ones are logged, counted and deleted. Thread-safe, but a read-modify-write
/// of one record must be serialised by the caller (LatencyBook).
template <typename Record>
class RecordStore {
 public:
  virtual ~RecordStore() = default;

  virtual std::optional<Record> Get(const Digest& key) = 0;

  /// Adds or replaces. On an error the old record stays. ResourceExhausted: no space, or larger
  /// than the budget. Unavailable: I/O error. DataLoss: the database is damaged.
  virtual absl::Status Put(const Digest& key, const Record& record) = 0;

  /// Deletes a record, if it exists. A failure is logged.
  virtual void Remove(const Digest& key) = 0;

  /// The keys of all records, the latest report first.
  virtual std::vector<Digest> Keys() const = 0;

  virtual RecordStats Stats() const = 0;
};

/// Reports about plans, by plan key.
using MeasurementStore = RecordStore<PlanMeasurements>;
/// Times of kernels by voter, by KeyOf.
using TimingStore = RecordStore<KernelTimings>;

/// Whose records one budget divides: callers cannot displace records of other owners while these
/// have fewer bytes. Measurements of plans have one owner, 0. Timings have their tenant.
inline uint64_t OwnerOf(const PlanMeasurements& /*record*/) { return 0; }
uint64_t OwnerOf(const KernelTimings& record);

/// Index of a record store: sizes and eviction order. Not thread-safe.
class RecordIndex {
 public:
  struct Facts {
    int64_t bytes = 0;
    int64_t last_report_ms = 0;  // Unix time
    uint64_t owner = 0;          // OwnerOf
  };

  explicit RecordIndex(int64_t budget_bytes) : budget_bytes_(budget_bytes) {}

  /// Other records to evict before a record with these facts is added or replaced. Of the owner who
  /// then has most bytes the oldest first. Removes nothing.
  std::vector<Digest> Victims(const Digest& key, const Facts& facts) const;
  /// Records to evict because the index exceeds the budget, in the same order.
  std::vector<Digest> Excess() const { return Victims(Digest(), {}); }
  /// Adds or replaces.
  void Add(const Digest& key, const Facts& facts);
  void Remove(const Digest& key);
  bool Contains(const Digest& key) const { return facts_.contains(key); }

  /// The latest report first.
  std::vector<Digest> Keys() const;
  int64_t records() const { return static_cast<int64_t>(facts_.size()); }
  int64_t bytes() const { return bytes_; }
  int64_t budget_bytes() const { return budget_bytes_; }

 private:
  const int64_t budget_bytes_;
  int64_t bytes_ = 0;
  // Records by age, the oldest first.
  using ByAge = std::set<std::pair<int64_t, Digest>>;
  struct Share {
    int64_t bytes = 0;
    ByAge records;
  };

  std::map<Digest, Facts> facts_;
  ByAge by_age_;
  std::map<uint64_t, Share> shares_;  // by owner
};

}  // namespace fusion
