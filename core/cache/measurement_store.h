#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/bundle/measurements.h"

namespace fusion {

/// State of a measurement store. Counters start at 0 with the process.
struct MeasurementStats {
  int64_t plans = 0;
  int64_t bytes = 0;
  int64_t limit_bytes = 0;
  int64_t evicted = 0;  // plans whose measurements went because the budget was reached
  int64_t dropped = 0;  // bad records that a reader met and deleted
};

/// Measurements by plan key, at most so many bytes of them; the plan that was reported about
/// longest ago goes first. A read never fails: what is missing or damaged is a miss; damage is
/// logged, counted and deleted. Thread-safe, but two who read, change and write the measurements of
/// one plan must take turns: LatencyBook sees to that.
class MeasurementStore {
 public:
  virtual ~MeasurementStore() = default;

  virtual std::optional<PlanMeasurements> Get(const Digest& plan) = 0;

  /// Adds or replaces. ResourceExhausted (space), Unavailable (I/O): then what was there stays.
  virtual absl::Status Put(const Digest& plan, const PlanMeasurements& measurements) = 0;

  /// Forgets those of a plan; nothing if there are none. What cannot be deleted is logged.
  virtual void Remove(const Digest& plan) = 0;

  /// The plans of which there are measurements, the latest report first.
  virtual std::vector<Digest> Plans() const = 0;

  virtual MeasurementStats Stats() const = 0;
};

/// Which measurements a store holds, how large they are and which go first. Not thread-safe.
class MeasurementIndex {
 public:
  struct Facts {
    int64_t bytes = 0;
    int64_t last_report_ms = 0;  // Unix time
  };

  explicit MeasurementIndex(int64_t budget_bytes) : budget_bytes_(budget_bytes) {}

  /// The others that must go before `bytes` of `plan` are added, oldest first. Removes nothing.
  std::vector<Digest> Victims(const Digest& plan, int64_t bytes) const;
  /// Those that must go because what was added exceeds the budget, oldest first.
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
