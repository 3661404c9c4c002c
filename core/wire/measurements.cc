#include "core/wire/measurements.h"

#include "core/wire/basics/measured_times.h"
#include "core/wire/basics/scalars.h"
#include "fusion/v1/measurements.pb.h"

namespace fusion {
std::string EncodeMeasurements(const Digest& plan_key, const PlanMeasurements& measurements) {
  v1::StoredMeasurements wire;
  wire.set_plan_key(DigestToWire(plan_key));
  wire.set_kernels_sha256(DigestToWire(measurements.kernels));
  for (const auto& [launch, times] : measurements.launches) {
    v1::StoredLatencies* out = wire.add_launches();
    out->set_launch(launch);
    EncodeTimes(times, out);
  }
  EncodeTimes(measurements.runs, wire.mutable_runs());
  for (const std::string& device : measurements.devices) wire.add_devices(TextToWire(device));
  wire.set_last_report_unix_ms(measurements.last_report_unix_ms);
  return wire.SerializeAsString();
}

absl::StatusOr<PlanMeasurements> DecodeMeasurements(const Digest& plan_key,
                                                    std::string_view bytes) {
  v1::StoredMeasurements wire;
  if (bytes.size() > INT32_MAX ||
      !wire.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return InvalidArgument("measurements: ", bytes.size(),
                           " bytes that are not a fusion.v1.StoredMeasurements");
  }
  absl::StatusOr<Digest> key = DigestFromWire(wire.plan_key());
  if (!key.ok()) return Annotate(key.status(), "measurements: plan_key");
  if (*key != plan_key) return DataLoss("measurements: of plan ", key->ToHex());
  PlanMeasurements out;
  absl::StatusOr<Digest> kernels = DigestFromWire(wire.kernels_sha256());
  if (!kernels.ok()) return Annotate(kernels.status(), "measurements: kernels_sha256");
  out.kernels = *kernels;
  for (const v1::StoredLatencies& launch : wire.launches()) {
    absl::StatusOr<MeasuredTimes> times = DecodeTimes(launch, PlanMeasurements::kMaxSamples);
    bool fresh = launch.launch() >= 0 && !out.launches.contains(launch.launch());
    if (times.ok() && fresh) {
      out.launches[launch.launch()] = *std::move(times);
      continue;
    }
    absl::Status bad = fresh ? times.status() : InvalidArgument("negative, or twice");
    return Annotate(bad, StrCat("measurements: launch ", launch.launch()));
  }
  absl::StatusOr<MeasuredTimes> runs = DecodeTimes(wire.runs(), PlanMeasurements::kMaxSamples);
  if (!runs.ok()) return Annotate(runs.status(), "measurements: runs");
  out.runs = *std::move(runs);
  if (wire.devices_size() > static_cast<int>(PlanMeasurements::kMaxDevices)) {
    return InvalidArgument("measurements: devices: ", wire.devices_size(), " entries; at most ",
                           PlanMeasurements::kMaxDevices);
  }
  out.devices.assign(wire.devices().begin(), wire.devices().end());
  out.last_report_unix_ms = wire.last_report_unix_ms();
  return out;
}

}  // namespace fusion
