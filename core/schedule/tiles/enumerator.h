#pragma once

#include <array>
#include <string>
#include <vector>

#include "core/base/contains.h"
#include "core/base/refusal.h"
#include "core/schedule/lower/streamed_group.h"
#include "core/schedule/memory/block_windows.h"
#include "core/schedule/tiles/candidates.h"
#include "core/schedule/tiles/legal_choice.h"
#include "core/schedule/tiles/tile_score.h"
#include "core/schedule/tiles/unit_tiles.h"
#include "core/smg/halo.h"
#include "core/smg/slicers.h"

namespace fusion {

/// The implementation of EnumerateChoices. Call Run once. Not thread-safe. Keeps references to its
/// arguments.
class Enumerator {
 public:
  Enumerator(const FusionGroup& group, const DeviceSpec& device, const CandidateOptions& options)
      : group_(group), smg_(group.smg), device_(device), options_(options) {
    for (const SmgDim& d : smg_.dims) dims_.push_back({d.name, d.extent});
    for (DimId d : ParallelDims(group, options.forbid_recompute)) {
      SpatialVerdict verdict = SliceSpatially(smg_, d);
      // A dim that is only read at an offset stays whole.
      if (verdict.halos.empty() || verdict.Slides()) parallel_.push_back(d);
      if (verdict.Slides()) windowed_.push_back(d);
    }
    std::optional<std::vector<Halo>> halos = HalosOf(smg_, windowed_);
    if (halos.has_value()) {
      halos_ = *std::move(halos);
    } else {  // each can be tiled, but not all together
      std::erase_if(parallel_, [this](DimId d) { return Contains(windowed_, d); });
      windowed_.clear();
    }
  }

  std::vector<Choice> Run(std::string* refusal);

 private:
  int64_t extent(DimId d) const { return smg_.dim(d).extent; }

  // Why no dim can be tiled.
  Refusal NoBlocks() const;

  // ---- operand roles ----

  // One choice for each assignment of operand roles to the products.
  std::vector<Choice> Roles() const;

  const std::vector<RegisterBlock>& BlocksOf(int op, bool swap) const;

  bool HasConstant(int op) const;

  void SetBlocks(Choice* choice, const std::vector<int64_t>& window) const;

  // The best register block. If the device has no instruction for products of bytes, each operand
  // of such a product fills two registers: then the best block whose operands and sums fit in
  // registers.
  RegisterBlock WidestBlock(int op, bool swap) const;

  // True if rows of a param would evict each other from L1, so that copying them pays.
  bool WantsStagedRows(const ProductShape& p, const ProductChoice& c,
                       const std::vector<int64_t>& window) const;

  // ---- groups with products ----

  const ProductShape& Main() const;

  // Tile lengths that split `n` into nearly equal pieces, each a multiple of `unit`.
  static std::vector<int64_t> Tiles(int64_t n, int64_t unit, int64_t most);

  void AddProductChoices(const Choice& roles, std::vector<Choice>* out);

  struct Scored {
    double cost;
    Choice choice;
  };
  struct Shortlist {
    std::vector<Scored> best;     // ascending; the first of equal ones comes first
    std::optional<Scored> whole;  // the best without a halo, if windows are tiled
  };

  void Keep(double cost, const Choice& choice, Shortlist* list) const;

  // Adds the two best choices. Their variants with gathered windows, and the best choice without a
  // halo, go to `more_`.
  void AddBest(const Shortlist& list, std::vector<Choice>* out);

  // True if one of `choices` has the grid and the operand roles of `choice`.
  static bool IsAmong(const std::vector<Choice>& choices, const Choice& choice);

  // Copies windows that are rows of products to contiguous memory (im2col): the sum then walks one
  // dim. False if no row is a window, or all are gathered already.
  bool GatherWindows(Choice* choice) const;

  // Shortens the tile of the outermost windowed dim until the gathered windows of a product fit on
  // chip beside their source.
  void ShortenFor(const SmgOp& op, const std::vector<DimId>& rows, Choice* choice) const;

  // Tilings of the dims whose blocks have halos: the outermost in ever shorter tiles, the next one
  // in one piece or two. The others stay whole.
  std::vector<std::vector<GridDim>> WindowTilings() const;

