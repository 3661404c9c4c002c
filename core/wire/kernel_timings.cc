#include "core/wire/kernel_timings.h"

#include "core/wire/basics/cost_terms.h"
#include "core/wire/basics/measured_times.h"
#include "core/wire/basics/scalars.h"
#include "core/wire/report_origin.h"
#include "fusion/v1/measurements.pb.h"

namespace fusion {

std::string EncodeTimings(const KernelTimings& timings) {
  v1::StoredTimings wire;
  wire.set_target(TextToWire(timings.device.target));
  wire.set_isa(TextToWire(timings.device.isa));
  wire.set_threads(timings.device.threads);
  wire.set_kernel_key(DigestToWire(timings.kernel));
  wire.set_machine(TextToWire(timings.machine));
  wire.set_tenant(TextToWire(timings.tenant));
  wire.set_model_name(TextToWire(timings.model_name));
  wire.set_bound(TextToWire(timings.bound));
  wire.set_form(TextToWire(timings.form));
  EncodeTerms(timings.terms, wire.mutable_terms());
  EncodeTimes(timings.times, wire.mutable_times());
  wire.set_last_report_unix_ms(timings.last_report_unix_ms);
  wire.set_trusted(timings.trusted);
  if (timings.choice != Digest()) wire.set_choice(DigestToWire(timings.choice));
  wire.set_clock_ghz(timings.clock_ghz);
  return wire.SerializeAsString();
}

absl::StatusOr<KernelTimings> DecodeTimings(const Digest& key, std::string_view bytes) {
  v1::StoredTimings wire;
  if (bytes.size() > INT32_MAX ||
      !wire.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return InvalidArgument("timings: ", bytes.size(),
                           " bytes that are not a fusion.v1.StoredTimings");
  }
  KernelTimings out{.device = {wire.target(), wire.isa(), wire.threads()},
                    .machine = wire.machine(),
                    .tenant = wire.tenant(),
                    .trusted = wire.trusted(),
                    .model_name = wire.model_name(),
                    .bound = wire.bound(),
                    .form = wire.form(),
                    .last_report_unix_ms = wire.last_report_unix_ms()};
  absl::Status clock = CheckClock(wire.clock_ghz());
  if (!clock.ok()) return Annotate(clock, "timings");
  out.clock_ghz = wire.clock_ghz();
  absl::StatusOr<Digest> kernel = DigestFromWire(wire.kernel_key());
  if (!kernel.ok()) return Annotate(kernel.status(), "timings: kernel_key");
  out.kernel = *kernel;
  if (!wire.choice().empty()) {
    absl::StatusOr<Digest> choice = DigestFromWire(wire.choice());
    if (!choice.ok()) return Annotate(choice.status(), "timings: choice");
    out.choice = *choice;
  }
  absl::StatusOr<CostTerms> terms = DecodeTerms(wire.terms());
  if (!terms.ok()) return Annotate(terms.status(), "timings: terms");
  out.terms = *std::move(terms);
  absl::StatusOr<MeasuredTimes> times = DecodeTimes(wire.times(), KernelTimings::kMaxSamples);
  if (!times.ok()) return Annotate(times.status(), "timings: times");
  out.times = *std::move(times);
  if (KeyOf(out) != key) return DataLoss("timings: of another kernel or voter");
  return out;
}

}  // namespace fusion
