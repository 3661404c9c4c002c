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

/// Makes the choices of EnumerateChoices. One use; not thread-safe. What it is made from outlives
/// it.
class Enumerator {
 public:
  Enumerator(const FusionGroup& group, const DeviceSpec& device, const CandidateOptions& options)
      : group_(group), smg_(group.smg), device_(device), options_(options) {
    for (const SmgDim& d : smg_.dims) dims_.push_back({d.name, d.extent});
    for (DimId d : ParallelDims(group, options.forbid_recompute)) {
      SpatialVerdict verdict = SliceSpatially(smg_, d);
      // What is only moved stays whole.
      if (verdict.halos.empty() || verdict.Slides()) parallel_.push_back(d);
      if (verdict.Slides()) windowed_.push_back(d);
    }
    std::optional<std::vector<Halo>> halos = HalosOf(smg_, windowed_);
    if (halos.has_value()) {
      halos_ = *std::move(halos);
    } else {  // each can be cut, but not all
      std::erase_if(parallel_, [this](DimId d) { return Contains(windowed_, d); });
      windowed_.clear();
    }
  }

  std::vector<Choice> Run(std::string* refusal);

 private:
  int64_t extent(DimId d) const { return smg_.dim(d).extent; }

  // What keeps each dim whole.
  Refusal NoBlocks() const;

  // ---- operand roles ----

  // Every product one way or the other.
  std::vector<Choice> Roles() const;

  const std::vector<RegisterBlock>& BlocksOf(int op, bool swap) const;

  bool HasConstant(int op) const;

  void SetBlocks(Choice* choice, const std::vector<int64_t>& window) const;

  // The best block. Where no instruction multiplies bytes, each operand of a product of them fills
  // two registers: then the best of which all stay in registers.
  RegisterBlock WidestBlock(int op, bool swap) const;

  // Rows of a param may lie so that they evict each other from L1.
  bool WantsStagedRows(const ProductShape& p, const ProductChoice& c,
                       const std::vector<int64_t>& window) const;

  // ---- groups with products ----

  const ProductShape& Main() const;

  // Tile lengths that cut `n` into nearly equal pieces, each a multiple of `unit`.
  static std::vector<int64_t> Tiles(int64_t n, int64_t unit, int64_t most);

  void AddProductChoices(const Choice& roles, std::vector<Choice>* out);

  struct Scored {
    double cost;
    Choice choice;
  };
  struct Shortlist {
    std::vector<Scored> best;     // ascending; of equal ones the first comes first
    std::optional<Scored> whole;  // the best without a halo, where windows are cut
  };

  void Keep(double cost, const Choice& choice, Shortlist* list) const;

  // The two best; as further choices what of them gathers its windows, and where windows are cut
  // the best without a halo.
  void AddBest(const Shortlist& list, std::vector<Choice>* out);

  // True if one of `choices` has the grid of `choice` and does the same with operands.
  static bool IsAmong(const std::vector<Choice>& choices, const Choice& choice);

  // Lays the windows that rows of products are next to each other (im2col): the sum then walks one
  // dim. False if no row is a window, or all are laid out already.
  bool GatherWindows(Choice* choice) const;

  // Cuts the outermost dim that windows slide along so short that the gathered windows of a product
  // have room beside what they are gathered from.
  void ShortenFor(const SmgOp& op, const std::vector<DimId>& rows, Choice* choice) const;

  // Ways to cut the dims along which blocks have halos: the outermost into ever shorter tiles, the
  // next one in one piece or two. The others stay whole.
  std::vector<std::vector<GridDim>> WindowCuts() const;

  // The longest windows in blocks of a choice.
  Dims WindowsOf(const Choice& c) const { return LongestWindows(dims_, c.grid, halos_); }

  // Tasks of several rows of an image: further row dims get longer tiles until a task is worth
  // handing out. Shorter than that of `m`, which stays the rows of register blocks.
  bool Lengthen(const ProductShape& main, const std::vector<DimId>& rows, DimId m, Choice* choice,
                std::vector<int64_t>* window) const;

  // The row dim that blocks run along: the one whose neighbours lie closest together, of those that
  // fill a register block or at least kMinRows of it; the pixels of a row of an image, not of a
  // column.
  DimId RowDim(const ProductShape& p, bool swap, const std::vector<DimId>& rows) const;

  bool Parallel(DimId d) const { return Contains(parallel_, d); }

  // Windows when sums are streamed in the shortest slices.
  Dims Slices(Dims window) const;

  // ---- groups of rows and elements ----

  void AddRowChoices(const Choice& base, std::vector<Choice>* out);

  // Cuts along a contiguous dim at multiples of a few vectors.
  int64_t RoundToVectors(int64_t tile, DimId d) const;

  // ---- temporal ----

  // A slice ends between panels.
  int64_t PanelWidth(const Choice& c) const;

  // The form in which `d` is streamed, derived once; null if there is none.
  std::shared_ptr<const StreamedGroup> Stream(DimId d);

  // Lengths of the slices of a streamed dim. Behind windows short ones too: what they need of an
  // image leaves room for more of it, and so for shorter halos.
  std::vector<int64_t> StreamTiles(int64_t unit, int64_t length) const;

  // Bytes that a product finds on chip in a block: values that the block made, rows that it copies.
  double OnChipBefore(const Choice& c, const ProductShape& p, const Dims& window) const;

  // Where a mask of the streamed form leaves something; empty: it has none.
  static const std::vector<IndexExpr>& MaskOf(const StreamedGroup& streamed);

  // A choice whose slices of the streamed dim, and blocks along the dims by which a mask hides
  // slices, are short: the less of a slice is hidden by its mask, the less is computed for nothing.
  Choice FollowMask(const Choice& c, const std::shared_ptr<const StreamedGroup>& streamed) const;

  // A choice with blocks of so few rows that what they keep of a slice lies near, where there are
  // no weights that every block would read from afar.
  Choice ShortenForSlices(Choice c, DimId streamed, int64_t slice) const;

  // Bytes of what products make that a block keeps whole along `d`.
  double MadeAlong(DimId d, const Dims& window) const;

  // Dims to stream where that empties the private cache.
  struct ToStream {
    std::vector<DimId> summed;   // a product is summed over, and finds on chip what fills it
    std::vector<DimId> reduced;  // of others: something else is reduced along, of what fills it
  };
  ToStream DimsToStream(const Choice& c) const;

  // Whether blocks make operands of products element by element, each for itself, as they do of
  // what lies side by side in several inputs: the longer blocks are, the less often.
  bool MakesOperands() const;

  // A choice with `d` streamed, if it has such a form.
  void AddStreams(const Choice& c, DimId d, std::vector<Choice>* out);

  // Where that fills the private cache, stream the dim it is summed over. How many forms follow
  // masks: they come before all others.
  size_t AddTemporal(std::vector<Choice>* choices);

  const FusionGroup& group_;
  const Smg& smg_;
  const DeviceSpec& device_;
  const CandidateOptions& options_;
  std::vector<DimId> parallel_;
  std::vector<DimId> windowed_;  // of those: blocks have halos
  std::vector<Halo> halos_;      // if all of these are cut
  std::vector<ScheduleDim> dims_;
  std::vector<Choice> more_;    // behind the best of all roles
  std::vector<Choice> beside_;  // behind all of these, whatever the limit
  std::vector<ProductShape> products_;
  std::map<DimId, std::shared_ptr<const StreamedGroup>> streamed_;
};

}  // namespace fusion