  // LongestWindows of the blocks of a choice.
  Dims WindowsOf(const Choice& c) const { return LongestWindows(dims_, c.grid, halos_); }

  // Lengthens the tiles of further row dims until a task is worth its dispatch. They stay shorter
  // than the tile of `m`, whose elements stay the rows of register blocks.
  bool Lengthen(const ProductShape& main, const std::vector<DimId>& rows, DimId m, Choice* choice,
                std::vector<int64_t>* window) const;

  // The row dim that register blocks run along: the one with the smallest stride, among those that
  // fill a block or have at least kMinRows rows. For an image the pixels of a row, not of a column.
  DimId RowDim(const ProductShape& p, bool swap, const std::vector<DimId>& rows) const;

  bool Parallel(DimId d) const { return Contains(parallel_, d); }

  // `window` with summed dims streamed in the shortest slices.
  Dims Slices(Dims window) const;

  // ---- groups of rows and elements ----

  void AddRowChoices(const Choice& base, std::vector<Choice>* out);

  // `tile` rounded up to a multiple of four vectors, if the dim is long enough.
  int64_t RoundToVectors(int64_t tile, DimId d) const;

  // ---- temporal ----

  // Slices are multiples of this, so that they end between panels.
  int64_t PanelWidth(const Choice& c) const;

  // The streamed form of `d`, derived once; null if there is none.
  std::shared_ptr<const StreamedGroup> Stream(DimId d);

  // Lengths to try for the slices of a streamed dim. With windows also short ones: they need less
  // of an image, which leaves room for longer blocks and relatively shorter halos.
  std::vector<int64_t> StreamTiles(int64_t unit, int64_t length) const;

  // Bytes of operands that a block has on chip before a product: values that it computed, rows that
  // it copied.
  double OnChipBefore(const Choice& c, const ProductShape& p, const Dims& window) const;

  // The conditions under which a slice is not masked (Streamed::needed or Underflow::needed);
  // empty: no mask.
  static const std::vector<IndexExpr>& MaskOf(const StreamedGroup& streamed);

  // A choice with short slices of the streamed dim, and short blocks along the dims of the mask:
  // less of each slice is masked, so fewer masked elements are computed.
  Choice FollowMask(const Choice& c, const std::shared_ptr<const StreamedGroup>& streamed) const;

  // Shortens blocks until what they keep of a slice fits in a part of the private cache. Not if
  // there are weights: each block would read them from far memory.
  Choice ShortenForSlices(Choice c, DimId streamed, int64_t slice) const;

  // The largest product result that a block keeps whole along `d`, in bytes.
  double MadeAlong(DimId d, const Dims& window) const;

  // Dims to stream because the block's values would fill the private cache.
  struct ToStream {
    std::vector<DimId> summed;   // a product sums over it, and its operands fill the cache
    std::vector<DimId> reduced;  // others: another reduction runs over values that fill the cache
  };
  ToStream DimsToStream(const Choice& c) const;

  // Whether each block computes operands of products element by element from inputs, as it does for
  // concatenated inputs: longer blocks repeat this work less often.
  bool MakesOperands() const;

  // Adds a choice that streams `d`, if there is such a form.
  void AddStreams(const Choice& c, DimId d, std::vector<Choice>* out);

  // Adds streamed forms of choices whose blocks fill the private cache. Returns how many of them
  // follow masks; these come first.
  size_t AddTemporal(std::vector<Choice>* choices);

  const FusionGroup& group_;
  const Smg& smg_;
  const DeviceSpec& device_;
  const CandidateOptions& options_;
  std::vector<DimId> parallel_;
  std::vector<DimId> windowed_;  // those of parallel_ whose blocks have halos
  std::vector<Halo> halos_;      // if all of windowed_ are tiled
  std::vector<ScheduleDim> dims_;
  std::vector<Choice> more_;    // ranked after the best of all roles
  std::vector<Choice> beside_;  // appended at the end, not counted by the limit
  std::vector<ProductShape> products_;
  std::map<DimId, std::shared_ptr<const StreamedGroup>> streamed_;
};

}  // namespace fusion
