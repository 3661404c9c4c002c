#include "core/cache/store.h"

#include "core/base/files/server_state.h"

namespace fusion {
namespace {

// Map nodes, list nodes and the fixed part of a value.
constexpr int64_t kOverheadBytes = 512;

absl::Status NothingOnDisk() {
  return ServerPrecondition("this server keeps nothing on disk; --store says where it should");
}

}  // namespace

std::string_view EntryKindName(EntryKind kind) {
  return kind == EntryKind::kPlan ? "plan" : "kernel";
}

std::string_view TierName(Tier tier) {
  switch (tier) {
    case Tier::kNone:
      return "none";
    case Tier::kMemory:
      return "memory";
    case Tier::kDisk:
      return "disk";
  }
  return "none";
}

absl::StatusOr<PinOutcome> Store::SetPinned(const std::vector<Digest>& /*plans*/, bool /*pinned*/) {
  return NothingOnDisk();
}
absl::StatusOr<StoreCheck> Store::Verify(const CancelToken& /*cancel*/) { return NothingOnDisk(); }
absl::StatusOr<StoreCompaction> Store::Compact(const CancelToken& /*cancel*/) {
  return NothingOnDisk();
}

std::string WhyNotTheEntry(const EntryKey& asked, const Digest& key, std::string_view full_key) {
  if (key != asked.digest) return StrCat("entry has the key ", key.ToHex());
  if (!asked.full_key.empty() && full_key != asked.full_key) {
    return StrCat("full key differs: ", full_key.size(), " bytes stored, ", asked.full_key.size(),
                  " asked for");
  }
  if (Sha256(full_key) != key) return "full key does not hash to the key";
  return "";
}

absl::Status CheckBundle(const Bundle& bundle) {
  if (bundle.plan != nullptr && Sha256(bundle.plan->full_key) != bundle.plan->key) {
    return Internal("bundle: full key of plan ", bundle.plan->key.ToHex(), " has another digest");
  }
  for (const auto& kernel : bundle.kernels) {
    if (Sha256(kernel->full_key) != kernel->key) {
      return Internal("bundle: full key of kernel ", kernel->key.ToHex(), " has another digest");
    }
    if (Sha256(kernel->binary) != kernel->content) {
      return Internal("bundle: binary of kernel ", kernel->key.ToHex(), " has another digest");
    }
  }
  return absl::OkStatus();
}

PlacePage PlacesAfter(const PlanPlaces& places, const std::optional<PlanPlace>& after, size_t limit,
                      const std::function<bool(const PlanPlace&)>& is_wanted) {
  PlacePage out;
  auto it = after.has_value() ? places.upper_bound(*after) : places.begin();
  std::optional<PlanPlace> last;
  for (size_t looked_at = 0; it != places.end(); ++it, ++looked_at) {
    if (out.places.size() == limit || looked_at == kLookedAtPlaces) {
      out.last = last.has_value() ? last : after;
      return out;
    }
    last = *it;
    if (is_wanted(*it)) out.places.push_back(*it);
  }
  return out;
}

PlanSummary Summarise(const StoredPlan& stored,
                      const std::function<bool(const Digest& kernel)>& is_stored) {
  const Plan& plan = stored.plan;
  PlanSummary out{
      .plan_key = stored.key,
      .model_name = stored.model_name,
      .created_unix_ms = stored.created_unix_ms,
      .target = plan.target,
      .threads = plan.threads,
      .fusion = plan.fusion,
      .numerics = plan.numerics,
      .nodes = plan.nodes,
      .totals = plan.totals,
      .op_by_op = plan.op_by_op,
      .fallbacks = static_cast<int>(plan.fallbacks.size()),
      .bytes = static_cast<int64_t>(stored.plan_bytes.size() + stored.ledger_bytes.size()),
      .distinct_kernels = static_cast<int>(plan.kernels.size())};
  for (const PlanKernel& kernel : plan.kernels) out.compiled_kernels += is_stored(kernel.key);
  return out;
}

int64_t ChargedBytes(const StoredPlan& plan) {
  // Fitted to heap use with glibc 2.36 for plans of layers and of chains of ops (2026-11-27; redo:
  // pipeline_test --gtest_filter=*CachedBytes*).
  constexpr int64_t kSmallestBytes = 3500;
  constexpr int64_t kPlaceBytes = 140;
  constexpr int64_t kTensorBytes = 100;
  int64_t places = 0;
  for (const PlanDecision& decision : plan.plan.decisions) {
    places += static_cast<int64_t>(decision.places.size());
  }
  return kSmallestBytes + kPlaceBytes * places +
         kTensorBytes * static_cast<int64_t>(plan.plan.tensors.size()) +
         static_cast<int64_t>(plan.full_key.size() +
                              3 * (plan.plan_bytes.size() + plan.ledger_bytes.size()));
}

int64_t ChargedBytes(const KernelArtifact& kernel) {
  return static_cast<int64_t>(kernel.full_key.size() + kernel.binary.size() + kernel.source.size() +
                              kernel.schedule.size()) +
         kOverheadBytes;
}

}  // namespace fusion
