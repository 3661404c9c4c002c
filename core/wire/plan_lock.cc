#include "core/wire/plan_lock.h"

#include <google/protobuf/text_format.h>

#include "core/bundle/plan_variants.h"
#include "core/tensor/shape.h"
#include "core/wire/decode_each.h"
#include "core/wire/scalars.h"
#include "core/wire/text_format.h"
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

absl::Status CheckBetween(std::string_view field, int64_t value, int64_t least, int64_t most) {
  if (value >= least && value <= most) return absl::OkStatus();
  return InvalidArgument(field, ": ", value, "; expected ", least, "..", most);
}

void EncodeTile(const LockedTile& tile, v1::LockedTile* wire) {
  wire->set_dim(TextToWire(tile.dim));
  wire->set_tile(tile.tile);
}

void EncodeCut(const LockedCut& cut, v1::LockedCut* out) {
  for (const LockedTile& tile : cut.grid) EncodeTile(tile, out->add_grid());
  if (cut.streamed.has_value()) EncodeTile(*cut.streamed, out->mutable_streamed());
  for (const LockedProduct& product : cut.products) {
    v1::LockedProduct* wire = out->add_products();
    wire->set_op(product.op);
    wire->set_swap(product.swap);
    wire->set_rows(product.rows);
    wire->set_columns(product.columns);
    wire->set_stage_rows(product.stage_rows);
  }
  if (cut.split.has_value()) {
    v1::LockedSplit* split = out->mutable_split();
    split->set_dim(TextToWire(cut.split->dim));
    split->set_parts(static_cast<int>(cut.split->tile));
    EncodeCut(cut.phases[0], split->mutable_partial());
    EncodeCut(cut.phases[1], split->mutable_merge());
  }
}

absl::StatusOr<LockedTile> DecodeTile(const v1::LockedTile& wire) {
  RETURN_IF_ERROR(CheckName("dim", wire.dim()));
  RETURN_IF_ERROR(CheckBetween("tile", wire.tile(), 1, kMaxExtent));
  return LockedTile{wire.dim(), wire.tile()};
}

absl::StatusOr<LockedProduct> DecodeProduct(const v1::LockedProduct& wire) {
  constexpr int kMostOfBlock = 1 << 16;
  RETURN_IF_ERROR(CheckBetween("op", wire.op(), 0, kMaxItems));
  RETURN_IF_ERROR(CheckBetween("rows", wire.rows(), 1, kMostOfBlock));
  RETURN_IF_ERROR(CheckBetween("columns", wire.columns(), 1, kMostOfBlock));
  return LockedProduct{wire.op(), wire.swap(), wire.rows(), wire.columns(), wire.stage_rows()};
}

// Of fields of messages: "grid[2].tile: ...".
template <typename Wire, typename Value>
absl::Status DecodeParts(std::string_view field,
                         const google::protobuf::RepeatedPtrField<Wire>& wire,
                         absl::StatusOr<Value> (*decode)(const Wire&), std::vector<Value>* out) {
  return DecodeEach(field, wire, decode, out, ".");
}

absl::StatusOr<LockedCut> DecodePhase(const v1::LockedCut& wire) {
  LockedCut cut;
  RETURN_IF_ERROR(DecodeParts("grid", wire.grid(), DecodeTile, &cut.grid));
  if (wire.has_streamed()) {
    absl::StatusOr<LockedTile> streamed = DecodeTile(wire.streamed());
    if (!streamed.ok()) return InvalidArgument("streamed.", Message(streamed.status()));
    cut.streamed = *std::move(streamed);
  }
  RETURN_IF_ERROR(DecodeParts("products", wire.products(), DecodeProduct, &cut.products));
  return cut;
}

