#include "core/wire/epochs.h"

#include <cmath>
#include <tuple>

#include "core/wire/accuracy.h"
#include "core/wire/basics/cost_factors.h"
#include "core/wire/basics/decode_each.h"
#include "core/wire/basics/scalars.h"
#include "fusion/v1/fusion_service.pb.h"
#include "fusion/v1/measurements.pb.h"

namespace fusion {
namespace {

void EncodeScore(const HeldBackScore& score, v1::HeldBackScore* out) {
  EncodeErrors(score.errors, out->mutable_errors());
  out->set_choices(score.choices);
  out->set_regret(score.regret);
  out->set_rank(score.rank);
}

absl::StatusOr<HeldBackScore> DecodeScore(const v1::HeldBackScore& wire) {
  absl::StatusOr<ErrorSummary> errors = DecodeErrors(wire.errors());
  if (!errors.ok()) return Annotate(errors.status(), "errors");
  RETURN_IF_ERROR(CheckCounted("choices", wire.choices()));
  RETURN_IF_ERROR(CheckMeasured("regret", wire.regret()));
  if (!(std::abs(wire.rank()) <= 1.0001)) {
    return InvalidArgument("rank: ", wire.rank(), "; expected -1..1");
  }
  return HeldBackScore{*errors, wire.choices(), wire.regret(), wire.rank()};
}

// The values of the enum are the wire's, less 1.
absl::StatusOr<EpochState> DecodeState(v1::EpochState wire) {
  if (wire <= v1::EPOCH_STATE_UNSPECIFIED || wire > v1::EPOCH_STATE_ROLLED_BACK) {
    return InvalidArgument("state: ", static_cast<int>(wire), "; expected 1..6");
  }
  return static_cast<EpochState>(wire - 1);
}

absl::StatusOr<EpochEvent> DecodeEvent(const v1::EpochEvent& wire) {
  RETURN_IF_ERROR(CheckCounted("unix_ms", wire.unix_ms()));
  ASSIGN_OR_RETURN(const EpochState state, DecodeState(wire.state()));
  return EpochEvent{wire.unix_ms(), state, wire.reason()};
}

absl::StatusOr<EpochPlan> DecodeEpochPlan(const v1::EpochPlan& wire) {
  absl::StatusOr<Digest> key = DigestFromWire(wire.plan_key());
  if (!key.ok()) return Annotate(key.status(), "plan_key");
  RETURN_IF_ERROR(CheckMeasured("old_us", wire.old_us()));
  RETURN_IF_ERROR(CheckMeasured("new_us", wire.new_us()));
  return EpochPlan{*key, wire.model_name(), wire.old_us(), wire.new_us(), wire.verdict()};
}

void EncodeEpoch(const Epoch& epoch, v1::Epoch* out) {
  out->set_number(epoch.number);
  out->set_tenant(TextToWire(epoch.tenant));
  out->set_target(TextToWire(epoch.device.target));
  out->set_isa(TextToWire(epoch.device.isa));
  out->set_threads(epoch.device.threads);
  EncodeFactors(epoch.factors, out->mutable_factors());
  out->set_kernels(epoch.kernels);
  out->set_timings(epoch.timings);
  EncodeScore(epoch.before, out->mutable_before());
  EncodeScore(epoch.after, out->mutable_after());
  for (const EpochEvent& event : epoch.events) {
    v1::EpochEvent* wire = out->add_events();
    wire->set_unix_ms(event.unix_ms);
    wire->set_state(static_cast<v1::EpochState>(static_cast<int>(event.state) + 1));
    wire->set_reason(TextToWire(event.reason));
  }
  for (const EpochPlan& plan : epoch.plans) {
    v1::EpochPlan* wire = out->add_plans();
    wire->set_plan_key(DigestToWire(plan.plan_key));
    wire->set_model_name(TextToWire(plan.model_name));
    wire->set_old_us(plan.old_us);
    wire->set_new_us(plan.new_us);
    wire->set_verdict(TextToWire(plan.verdict));
  }
}

absl::StatusOr<Epoch> DecodeEpoch(const v1::Epoch& wire) {
  Epoch out{.number = wire.number(),
            .tenant = wire.tenant(),
            .device = {wire.target(), wire.isa(), wire.threads()},
            .kernels = wire.kernels(),
            .timings = wire.timings()};
  if (wire.number() < 1) return InvalidArgument("number: ", wire.number(), "; expected at least 1");
  RETURN_IF_ERROR(CheckCounted("threads", wire.threads()));
  RETURN_IF_ERROR(CheckCounted("kernels", wire.kernels()));
  RETURN_IF_ERROR(CheckCounted("timings", wire.timings()));
  absl::StatusOr<CostFactors> factors = DecodeFactors(wire.factors());
  if (!factors.ok()) return Annotate(factors.status(), "factors");
  out.factors = *std::move(factors);
  absl::StatusOr<HeldBackScore> before = DecodeScore(wire.before());
  if (!before.ok()) return Annotate(before.status(), "before");
  out.before = *before;
  absl::StatusOr<HeldBackScore> after = DecodeScore(wire.after());
  if (!after.ok()) return Annotate(after.status(), "after");
  out.after = *after;
  RETURN_IF_ERROR(DecodeEach("events", wire.events(), DecodeEvent, &out.events));
  if (out.events.empty()) return InvalidArgument("events: none; expected at least one");
  RETURN_IF_ERROR(DecodeEach("plans", wire.plans(), DecodeEpochPlan, &out.plans));
  return out;
}

absl::StatusOr<LearnedDecision> DecodeDecision(const v1::LearnedDecision& wire) {
  RETURN_IF_ERROR(CheckCounted("unix_ms", wire.unix_ms()));
  RETURN_IF_ERROR(CheckCounted("epoch", wire.epoch()));
  absl::StatusOr<Digest> key = DigestFromWire(wire.plan_key());
  if (!key.ok()) return Annotate(key.status(), "plan_key");
  return LearnedDecision{wire.unix_ms(), wire.epoch(),      wire.tenant(),
                         *key,           wire.model_name(), wire.text()};
}

void EncodeChange(const PlanChange& change, v1::StoredPlanChange* out) {
  out->set_plan_key(DigestToWire(change.plan_key));
  out->set_tenant(TextToWire(change.tenant));
  out->set_target(TextToWire(change.device.target));
  out->set_isa(TextToWire(change.device.isa));
  out->set_threads(change.device.threads);
  out->set_voter(change.voter);
  out->set_old_kernels(DigestToWire(change.old_kernels));
  if (change.old_calibration.epoch > 0) {
    EncodeCalibration(change.old_calibration, out->mutable_old_calibration());
  }
  out->set_epoch(change.epoch);
  out->mutable_unfused()->Add(change.unfused.begin(), change.unfused.end());
  out->set_unix_ms(change.unix_ms);
  out->set_undo(change.undo);
  out->set_old_us(change.old_us);
  out->set_old_low_us(change.old_low_us);
  out->set_old_high_us(change.old_high_us);
}

absl::StatusOr<PlanChange> DecodeChange(const v1::StoredPlanChange& wire) {
  PlanChange out;
  out.tenant = wire.tenant();
  out.device = {wire.target(), wire.isa(), wire.threads()};
  out.voter = wire.voter();
  out.epoch = wire.epoch();
  out.unfused.assign(wire.unfused().begin(), wire.unfused().end());
  if (out.unfused.size() > PlanChange::kMaxUnfused) {
    return InvalidArgument("unfused: ", out.unfused.size(), " nodes; expected at most ",
                           PlanChange::kMaxUnfused);
  }
  out.unix_ms = wire.unix_ms();
  out.undo = wire.undo();
  out.old_us = wire.old_us();
  out.old_low_us = wire.old_low_us();
  out.old_high_us = wire.old_high_us();
  for (const auto& [field, bytes, to] : {std::tuple("plan_key", &wire.plan_key(), &out.plan_key),
                                         {"old_kernels", &wire.old_kernels(), &out.old_kernels}}) {
    absl::StatusOr<Digest> digest = DigestFromWire(*bytes);
    if (!digest.ok()) return Annotate(digest.status(), field);
    *to = *digest;
  }
  if (wire.has_old_calibration()) {
    absl::StatusOr<PlanCalibration> calibration = DecodeCalibration(wire.old_calibration());
    if (!calibration.ok()) return Annotate(calibration.status(), "old_calibration");
    out.old_calibration = *std::move(calibration);
  }
  for (const auto& [field, us] : {std::pair("old_us", out.old_us),
                                  {"old_low_us", out.old_low_us},
                                  {"old_high_us", out.old_high_us}}) {
    if (!(us >= 0)) return InvalidArgument(field, ": ", us, "; expected microseconds");
  }
  return out;
}

}  // namespace

void EncodeEpochs(const EpochList& list, v1::ListEpochsResponse* out) {
  for (const Epoch& epoch : list.epochs) EncodeEpoch(epoch, out->add_epochs());
  for (const LearnedDecision& decision : list.decisions) {
    v1::LearnedDecision* wire = out->add_decisions();
    wire->set_unix_ms(decision.unix_ms);
    wire->set_epoch(decision.epoch);
    wire->set_tenant(TextToWire(decision.tenant));
    wire->set_plan_key(DigestToWire(decision.plan_key));
    wire->set_model_name(TextToWire(decision.model_name));
    wire->set_text(TextToWire(decision.text));
  }
}

absl::StatusOr<EpochList> DecodeEpochs(const v1::ListEpochsResponse& wire) {
  EpochList out;
  RETURN_IF_ERROR(DecodeEach("epochs", wire.epochs(), DecodeEpoch, &out.epochs));
  RETURN_IF_ERROR(DecodeEach("decisions", wire.decisions(), DecodeDecision, &out.decisions));
  return out;
}

std::string LearnedToBytes(const LearnedState& state) {
  v1::StoredEpochs wire;
  EncodeEpochs(state.list, wire.mutable_list());
  for (const auto& [plan, epoch] : state.kept) {
    v1::StoredKeptPlan* kept = wire.add_kept();
    kept->set_plan_key(DigestToWire(plan));
    kept->set_epoch(epoch);
  }
  for (const PlanChange& change : state.changes) EncodeChange(change, wire.add_changes());
  const std::string bytes = wire.SerializeAsString();
  return StrCat(BytesOf(Sha256(bytes)), bytes);
}

absl::StatusOr<LearnedState> LearnedFromBytes(std::string_view bytes) {
  constexpr size_t kSumBytes = 32;
  const std::string_view body = bytes.size() < kSumBytes ? "" : bytes.substr(kSumBytes);
  if (bytes.size() < kSumBytes || bytes.substr(0, kSumBytes) != BytesOf(Sha256(body))) {
    return DataLoss("epochs: the checksum does not fit the bytes");
  }
  v1::StoredEpochs wire;
  if (body.size() > INT32_MAX || !wire.ParseFromArray(body.data(), static_cast<int>(body.size()))) {
    return DataLoss("epochs: not a fusion.v1.StoredEpochs");
  }
  absl::StatusOr<EpochList> list = DecodeEpochs(wire.list());
  if (!list.ok()) return DataLoss("epochs: ", Message(list.status()));
  LearnedState out{.list = *std::move(list)};
  for (const v1::StoredKeptPlan& kept : wire.kept()) {
    absl::StatusOr<Digest> key = DigestFromWire(kept.plan_key());
    if (!key.ok()) return DataLoss("epochs: kept: plan_key: ", Message(key.status()));
    out.kept.emplace_back(*key, kept.epoch());
  }
  const absl::Status changes = DecodeEach("changes", wire.changes(), DecodeChange, &out.changes);
  if (!changes.ok()) return DataLoss("epochs: ", Message(changes));
  return out;
}

}  // namespace fusion
