#pragma once

#include <string>
#include <string_view>

#include "core/bundle/plan.h"
#include "core/bundle/plan_outline.h"

namespace fusion {

/// A plan as a store keeps it: the value, its wire bytes and its key.
struct StoredPlan {
  Digest key;            // SHA-256 of full_key
  std::string full_key;  // compared on every read, so that a hash collision is a miss
  Plan plan;
  std::string plan_bytes;       // PlanToBytes(plan), ready to be copied into a reply
  Digest content;               // SHA-256 of plan_bytes; the plan of a key may change
  std::string ledger_bytes;     // LedgerToBytes(plan)
  int64_t created_unix_ms = 0;  // when it was planned
  std::string model_name;  // from the request that created the plan, for display; empty: unknown
  PlanOutline outline;     // for reports
};

/// Fills in all fields. The plan is copied, without spare capacity.
StoredPlan MakeStoredPlan(std::string full_key, const Plan& plan, int64_t created_unix_ms,
                          std::string_view model_name = "", PlanOutline outline = {});

/// The entry as one string for a store.
std::string EncodeStoredPlan(const StoredPlan& stored);
/// Inverse of EncodeStoredPlan for untrusted input. InvalidArgument if the bytes cannot be parsed;
/// DataLoss if the digest of plan and ledger does not match; else fails as DecodePlan does. Cuts
/// `model_name` to kMaxModelNameBytes, and drops an outline that does not fit the plan.
absl::StatusOr<StoredPlan> DecodeStoredPlan(std::string_view bytes);

}  // namespace fusion
