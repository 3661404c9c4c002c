#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/bundle/measurements.h"

namespace fusion {

/// State of a measurement store. Counters start at 0 when the process starts.
struct MeasurementStats {
  int64_t plans = 0;
  int64_t bytes = 0;
  int64_t limit_bytes = 0;
  int64_t evicted = 0;  // plans whose measurements were removed to free space
  int64_t dropped = 0;  // bad records that a read found and deleted
};

/// Measurements by plan key, within a budget of bytes. Evicts those with the oldest report first. A
/// read never fails: missing and damaged records are misses; damaged ones are logged, counted and
/// deleted. Thread-safe, but a read-modify-write of one plan's measurements must be serialised by
/// the caller (LatencyBook).
class MeasurementStore {
 public:
  virtual ~MeasurementStore() = default;

  virtual std::optional<PlanMeasurements> Get(const Digest& plan) = 0;

  /// Adds or replaces. On an error the old record stays. ResourceExhausted: no space, or larger
  /// than the budget. Unavailable: I/O error. DataLoss: the database is damaged.
  virtual absl::Status Put(const Digest& plan, const PlanMeasurements& measurements) = 0;

  /// Deletes the measurements of a plan, if any. A failure is logged.
  virtual void Remove(const Digest& plan) = 0;

  /// The plans with measurements, the latest report first.
  virtual std::vector<Digest> Plans() const = 0;

  virtual MeasurementStats Stats() const = 0;
};

/// Index of a measurement store: sizes and eviction order. Not thread-safe.
class MeasurementIndex {
 public:
  struct Facts {
    int64_t bytes = 0;
    int64_t last_report_ms = 0;  // Unix time
  };

  explicit MeasurementIndex(int64_t budget_bytes) : budget_bytes_(budget_bytes) {}

  /// Other plans to evict before `bytes` of `plan` are added, oldest first. Removes nothing.
  std::vector<Digest> Victims(const Digest& plan, int64_t bytes) const;
  /// Plans to evict because the index exceeds the budget, oldest first.
  std::vector<Digest> Excess() const { return Victims(Digest(), 0); }
  /// Adds or replaces.
  void Add(const Digest& plan, const Facts& facts);
  void Remove(const Digest& plan);
  bool Contains(const Digest& plan) const { return facts_.contains(plan); }

  /// The latest report first.
  std::vector<Digest> Plans() const;
  int64_t plans() const { return static_cast<int64_t>(facts_.size()); }
  int64_t bytes() const { return bytes_; }
  int64_t budget_bytes() const { return budget_bytes_; }

 private:
  const int64_t budget_bytes_;
  int64_t bytes_ = 0;
  std::map<Digest, Facts> facts_;
  std::set<std::pair<int64_t, Digest>> by_age_;
};

}  // namespace fusion
