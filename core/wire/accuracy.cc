#include "core/wire/accuracy.h"

#include <cmath>
#include <tuple>

#include "core/wire/basics/decode_each.h"
#include "core/wire/basics/scalars.h"
#include "fusion/v1/fusion_service.pb.h"

namespace fusion {
namespace {

absl::StatusOr<FittedConstant> DecodeConstant(const v1::FittedConstant& wire) {
  RETURN_IF_ERROR(CheckMeasured("factor", wire.factor()));
  return FittedConstant{wire.name(), wire.factor()};
}

absl::StatusOr<FittedClass> DecodeClass(const v1::FittedClass& wire) {
  RETURN_IF_ERROR(CheckMeasured("factor", wire.factor()));
  RETURN_IF_ERROR(CheckCounted("kernels", wire.kernels()));
  RETURN_IF_ERROR(CheckCounted("voters", wire.voters()));
  return FittedClass{.bound = wire.bound(),
                     .form = wire.form(),
                     .factor = wire.factor(),
                     .kernels = wire.kernels(),
                     .voters = wire.voters()};
}

absl::StatusOr<MeasuredMachine> DecodeMachine(const v1::MeasuredMachine& wire) {
  RETURN_IF_ERROR(CheckMeasured("factor", wire.factor()));
  if (!(wire.clock_ghz() >= 0 && std::isfinite(wire.clock_ghz()))) {
    return InvalidArgument("clock_ghz: ", wire.clock_ghz(), "; expected a frequency in GHz");
  }
  return MeasuredMachine{.machine = wire.machine(),
                         .tenant = wire.tenant(),
                         .factor = wire.factor(),
                         .clock_ghz = wire.clock_ghz()};
}

}  // namespace

void EncodeErrors(const ErrorSummary& errors, v1::ErrorSummary* out) {
  out->set_timings(errors.timings);
  out->set_median(errors.median);
  out->set_p90(errors.p90);
}

absl::StatusOr<ErrorSummary> DecodeErrors(const v1::ErrorSummary& wire) {
  RETURN_IF_ERROR(CheckCounted("timings", wire.timings()));
  RETURN_IF_ERROR(CheckMeasured("median", wire.median()));
  RETURN_IF_ERROR(CheckMeasured("p90", wire.p90()));
  return ErrorSummary{.timings = wire.timings(), .median = wire.median(), .p90 = wire.p90()};
}

void EncodeAccuracy(const DeviceAccuracy& accuracy, v1::DeviceAccuracy* out) {
  out->set_target(TextToWire(accuracy.device.target));
  out->set_isa(TextToWire(accuracy.device.isa));
  out->set_threads(accuracy.device.threads);
  out->set_timings(accuracy.timings);
  out->set_kernels(accuracy.kernels);
  out->set_models(accuracy.models);
  out->set_truncated(!accuracy.complete);
  EncodeErrors(accuracy.spec, out->mutable_spec());
  EncodeErrors(accuracy.held_back, out->mutable_held_back());
  EncodeErrors(accuracy.spec_plans, out->mutable_spec_plans());
  EncodeErrors(accuracy.held_back_plans, out->mutable_held_back_plans());
  for (const FittedConstant& constant : accuracy.constants) {
    v1::FittedConstant* to = out->add_constants();
    to->set_name(TextToWire(constant.name));
    to->set_factor(constant.factor);
  }
  for (const FittedClass& of : accuracy.classes) {
    v1::FittedClass* to = out->add_classes();
    to->set_bound(TextToWire(of.bound));
    to->set_form(TextToWire(of.form));
    to->set_factor(of.factor);
    to->set_kernels(of.kernels);
    to->set_voters(of.voters);
  }
  for (const MeasuredMachine& machine : accuracy.machines) {
    v1::MeasuredMachine* to = out->add_machines();
    to->set_machine(TextToWire(machine.machine));
    to->set_tenant(TextToWire(machine.tenant));
    to->set_factor(machine.factor);
    to->set_clock_ghz(machine.clock_ghz);
  }
}

absl::StatusOr<DeviceAccuracy> DecodeAccuracy(const v1::DeviceAccuracy& wire) {
  DeviceAccuracy out{.device = {wire.target(), wire.isa(), wire.threads()},
                     .timings = wire.timings(),
                     .kernels = wire.kernels(),
                     .models = wire.models(),
                     .complete = !wire.truncated()};
  const std::pair<std::string_view, int64_t> kCounts[] = {{"threads", wire.threads()},
                                                          {"timings", wire.timings()},
                                                          {"kernels", wire.kernels()},
                                                          {"models", wire.models()}};
  for (const auto& [field, count] : kCounts) RETURN_IF_ERROR(CheckCounted(field, count));
  const std::tuple<std::string_view, const v1::ErrorSummary&, ErrorSummary*> kErrors[] = {
      {"spec", wire.spec(), &out.spec},
      {"held_back", wire.held_back(), &out.held_back},
      {"spec_plans", wire.spec_plans(), &out.spec_plans},
      {"held_back_plans", wire.held_back_plans(), &out.held_back_plans}};
  for (const auto& [field, sent, to] : kErrors) {
    absl::StatusOr<ErrorSummary> errors = DecodeErrors(sent);
    if (!errors.ok()) return Annotate(errors.status(), field);
    *to = *errors;
  }
  RETURN_IF_ERROR(DecodeEach("constants", wire.constants(), DecodeConstant, &out.constants));
  RETURN_IF_ERROR(DecodeEach("classes", wire.classes(), DecodeClass, &out.classes));
  RETURN_IF_ERROR(DecodeEach("machines", wire.machines(), DecodeMachine, &out.machines));
  return out;
}

}  // namespace fusion
