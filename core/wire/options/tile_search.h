#pragma once

#include "core/base/status.h"
#include "core/bundle/tile_search.h"

namespace fusion::v1 {
class MeasuredTiles;
class TileSearch;
}  // namespace fusion::v1

namespace fusion {

/// EncodeSearchHead writes all fields but the kernels; EncodeSearchKernels appends the kernels.
/// Plans are sent without the kernels. For the complete message call both on the same `out`.
void EncodeSearchHead(const TileSearch& search, v1::TileSearch* out);
void EncodeSearchKernels(const TileSearch& search, v1::TileSearch* out);
/// Inverse of both for untrusted input. Checks counts, positions, numbers and tilings; the planner
/// checks whether a tiling fits its ops. InvalidArgument names the field.
absl::StatusOr<TileSearch> DecodeSearch(const v1::TileSearch& wire);

void EncodeMeasuredTiles(const MeasuredTiles& measured, v1::MeasuredTiles* out);
/// Fails as DecodeSearch does.
absl::StatusOr<MeasuredTiles> DecodeMeasuredTiles(const v1::MeasuredTiles& wire);

/// Digest over everything in a search. Equal digests mean equal searches.
Digest DigestOf(const TileSearch& search);

}  // namespace fusion
