#include "core/wire/basics/tilings.h"

#include "core/tensor/shape.h"
#include "core/wire/basics/scalars.h"
#include "fusion/v1/cuts.pb.h"

namespace fusion {
namespace {

void EncodeTile(const LockedTile& tile, v1::LockedTile* wire) {
  wire->set_dim(TextToWire(tile.dim));
  wire->set_tile(tile.tile);
}

void EncodeTiling(const LockedTiling& tiling, v1::LockedCut* out) {
  for (const LockedTile& tile : tiling.grid) EncodeTile(tile, out->add_grid());
  if (tiling.streamed.has_value()) EncodeTile(*tiling.streamed, out->mutable_streamed());
  for (const LockedProduct& product : tiling.products) {
    v1::LockedProduct* wire = out->add_products();
    wire->set_op(product.op);
    wire->set_swap(product.swap);
    wire->set_rows(product.rows);
    wire->set_columns(product.columns);
    wire->set_stage_rows(product.stage_rows);
  }
  if (tiling.split.has_value()) {
    v1::LockedSplit* split = out->mutable_split();
    split->set_dim(TextToWire(tiling.split->dim));
    split->set_parts(static_cast<int>(tiling.split->tile));
    EncodeTiling(tiling.phases[0], split->mutable_partial());
    EncodeTiling(tiling.phases[1], split->mutable_merge());
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

absl::StatusOr<LockedTiling> DecodePhase(const v1::LockedCut& wire) {
  LockedTiling tiling;
  RETURN_IF_ERROR(DecodeParts("grid", wire.grid(), DecodeTile, &tiling.grid));
  if (wire.has_streamed()) {
    absl::StatusOr<LockedTile> streamed = DecodeTile(wire.streamed());
    if (!streamed.ok()) return InvalidArgument("streamed.", Message(streamed.status()));
    tiling.streamed = *std::move(streamed);
  }
  RETURN_IF_ERROR(DecodeParts("products", wire.products(), DecodeProduct, &tiling.products));
  return tiling;
}

absl::StatusOr<LockedTiling> DecodeTiling(const v1::LockedCut& wire) {
  if (!wire.has_split()) return DecodePhase(wire);
  if (wire.grid_size() > 0 || wire.has_streamed() || wire.products_size() > 0) {
    return InvalidArgument("split: with grid, streamed or products; its phases have those");
  }
  const v1::LockedSplit& split = wire.split();
  RETURN_IF_ERROR(CheckName("split.dim", split.dim()));
  RETURN_IF_ERROR(CheckBetween("split.parts", split.parts(), 2, kMostSplitParts));
  LockedTiling tiling;
  tiling.split = LockedTile{split.dim(), split.parts()};
  for (bool merge : {false, true}) {
    std::string_view field = merge ? "split.merge" : "split.partial";
    const v1::LockedCut& phase = merge ? split.merge() : split.partial();
    if (phase.has_split()) return InvalidArgument(field, ".split: a phase is not split again");
    absl::StatusOr<LockedTiling> decoded = DecodePhase(phase);
    if (!decoded.ok()) return InvalidArgument(field, ".", Message(decoded.status()));
    tiling.phases.push_back(*std::move(decoded));
  }
  return tiling;
}

absl::StatusOr<LockedSequentialPhase> DecodeTurn(const v1::LockedTurn& wire) {
  LockedSequentialPhase turn;
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

}  // namespace

absl::Status CheckBetween(std::string_view field, int64_t value, int64_t least, int64_t most) {
  if (value >= least && value <= most) return absl::OkStatus();
  return InvalidArgument(field, ": ", value, "; expected ", least, "..", most);
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

void EncodeChoice(const LockedChoice& choice, v1::LockedChoice* out) {
  for (const LockedTiling& tiling : choice.parts) EncodeTiling(tiling, out->add_parts());
  for (const LockedSequentialPhase& turn : choice.turns) {
    v1::LockedTurn* part = out->add_turns();
    part->mutable_ops()->Add(turn.ops.begin(), turn.ops.end());
    part->set_choice(turn.choice);
  }
  for (const LockedPipeline& pipeline : choice.pipelines) {
    v1::LockedPipeline* part = out->add_pipelines();
    part->set_first(pipeline.first);
    part->set_phases(pipeline.phases);
    for (const LockedTile& slice : pipeline.slices) EncodeTile(slice, part->add_slices());
  }
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
  RETURN_IF_ERROR(DecodeParts("parts", wire.parts(), DecodeTiling, &choice.parts));
  return choice;
}

}  // namespace fusion
