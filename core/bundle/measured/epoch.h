#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/bundle/cost_factors.h"
#include "core/bundle/measured/accuracy.h"
#include "core/bundle/measured/kernel_timings.h"

namespace fusion {

/// The life of a set of fitted constants. A set becomes active through kShadow and kCanary.
enum class EpochState : uint8_t {
  kRejected,    // it predicts held-back measurements no better than the constants in force
  kShadow,      // no plan is made with it; Epoch::plans says what it would change
  kCanary,      // a share of new plans is made with it
  kActive,      // all new plans are made with it
  kRetired,     // a newer epoch is active
  kRolledBack,  // measurements of its plans contradict it, or an operator took it back
};
/// "rejected", "shadow", "canary", "active", "retired", "rolled back".
std::string_view EpochStateName(EpochState state);

/// How constants do on measurements that they were not fitted to.
struct HeldBackScore {
  ErrorSummary errors;  // of kernels
  /// Sets of alternatives that compute the same and were all measured: tilings of a kernel, plans
  /// of a graph. Regret: ln of the time of the one that the constants choose, over the fastest one;
  /// the mean of all sets. 0 without sets.
  int64_t choices = 0;
  double regret = 0;
  double rank = 0;  // Spearman's correlation of estimated and measured times of kernels

  bool operator==(const HeldBackScore&) const = default;
};

/// A change of state, and why.
struct EpochEvent {
  int64_t unix_ms = 0;
  EpochState state = EpochState::kShadow;
  std::string reason;

  bool operator==(const EpochEvent&) const = default;
};

/// What an epoch changes, or would change, about a stored plan.
struct EpochPlan {
  Digest plan_key;
  std::string model_name;
  double old_us = 0;    // estimates of a run with the constants of the epoch: of the plan as it is
  double new_us = 0;    // of the plan that is made with the epoch
  std::string verdict;  // "would change", "changed", "stays: ..."

  bool operator==(const EpochPlan&) const = default;
};

/// An immutable set of constants of a kind of device, fitted to measurements, and its history.
struct Epoch {
  /// Entries that are kept: the newest.
  static constexpr size_t kMaxPlans = 32;
  static constexpr size_t kMaxEvents = 16;

  int64_t number = 0;  // from 1, unique on a server
  /// The tenant whose own plans it is for; empty: shared plans.
  std::string tenant;
  TimedDevice device;
  CostFactors factors;
  int64_t kernels = 0;             // that it was fitted to
  int64_t timings = 0;             // of these, by voter
  HeldBackScore before;            // with the constants that were in force
  HeldBackScore after;             // with constants fitted as these were, to the other measurements
  std::vector<EpochEvent> events;  // oldest first; the last one is its state
  std::vector<EpochPlan> plans;

  EpochState state() const { return events.empty() ? EpochState::kRejected : events.back().state; }
  bool operator==(const Epoch&) const = default;
};

/// A stored plan that is made again, and what it was before: its own measurements say whether it
/// became faster.
struct PlanChange {
  static constexpr size_t kMaxUnfused = 512;

  Digest plan_key;
  std::string tenant;  // whose plan it is; empty: shared
  TimedDevice device;
  std::string voter;   // the caller whose measurements count
  Digest old_kernels;  // LaunchedKernels
  PlanCalibration old_calibration;
  int64_t epoch = 0;         // 0: a fusion is undone
  std::vector<int> unfused;  // the nodes of these fusions, at most kMaxUnfused
  int64_t unix_ms = 0;       // when it was asked for
  bool undo = false;         // it was measured slower, and is to be made as before
  double old_us = 0;         // of a run, as the voter measured it, with a 95 % interval
  double old_low_us = 0;
  double old_high_us = 0;

  bool operator==(const PlanChange&) const = default;
};

/// An entry of the log of decisions about stored plans: a plan changed, kept, or not fused any
/// more.
struct LearnedDecision {
  int64_t unix_ms = 0;
  int64_t epoch = 0;   // 0: not about an epoch
  std::string tenant;  // whose plan it is; empty: shared
  Digest plan_key;
  std::string model_name;
  std::string text;

  bool operator==(const LearnedDecision&) const = default;
};

/// Epochs, the newest first, and decisions, the newest first.
struct EpochList {
  std::vector<Epoch> epochs;
  std::vector<LearnedDecision> decisions;

  bool operator==(const EpochList&) const = default;
};

}  // namespace fusion
