#pragma once

#include <string>
#include <string_view>

#include "core/bundle/plan.h"

namespace fusion {

/// A plan as a store keeps it: the value, the bytes that go on the wire, and the key it answers to.
struct StoredPlan {
  Digest key;            // SHA-256 of full_key
  std::string full_key;  // compared on every read
  Plan plan;
  std::string plan_bytes;       // PlanToBytes(plan): ready to be copied into a reply
  Digest content;               // SHA-256 of plan_bytes: what a key stands for may change
  std::string ledger_bytes;     // LedgerToBytes(plan)
  int64_t created_unix_ms = 0;  // when it was planned
  std::string model_name;       // of the request that made it, for people; empty: unknown
};

/// Fills in `key`, `plan_bytes`, `content` and `ledger_bytes`. The plan is copied, without spare
/// capacity.
StoredPlan MakeStoredPlan(std::string full_key, const Plan& plan, int64_t created_unix_ms,
                          std::string_view model_name = "");

/// The entry as one string, as stores keep it.
std::string EncodeStoredPlan(const StoredPlan& stored);
/// Inverse of EncodeStoredPlan, for bytes that nobody vouches for: DataLoss if the plan's digest
/// does not match, else fails like DecodePlan.
absl::StatusOr<StoredPlan> DecodeStoredPlan(std::string_view bytes);

}  // namespace fusion
