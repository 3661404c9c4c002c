#include "core/wire/options/plan_lock.h"

#include <google/protobuf/text_format.h>

#include "core/bundle/plan_variants.h"
#include "core/wire/basics/scalars.h"
#include "core/wire/basics/text_format.h"
#include "core/wire/basics/tilings.h"
#include "fusion/v1/plan_lock.pb.h"

namespace fusion {
namespace {

constexpr std::string_view kFileHead =
    "# A pinned plan, for `fusionctl plan --lock`. proto/fusion/v1/plan_lock.proto says what is in "
    "it.\n";

std::string ToHex(const std::optional<Digest>& digest) {
  return digest.has_value() ? digest->ToHex() : "";
}

absl::StatusOr<std::optional<Digest>> FromHex(std::string_view field, const std::string& hex) {
  if (hex.empty()) return std::optional<Digest>();
  Digest digest;
  if (Digest::FromHex(hex, &digest)) return std::optional<Digest>(digest);
  return InvalidArgument(field, ": ", QuoteShort(hex), "; expected 64 lower-case hex digits");
}

absl::StatusOr<LockedGroup> DecodeGroup(const v1::LockedGroup& wire) {
  LockedGroup group;
  RETURN_IF_ERROR(DecodeOps(wire.ops(), &group.ops));
  group.choice = wire.choice();
  if (!wire.has_body()) return group;
  group.body = wire.body();
  if (group.body < 0 || group.choice != 0) {
    return InvalidArgument("body: ", group.body, " with choice ", group.choice,
                           "; expected a position and no choice");
  }
  return group;
}

// As a PlanLock says of a graph's program.
absl::StatusOr<LockedBody> DecodeBody(const v1::LockedBody& wire) {
  LockedBody body;
  RETURN_IF_ERROR(DecodeParts("groups", wire.groups(), DecodeGroup, &body.groups));
  RETURN_IF_ERROR(DecodeParts("choices", wire.choices(), DecodeChoice, &body.choices));
  RETURN_IF_ERROR(DecodeParts("bodies", wire.bodies(), DecodeBody, &body.bodies));
  return body;
}

absl::StatusOr<LockedVariant> DecodeVariant(const v1::LockedVariant& wire) {
  LockedVariant variant{.most = wire.most(), .decisions = {}};
  RETURN_IF_ERROR(CheckBetween("most", variant.most, 0, INT64_MAX));
  absl::StatusOr<LockedBody> decisions = DecodeBody(wire.decisions());
  if (!decisions.ok()) return InvalidArgument("decisions.", Message(decisions.status()));
  variant.decisions = *std::move(decisions);
  return variant;
}

absl::StatusOr<LockedKernel> DecodeKernel(const v1::LockedKernel& wire) {
  LockedKernel kernel{.label = wire.label()};
  ASSIGN_OR_RETURN(kernel.schedule, FromHex("schedule_sha256", wire.schedule_sha256()));
  ASSIGN_OR_RETURN(kernel.source, FromHex("source_sha256", wire.source_sha256()));
  ASSIGN_OR_RETURN(kernel.key, FromHex("kernel_key", wire.kernel_key()));
  return kernel;
}

// Everything but the repeated messages.
absl::Status DecodeHead(const v1::PlanLock& wire, PlanLock* lock) {
  if (wire.version() != kPlanLockVersion) {
    return Unimplemented("version: ", wire.version(), "; this build reads ", kPlanLockVersion);
  }
  RETURN_IF_ERROR(CheckBetween("planner_version", wire.planner_version(), 0, INT32_MAX));
  RETURN_IF_ERROR(CheckBetween("codegen_version", wire.codegen_version(), 0, INT32_MAX));
  lock->planner_version = wire.planner_version();
  lock->codegen_version = wire.codegen_version();
  RETURN_IF_ERROR(CheckName("target", wire.target()));
  lock->target = wire.target();
  ASSIGN_OR_RETURN(lock->device, FromHex("device_sha256", wire.device_sha256()));
  ASSIGN_OR_RETURN(std::optional<Digest> graph, FromHex("graph_sha256", wire.graph_sha256()));
  if (!graph.has_value()) return InvalidArgument("graph_sha256: missing");
  lock->graph = *graph;
  absl::StatusOr<FusionMode> fusion = FromWire(wire.fusion());
  if (!fusion.ok()) return Annotate(fusion.status(), "fusion");
  lock->fusion = *fusion;
  absl::StatusOr<Numerics> numerics = FromWire(wire.numerics());
  if (!numerics.ok()) return Annotate(numerics.status(), "numerics");
  lock->numerics = *numerics;
  ASSIGN_OR_RETURN(lock->plan, FromHex("plan_sha256", wire.plan_sha256()));
  return absl::OkStatus();
}

// Of a PlanLock or a LockedBody.
template <typename Locked, typename Wire>
void EncodeDecisions(const Locked& of, Wire* out) {
  for (const LockedGroup& group : of.groups) {
    v1::LockedGroup* wire = out->add_groups();
    wire->mutable_ops()->Add(group.ops.begin(), group.ops.end());
    wire->set_choice(group.choice);
    if (group.body >= 0) wire->set_body(group.body);
  }
  for (const LockedChoice& choice : of.choices) EncodeChoice(choice, out->add_choices());
  for (const LockedBody& body : of.bodies) EncodeDecisions(body, out->add_bodies());
}

}  // namespace

void EncodeLock(const PlanLock& lock, v1::PlanLock* out) {
  out->set_version(kPlanLockVersion);
  out->set_planner_version(lock.planner_version);
  out->set_codegen_version(lock.codegen_version);
  out->set_target(TextToWire(lock.target));
  out->set_device_sha256(ToHex(lock.device));
  out->set_graph_sha256(lock.graph.ToHex());
  out->set_fusion(ToWire(lock.fusion));
  out->set_numerics(ToWire(lock.numerics));
  EncodeDecisions(lock, out);
  for (const LockedVariant& variant : lock.variants) {
    v1::LockedVariant* wire = out->add_variants();
    wire->set_most(variant.most);
    EncodeDecisions(variant.decisions, wire->mutable_decisions());
  }
  for (const LockedKernel& kernel : lock.kernels) {
    v1::LockedKernel* wire = out->add_kernels();
    wire->set_label(TextToWire(kernel.label));
    wire->set_schedule_sha256(ToHex(kernel.schedule));
    wire->set_source_sha256(ToHex(kernel.source));
    wire->set_kernel_key(ToHex(kernel.key));
  }
  out->set_plan_sha256(ToHex(lock.plan));
}

absl::StatusOr<PlanLock> DecodeLock(const v1::PlanLock& wire) {
  PlanLock lock;
  RETURN_IF_ERROR(DecodeHead(wire, &lock));
  RETURN_IF_ERROR(DecodeParts("groups", wire.groups(), DecodeGroup, &lock.groups));
  RETURN_IF_ERROR(DecodeParts("choices", wire.choices(), DecodeChoice, &lock.choices));
  RETURN_IF_ERROR(DecodeParts("bodies", wire.bodies(), DecodeBody, &lock.bodies));
  RETURN_IF_ERROR(
      CheckCount("variants", wire.variants_size(), 0, static_cast<int>(kMaxPlanVariants)));
  RETURN_IF_ERROR(DecodeParts("variants", wire.variants(), DecodeVariant, &lock.variants));
  RETURN_IF_ERROR(DecodeParts("kernels", wire.kernels(), DecodeKernel, &lock.kernels));
  RETURN_IF_ERROR(CheckChoices(lock));
  return lock;
}

std::string LockToText(const PlanLock& lock) {
  v1::PlanLock wire;
  EncodeLock(lock, &wire);
  google::protobuf::TextFormat::Printer printer;
  printer.SetUseShortRepeatedPrimitives(true);
  std::string text;
  printer.PrintToString(wire, &text);
  return StrCat(kFileHead, text);
}

absl::StatusOr<PlanLock> LockFromText(std::string_view text) {
  v1::PlanLock wire;
  if (std::optional<TextError> error = ReadTextFormat(text, &wire)) {
    return InvalidArgument("line ", error->line, ", column ", error->column, ": ", error->message);
  }
  return DecodeLock(wire);
}

}  // namespace fusion
