#include "core/wire/stored_plan.h"

#include <algorithm>

#include "core/wire/basics/scalars.h"
#include "core/wire/plan.h"
#include "fusion/v1/plan.pb.h"

namespace fusion {
namespace {

// The digest of the entry does not cover it: nothing but reports depends on it.
PlanOutline OutlineFromWire(const v1::StoredPlan& wire, size_t groups) {
  PlanOutline out{.sections = {wire.group_sections().begin(), wire.group_sections().end()},
                  .op_by_op_peak_bytes = std::max<int64_t>(wire.op_by_op_peak_bytes(), 0)};
  const bool sound = out.sections.size() == groups &&
                     std::all_of(out.sections.begin(), out.sections.end(),
                                 [](SectionSet sections) { return sections <= kEverySection; });
  if (!sound) out.sections.clear();
  return out;
}

}  // namespace

StoredPlan MakeStoredPlan(std::string full_key, const Plan& plan, int64_t created_unix_ms,
                          std::string_view model_name, PlanOutline outline) {
  StoredPlan stored;
  stored.key = Sha256(full_key);
  stored.full_key = std::move(full_key);
  stored.plan_bytes = PlanToBytes(plan);
  stored.content = Sha256(stored.plan_bytes);
  stored.ledger_bytes = LedgerToBytes(plan);
  stored.plan = plan;
  stored.created_unix_ms = created_unix_ms;
  stored.model_name = model_name;
  stored.outline = std::move(outline);
  return stored;
}

std::string EncodeStoredPlan(const StoredPlan& stored) {
  v1::StoredPlan wire;
  wire.set_full_key(stored.full_key);
  wire.set_plan_sha256(DigestToWire(Sha256(StrCat(stored.plan_bytes, stored.ledger_bytes))));
  wire.set_plan(stored.plan_bytes);
  wire.set_ledger(stored.ledger_bytes);
  wire.set_created_unix_ms(stored.created_unix_ms);
  wire.set_model_name(TextToWire(stored.model_name));
  const PlanOutline& outline = stored.outline;
  wire.set_group_sections(std::string(outline.sections.begin(), outline.sections.end()));
  wire.set_op_by_op_peak_bytes(outline.op_by_op_peak_bytes);
  return wire.SerializeAsString();
}

absl::StatusOr<StoredPlan> DecodeStoredPlan(std::string_view bytes) {
  v1::StoredPlan wire;
  if (bytes.size() > INT32_MAX ||
      !wire.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return InvalidArgument("stored plan: ", bytes.size(),
                           " bytes that are not a fusion.v1.StoredPlan");
  }
  absl::StatusOr<Digest> digest = DigestFromWire(wire.plan_sha256());
  if (!digest.ok()) return Annotate(digest.status(), "stored plan: plan_sha256");
  std::string whole = StrCat(wire.plan(), wire.ledger());
  if (Sha256(whole) != *digest) {
    return DataLoss("stored plan: plan and ledger (", whole.size(),
                    " bytes) are not what plan_sha256 says");
  }
  StoredPlan stored;
  ASSIGN_OR_RETURN(stored.plan, PlanFromBytes(whole));
  stored.key = Sha256(wire.full_key());
  stored.full_key = wire.full_key();
  stored.plan_bytes = wire.plan();
  stored.content = Sha256(stored.plan_bytes);
  stored.ledger_bytes = wire.ledger();
  stored.created_unix_ms = wire.created_unix_ms();
  stored.model_name = Beginning(wire.model_name(), kMaxModelNameBytes);
  stored.outline = OutlineFromWire(wire, stored.plan.groups.size());
  return stored;
}

}  // namespace fusion
