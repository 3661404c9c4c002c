#include "core/wire/options/tile_search.h"

#include <cmath>

#include "core/wire/basics/scalars.h"
#include "core/wire/basics/tilings.h"
#include "fusion/v1/tile_search.pb.h"

namespace fusion {
namespace {

// Ways to cut one kernel; a search tries fewer.
constexpr int kMostTried = 64;

absl::Status CheckTimes(std::initializer_list<std::pair<const char*, double>> values) {
  for (const auto& [field, value] : values) {
    // Written so that NaN fails too.
    if (value >= 0 && std::isfinite(value)) continue;
    return InvalidArgument(field, ": ", value, "; expected 0 or more");
  }
  return absl::OkStatus();
}

void EncodeTried(const TriedTiling& tried, v1::TriedCut* out) {
  EncodeChoice(tried.choice, out->mutable_choice());
  out->set_tiles(TextToWire(tried.tiles));
  out->set_estimated_us(tried.estimated_us);
  out->set_runs(tried.runs);
  out->set_median_us(tried.median_us);
  out->set_low_us(tried.low_us);
  out->set_high_us(tried.high_us);
  out->set_reason(TextToWire(tried.reason));
}

absl::StatusOr<TriedTiling> DecodeTried(const v1::TriedCut& wire) {
  TriedTiling tried;
  absl::StatusOr<LockedChoice> choice = DecodeChoice(wire.choice());
  if (!choice.ok()) return InvalidArgument("choice.", Message(choice.status()));
  tried.choice = *std::move(choice);
  tried.tiles = wire.tiles();
  RETURN_IF_ERROR(CheckTimes({{"estimated_us", wire.estimated_us()},
                              {"median_us", wire.median_us()},
                              {"low_us", wire.low_us()},
                              {"high_us", wire.high_us()}}));
  tried.estimated_us = wire.estimated_us();
  RETURN_IF_ERROR(CheckBetween("runs", wire.runs(), 0, kMaxItems));
  tried.runs = wire.runs();
  tried.median_us = wire.median_us();
  tried.low_us = wire.low_us();
  tried.high_us = wire.high_us();
  tried.reason = wire.reason();
  return tried;
}

void EncodeTuned(const TunedKernel& kernel, v1::TunedKernel* out) {
  out->mutable_ops()->Add(kernel.ops.begin(), kernel.ops.end());
  out->set_group(kernel.group);
  for (const TriedTiling& tried : kernel.tried) EncodeTried(tried, out->add_tried());
  out->set_chosen(kernel.chosen);
  out->set_rival(kernel.rival);
  out->set_pairs(kernel.pairs);
  out->set_ratio(kernel.ratio);
  out->set_ratio_low(kernel.ratio_low);
  out->set_ratio_high(kernel.ratio_high);
  out->set_reason(TextToWire(kernel.reason));
  out->set_recalled(kernel.recalled);
}

absl::StatusOr<TunedKernel> DecodeTuned(const v1::TunedKernel& wire) {
  TunedKernel kernel;
  RETURN_IF_ERROR(DecodeOps(wire.ops(), &kernel.ops));
  RETURN_IF_ERROR(CheckBetween("group", wire.group(), -1, kMaxItems));
  kernel.group = wire.group();
  RETURN_IF_ERROR(CheckCount("tried", wire.tried_size(), 0, kMostTried));
  RETURN_IF_ERROR(DecodeParts("tried", wire.tried(), DecodeTried, &kernel.tried));
  const int last = std::max(wire.tried_size() - 1, 0);
  RETURN_IF_ERROR(CheckBetween("chosen", wire.chosen(), 0, last));
  RETURN_IF_ERROR(CheckBetween("rival", wire.rival(), 0, last));
  RETURN_IF_ERROR(CheckBetween("pairs", wire.pairs(), 0, kMaxItems));
  RETURN_IF_ERROR(CheckTimes({{"ratio", wire.ratio()},
                              {"ratio_low", wire.ratio_low()},
                              {"ratio_high", wire.ratio_high()}}));
  kernel.chosen = wire.chosen();
  kernel.rival = wire.rival();
  kernel.pairs = wire.pairs();
  kernel.ratio = wire.ratio();
  kernel.ratio_low = wire.ratio_low();
  kernel.ratio_high = wire.ratio_high();
  kernel.reason = wire.reason();
  kernel.recalled = wire.recalled();
  return kernel;
}

v1::TileSearchState ToWire(TileSearchState state) {
  switch (state) {
    case TileSearchState::kNone:
      return v1::TILE_SEARCH_STATE_NONE;
    case TileSearchState::kPending:
      return v1::TILE_SEARCH_STATE_PENDING;
    case TileSearchState::kCutShort:
      return v1::TILE_SEARCH_STATE_CUT_SHORT;
    case TileSearchState::kDone:
      return v1::TILE_SEARCH_STATE_DONE;
  }
  return v1::TILE_SEARCH_STATE_UNSPECIFIED;
}

absl::StatusOr<TileSearchState> StateFromWire(v1::TileSearchState state) {
  switch (state) {
    case v1::TILE_SEARCH_STATE_UNSPECIFIED:
    case v1::TILE_SEARCH_STATE_NONE:
      return TileSearchState::kNone;
    case v1::TILE_SEARCH_STATE_PENDING:
      return TileSearchState::kPending;
    case v1::TILE_SEARCH_STATE_CUT_SHORT:
      return TileSearchState::kCutShort;
    case v1::TILE_SEARCH_STATE_DONE:
      return TileSearchState::kDone;
    default:
      return InvalidArgument("state: unknown value ", static_cast<int>(state));
  }
}

}  // namespace

void EncodeSearchHead(const TileSearch& search, v1::TileSearch* out) {
  out->set_level(search.level);
  out->set_state(ToWire(search.state));
  out->set_reason(TextToWire(search.reason));
  out->set_conditions(TextToWire(search.conditions));
  out->set_seconds(search.seconds);
  out->set_measured(search.measured);
  out->set_recalled(search.recalled);
  out->set_changed(search.changed);
}

void EncodeSearchKernels(const TileSearch& search, v1::TileSearch* out) {
  for (const TunedKernel& kernel : search.kernels) EncodeTuned(kernel, out->add_kernels());
}

absl::StatusOr<TileSearch> DecodeSearch(const v1::TileSearch& wire) {
  TileSearch search;
  RETURN_IF_ERROR(CheckBetween("level", wire.level(), 0, kMaxOptLevel));
  search.level = wire.level();
  ASSIGN_OR_RETURN(search.state, StateFromWire(wire.state()));
  search.reason = wire.reason();
  search.conditions = wire.conditions();
  RETURN_IF_ERROR(CheckTimes({{"seconds", wire.seconds()},
                              {"measured", static_cast<double>(wire.measured())},
                              {"recalled", static_cast<double>(wire.recalled())},
                              {"changed", static_cast<double>(wire.changed())}}));
  search.seconds = wire.seconds();
  search.measured = wire.measured();
  search.recalled = wire.recalled();
  search.changed = wire.changed();
  RETURN_IF_ERROR(DecodeParts("kernels", wire.kernels(), DecodeTuned, &search.kernels));
  return search;
}

void EncodeMeasuredTiles(const MeasuredTiles& measured, v1::MeasuredTiles* out) {
  out->set_race(DigestToWire(measured.race));
  EncodeTuned(measured.result, out->mutable_result());
}

absl::StatusOr<MeasuredTiles> DecodeMeasuredTiles(const v1::MeasuredTiles& wire) {
  MeasuredTiles measured;
  absl::StatusOr<Digest> race = DigestFromWire(wire.race());
  if (!race.ok()) return Annotate(race.status(), "race");
  measured.race = *race;
  absl::StatusOr<TunedKernel> result = DecodeTuned(wire.result());
  if (!result.ok()) return InvalidArgument("result.", Message(result.status()));
  measured.result = *std::move(result);
  return measured;
}

Digest DigestOf(const TileSearch& search) {
  v1::TileSearch wire;
  EncodeSearchHead(search, &wire);
  EncodeSearchKernels(search, &wire);
  return Sha256(wire.SerializeAsString());
}

}  // namespace fusion
