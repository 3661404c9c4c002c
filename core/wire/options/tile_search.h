#pragma once

#include "core/base/status.h"
#include "core/bundle/tile_search.h"

namespace fusion::v1 {
class MeasuredTiles;
class TileSearch;
}  // namespace fusion::v1

namespace fusion {

/// All but the kernels, and the kernels alone: a plan travels without the latter. Both write into
/// `out`, the one behind the other.
void EncodeSearchHead(const TileSearch& search, v1::TileSearch* out);
void EncodeSearchKernels(const TileSearch& search, v1::TileSearch* out);
/// Inverse of both, for bytes that nobody vouches for: counts, positions, numbers and cuts are
/// checked; whether a cut fits its ops is the planner's to say. InvalidArgument names the field.
absl::StatusOr<TileSearch> DecodeSearch(const v1::TileSearch& wire);

void EncodeMeasuredTiles(const MeasuredTiles& measured, v1::MeasuredTiles* out);
/// As DecodeSearch.
absl::StatusOr<MeasuredTiles> DecodeMeasuredTiles(const v1::MeasuredTiles& wire);

/// Names everything in a search: equal digests, equal searches.
Digest DigestOf(const TileSearch& search);

}  // namespace fusion
