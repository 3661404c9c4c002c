#include "core/wire/options/target.h"

#include "core/wire/basics/scalars.h"
#include "fusion/v1/fusion_service.pb.h"

namespace fusion {
namespace {

// No machine comes near these; what exceeds them is a mistake or an attack.
constexpr int64_t kMaxCacheBytes = int64_t{1} << 40;
constexpr int kMaxFeatures = 1024;

absl::Status CheckRange(std::string_view field, int64_t value, int64_t low, int64_t high) {
  if (value >= low && value <= high) return absl::OkStatus();
  return InvalidArgument("target.", field, ": ", value, "; expected ", low, "..", high);
}

absl::StatusOr<MeasuredConstants> DecodeMeasured(const v1::MeasuredConstants& wire) {
  const auto most = static_cast<int64_t>(MeasurableConstants().size());
  RETURN_IF_ERROR(CheckRange("measured.constants (count)", wire.constants_size(), 1, most));
  MeasuredConstants out{
      .isa = wire.isa(), .threads = wire.threads(), .date = wire.date(), .source = wire.source()};
  for (const v1::MeasuredConstant& constant : wire.constants()) {
    if (out.values.emplace(constant.name(), constant.value()).second) continue;
    return InvalidArgument("target.measured.constants: ", QuoteShort(constant.name()),
                           " is given twice");
  }
  RETURN_IF_ERROR(CheckMeasured(out, "target.measured"));
  RETURN_IF_ERROR(CheckName("target.measured.source", wire.source()));
  return out;
}

}  // namespace

void EncodeTarget(const Target& target, v1::Target* out) {
  out->set_name(TextToWire(target.name));
  out->set_vendor(TextToWire(target.vendor));
  out->set_family(target.family);
  out->set_model(target.model);
  out->set_isa(TextToWire(target.isa));
  out->clear_features();
  for (const std::string& feature : target.features) out->add_features(TextToWire(feature));
  out->set_l1_bytes(target.l1_bytes);
  out->set_l2_bytes(target.l2_bytes);
  out->set_l3_bytes(target.l3_bytes);
  out->set_threads(target.threads);
  out->clear_measured();
  if (!target.measured) return;
  v1::MeasuredConstants* measured = out->mutable_measured();
  measured->set_isa(TextToWire(target.measured->isa));
  measured->set_threads(target.measured->threads);
  measured->set_date(TextToWire(target.measured->date));
  measured->set_source(TextToWire(target.measured->source));
  for (const auto& [name, value] : target.measured->values) {
    v1::MeasuredConstant* constant = measured->add_constants();
    constant->set_name(TextToWire(name));
    constant->set_value(value);
  }
}

absl::StatusOr<Target> DecodeTarget(const v1::Target& wire) {
  if (wire.name().empty() && wire.isa().empty()) {
    return InvalidArgument("target: neither name nor isa is given; isa is required without a name");
  }
  if (!wire.isa().empty()) {
    absl::Status known = ParseIsa(wire.isa()).status();
    if (!known.ok()) return Annotate(known, "target.isa");
  }
  RETURN_IF_ERROR(CheckName("target.name", wire.name()));
  RETURN_IF_ERROR(CheckName("target.vendor", wire.vendor()));
  RETURN_IF_ERROR(CheckRange("family", wire.family(), 0, 1 << 20));
  RETURN_IF_ERROR(CheckRange("model", wire.model(), 0, 1 << 20));
  RETURN_IF_ERROR(CheckRange("features (count)", wire.features_size(), 0, kMaxFeatures));
  for (const std::string& feature : wire.features()) {
    RETURN_IF_ERROR(CheckName("target.features", feature));
  }
  RETURN_IF_ERROR(CheckRange("l1_bytes", wire.l1_bytes(), 0, kMaxCacheBytes));
  RETURN_IF_ERROR(CheckRange("l2_bytes", wire.l2_bytes(), 0, kMaxCacheBytes));
  RETURN_IF_ERROR(CheckRange("l3_bytes", wire.l3_bytes(), 0, kMaxCacheBytes));
  RETURN_IF_ERROR(CheckRange("threads", wire.threads(), 0, kMaxTargetThreads));

  Target target;
  target.name = wire.name();
  target.vendor = wire.vendor();
  target.family = wire.family();
  target.model = wire.model();
  target.isa = wire.isa();
  target.features.assign(wire.features().begin(), wire.features().end());
  target.l1_bytes = wire.l1_bytes();
  target.l2_bytes = wire.l2_bytes();
  target.l3_bytes = wire.l3_bytes();
  target.threads = wire.threads();
  if (wire.has_measured()) {
    ASSIGN_OR_RETURN(target.measured, DecodeMeasured(wire.measured()));
  }
  return target;
}

}  // namespace fusion