absl::StatusOr<LockedCut> DecodeCut(const v1::LockedCut& wire) {
  if (!wire.has_split()) return DecodePhase(wire);
  if (wire.grid_size() > 0 || wire.has_streamed() || wire.products_size() > 0) {
    return InvalidArgument("split: with grid, streamed or products; its phases have those");
  }
  const v1::LockedSplit& split = wire.split();
  RETURN_IF_ERROR(CheckName("split.dim", split.dim()));
  RETURN_IF_ERROR(CheckBetween("split.parts", split.parts(), 2, kMostSplitParts));
  LockedCut cut;
  cut.split = LockedTile{split.dim(), split.parts()};
  for (bool merge : {false, true}) {
    std::string_view field = merge ? "split.merge" : "split.partial";
    const v1::LockedCut& phase = merge ? split.merge() : split.partial();
    if (phase.has_split()) return InvalidArgument(field, ".split: a phase is not split again");
    absl::StatusOr<LockedCut> decoded = DecodePhase(phase);
    if (!decoded.ok()) return InvalidArgument(field, ".", Message(decoded.status()));
    cut.phases.push_back(*std::move(decoded));
  }
  return cut;
}

absl::Status DecodeOps(const google::protobuf::RepeatedField<int>& wire, std::vector<int>* ops) {
  RETURN_IF_ERROR(CheckCount("ops", wire.size(), 1, kMaxItems));
  for (int i = 0; i < wire.size(); ++i) {
    int least = i == 0 ? 0 : ops->back() + 1;
    if (wire[i] < least || wire[i] > kMaxItems) {
      return InvalidArgument("ops[", i, "]: ", wire[i],
                             "; expected positions of loop ops, ascending");
    }
    ops->push_back(wire[i]);
  }
  return absl::OkStatus();
}

absl::StatusOr<LockedTurn> DecodeTurn(const v1::LockedTurn& wire) {
  LockedTurn turn;
  RETURN_IF_ERROR(DecodeOps(wire.ops(), &turn.ops));
  turn.choice = wire.choice();
  return turn;
}

absl::StatusOr<LockedPipeline> DecodePipeline(const v1::LockedPipeline& wire) {
  LockedPipeline pipeline{.first = wire.first(), .phases = wire.phases(), .slices = {}};
  RETURN_IF_ERROR(CheckBetween("first", pipeline.first, 0, kMaxItems));
  RETURN_IF_ERROR(CheckBetween("phases", pipeline.phases, 2, kMaxItems));
  RETURN_IF_ERROR(CheckCount("slices", wire.slices_size(), 1, kMaxItems));
  RETURN_IF_ERROR(DecodeParts("slices", wire.slices(), DecodeTile, &pipeline.slices));
  return pipeline;
}

absl::StatusOr<LockedChoice> DecodeChoice(const v1::LockedChoice& wire) {
  LockedChoice choice;
  if (wire.turns_size() > 0) {
    if (wire.parts_size() > 0)
      return InvalidArgument("turns: with parts; a choice has one of them");
    RETURN_IF_ERROR(CheckCount("turns", wire.turns_size(), 2, kMaxItems));
    RETURN_IF_ERROR(DecodeParts("turns", wire.turns(), DecodeTurn, &choice.turns));
    RETURN_IF_ERROR(DecodeParts("pipelines", wire.pipelines(), DecodePipeline, &choice.pipelines));
    return choice;
  }
  if (wire.pipelines_size() > 0) return InvalidArgument("pipelines: without turns");
  RETURN_IF_ERROR(CheckCount("parts", wire.parts_size(), 1, kMaxItems));
  RETURN_IF_ERROR(DecodeParts("parts", wire.parts(), DecodeCut, &choice.parts));
  return choice;
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
  for (const LockedChoice& choice : of.choices) {
    v1::LockedChoice* wire = out->add_choices();
    for (const LockedCut& cut : choice.parts) EncodeCut(cut, wire->add_parts());
    for (const LockedTurn& turn : choice.turns) {
      v1::LockedTurn* part = wire->add_turns();
      part->mutable_ops()->Add(turn.ops.begin(), turn.ops.end());
      part->set_choice(turn.choice);
    }
    for (const LockedPipeline& pipeline : choice.pipelines) {
      v1::LockedPipeline* part = wire->add_pipelines();
      part->set_first(pipeline.first);
      part->set_phases(pipeline.phases);
      for (const LockedTile& slice : pipeline.slices) EncodeTile(slice, part->add_slices());
    }
  }
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
