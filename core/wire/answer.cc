#include "core/wire/answer.h"

#include <cmath>

#include "core/wire/basics/scalars.h"
#include "core/wire/kernel.h"
#include "fusion/v1/fusion_service.pb.h"

namespace fusion {
namespace {

using WireNames = google::protobuf::RepeatedPtrField<std::string>;

void EncodeNames(const std::vector<std::string>& names, WireNames* out) {
  out->Reserve(static_cast<int>(names.size()));
  for (const std::string& name : names) *out->Add() = TextToWire(name);
}

std::vector<std::string> DecodeNames(const WireNames& names) {
  return {names.begin(), names.end()};
}

}  // namespace

v1::CacheOutcome ToWire(CacheOutcome outcome) {
  switch (outcome) {
    case CacheOutcome::kMiss:
      return v1::CACHE_OUTCOME_MISS;
    case CacheOutcome::kHitMemory:
      return v1::CACHE_OUTCOME_HIT_MEMORY;
    case CacheOutcome::kHitStore:
      return v1::CACHE_OUTCOME_HIT_STORE;
    case CacheOutcome::kSharedFlight:
      return v1::CACHE_OUTCOME_SHARED_FLIGHT;
  }
  return v1::CACHE_OUTCOME_UNSPECIFIED;
}

CacheOutcome FromWire(v1::CacheOutcome outcome) {
  switch (outcome) {
    case v1::CACHE_OUTCOME_HIT_MEMORY:
      return CacheOutcome::kHitMemory;
    case v1::CACHE_OUTCOME_HIT_STORE:
      return CacheOutcome::kHitStore;
    case v1::CACHE_OUTCOME_SHARED_FLIGHT:
      return CacheOutcome::kSharedFlight;
    default:
      return CacheOutcome::kMiss;
  }
}

v1::DumpKind ToWire(DumpKind kind) {
  switch (kind) {
    case DumpKind::kGraph:
      return v1::DUMP_KIND_GRAPH;
    case DumpKind::kProgram:
      return v1::DUMP_KIND_PROGRAM;
    case DumpKind::kSmg:
      return v1::DUMP_KIND_SMG;
    case DumpKind::kSchedule:
      return v1::DUMP_KIND_SCHEDULE;
    case DumpKind::kSource:
      return v1::DUMP_KIND_SOURCE;
    case DumpKind::kLock:
      return v1::DUMP_KIND_LOCK;
  }
  return v1::DUMP_KIND_UNSPECIFIED;
}

absl::StatusOr<DumpKind> FromWire(v1::DumpKind kind) {
  switch (kind) {
    case v1::DUMP_KIND_GRAPH:
      return DumpKind::kGraph;
    case v1::DUMP_KIND_PROGRAM:
      return DumpKind::kProgram;
    case v1::DUMP_KIND_SMG:
      return DumpKind::kSmg;
    case v1::DUMP_KIND_SCHEDULE:
      return DumpKind::kSchedule;
    case v1::DUMP_KIND_SOURCE:
      return DumpKind::kSource;
    case v1::DUMP_KIND_LOCK:
      return DumpKind::kLock;
    case v1::DUMP_KIND_UNSPECIFIED:
      return InvalidArgument("dumps: unspecified kind; expected 1..6");
    default:
      return Unimplemented("dumps: unknown kind ", static_cast<int>(kind), "; expected 1..6");
  }
}

void EncodeBinding(const Binding& binding, v1::Binding* out) {
  EncodeNames(binding.inputs, out->mutable_inputs());
  EncodeNames(binding.outputs, out->mutable_outputs());
  EncodeNames(binding.weights, out->mutable_weights());
  EncodeNames(binding.nodes, out->mutable_nodes());
  EncodeNames(binding.symbols, out->mutable_symbols());
}

Binding DecodeBinding(const v1::Binding& wire) {
  return {DecodeNames(wire.inputs()), DecodeNames(wire.outputs()), DecodeNames(wire.weights()),
          DecodeNames(wire.nodes()), DecodeNames(wire.symbols())};
}

void EncodeKernelStatus(const KernelStatus& status, v1::KernelStatus* out) {
  out->set_key(DigestToWire(status.key));
  out->set_state(ToWire(status.state));
  if (status.state != KernelState::kReady) return;
  out->set_content_sha256(DigestToWire(status.content));
  out->set_bytes(status.bytes);
  EncodeCheckReport(status.check, out->mutable_check());
  out->set_cached(status.cached);
  out->set_compile_ms(status.compile_ms);
}

absl::StatusOr<KernelStatus> DecodeKernelStatus(const v1::KernelStatus& wire) {
  KernelStatus out;
  ASSIGN_OR_RETURN(out.key, DigestFromWire(wire.key()));
  ASSIGN_OR_RETURN(out.state, FromWire(wire.state()));
  if (out.state != KernelState::kReady) return out;
  if (wire.bytes() < 0) return InvalidArgument("bytes: ", wire.bytes(), "; expected 0 or more");
  if (!std::isfinite(wire.compile_ms())) return InvalidArgument("compile_ms: not a number");
  ASSIGN_OR_RETURN(out.content, DigestFromWire(wire.content_sha256()));
  out.bytes = wire.bytes();
  ASSIGN_OR_RETURN(out.check, DecodeCheckReport(wire.check()));
  out.cached = wire.cached();
  out.compile_ms = wire.compile_ms();
  return out;
}

void EncodeMiss(const MissExplanation& miss, v1::MissExplanation* out) {
  if (miss.nearest.has_value()) out->set_nearest_plan_key(DigestToWire(*miss.nearest));
  for (const KeyDifference& difference : miss.differences) {
    v1::KeyDifference* wire = out->add_differences();
    wire->set_field(TextToWire(difference.field));
    wire->set_asked(TextToWire(difference.asked));
    wire->set_stored(TextToWire(difference.stored));
  }
  out->set_compared_plans(miss.compared);
  out->set_summary(TextToWire(miss.summary));
}

absl::StatusOr<MissExplanation> DecodeMiss(const v1::MissExplanation& wire) {
  MissExplanation out;
  if (!wire.nearest_plan_key().empty()) {
    absl::StatusOr<Digest> key = DigestFromWire(wire.nearest_plan_key());
    if (!key.ok()) return Annotate(key.status(), "nearest_plan_key");
    out.nearest = *key;
  }
  for (const v1::KeyDifference& difference : wire.differences()) {
    out.differences.push_back({difference.field(), difference.asked(), difference.stored()});
  }
  out.compared = wire.compared_plans();
  out.summary = wire.summary();
  return out;
}

void EncodeStageTime(const StageTime& time, v1::StageTime* out) {
  out->set_stage(TextToWire(time.stage));
  out->set_milliseconds(ToMilliseconds(time.took));
}

StageTime DecodeStageTime(const v1::StageTime& wire) {
  constexpr double kDay = 24 * 3600 * 1e3;
  double ms = wire.milliseconds();
  bool sane = ms >= 0 && ms <= kDay;
  return {wire.stage(), Nanoseconds(sane ? static_cast<int64_t>(ms * 1e6 + 0.5) : 0)};
}

void EncodeDump(const Dump& dump, v1::Dump* out) {
  out->set_kind(ToWire(dump.kind));
  out->set_name(TextToWire(dump.name));
  out->set_text(TextToWire(dump.text));
}

absl::StatusOr<Dump> DecodeDump(const v1::Dump& wire) {
  ASSIGN_OR_RETURN(DumpKind kind, FromWire(wire.kind()));
  return Dump{kind, wire.name(), wire.text()};
}

}  // namespace fusion
