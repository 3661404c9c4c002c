#include "core/wire/stored_plan.h"

#include "core/wire/basics/scalars.h"
#include "core/wire/plan.h"
#include "fusion/v1/plan.pb.h"

namespace fusion {

StoredPlan MakeStoredPlan(std::string full_key, const Plan& plan, int64_t created_unix_ms,
                          std::string_view model_name) {
  StoredPlan stored;
  stored.key = Sha256(full_key);
  stored.full_key = std::move(full_key);
  stored.plan_bytes = PlanToBytes(plan);
  stored.content = Sha256(stored.plan_bytes);
  stored.ledger_bytes = LedgerToBytes(plan);
  stored.plan = plan;
  stored.created_unix_ms = created_unix_ms;
  stored.model_name = model_name;
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
  return stored;
}

}  // namespace fusion
