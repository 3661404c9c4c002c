#include "core/schedule/tiles/candidates.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/base/contains.h"
#include "core/base/refusal.h"
#include "core/base/threads/job.h"
#include "core/schedule/ir/access.h"
#include "core/schedule/lower/streamed_group.h"
#include "core/schedule/memory/block_windows.h"
#include "core/schedule/tiles/enumerator.h"
#include "core/schedule/tiles/legal_choice.h"
#include "core/schedule/tiles/tile_score.h"
#include "core/schedule/tiles/unit_tiles.h"
#include "core/smg/slicers.h"

namespace fusion {
namespace {

// Staging rows pays if they are read for more than one column block.
constexpr int64_t kMinStagedPanels = 2;

// Number of dims for which a refusal says why they cannot be tiled.
constexpr size_t kMostWholeDims = 4;

// Number of rows with which a register block is about as fast as a full one.
constexpr int64_t kMinRows = 8;

// With halos there are more tilings of a group: fewer tilings of the columns are tried, and windows
// are not tiled shorter than this.
constexpr size_t kMostColumnTilings = 4;
constexpr int64_t kLeastWindowPiece = 16;
constexpr int64_t kWholeWindow = std::numeric_limits<int64_t>::max();

// Length of slices that follow a mask, in panels of columns. Measured on Zen 4, 2026-11: causal
// attention over 512 positions, 7.6 ms with longer slices, 5.5 ms with these and the copies hoisted
// before the loop.
constexpr int64_t kMaskPanels = 2;

// kNearSlices: the part of the private cache that what a block keeps of a slice may fill. Beyond
// it, other reads of the block and rows in the same set evict it now and then. Attention of 2048
// queries and keys, slices of 256 keys, blocks of 128, 256, 512 and 1024 queries, which keep 0.08,
// 0.16, 0.3 and 0.6 of it: 76, 82, 86 and 92 ms; Intel family 6 model 167 (2 MiB of L2), g++ 12,
// 2026-11. kShortestBlock: blocks are not shortened below this many rows for it.
constexpr double kNearSlices = 0.125;
constexpr int64_t kShortestBlock = 64;

// Number of choices for each assignment of operand roles.
constexpr size_t kChoicesOfRoles = 2;

}  // namespace

std::vector<Choice> Enumerator::Run(std::string* refusal) {
  for (size_t i = 0; i < smg_.ops.size(); ++i) {
    if (Classify(group_, static_cast<int>(i)) != OpClass::kProduct) continue;
    ProductShape p{static_cast<int>(i), SplitProductDims(smg_.ops[i]), 2};
    for (DimId d : smg_.ops[i].dims) p.flops *= static_cast<double>(extent(d));
    products_.push_back(std::move(p));
  }
  std::vector<Choice> choices;
  if (device_.explicit_memory) {
    UnitTiles tiles(group_, device_, products_, parallel_);
    choices = products_.empty() ? tiles.Rows() : tiles.Products(Roles());
    AddTemporal(&choices);
    choices.insert(choices.end(), beside_.begin(), beside_.end());
    if (options_.keep_misfits) return choices;
    choices = KeepFitting(group_, device_, choices, options_, refusal);
    bool told = refusal != nullptr && !refusal->empty();
    if (choices.empty() && !told && refusal != nullptr) *refusal = NoBlocks().ToString();
    return choices;
  }
  const std::vector<Choice> roles = Roles();
  for (const Choice& role : roles) {
    if (products_.empty()) {
      AddRowChoices(role, &choices);
    } else {
      AddProductChoices(role, &choices);
    }
  }
  choices.insert(choices.end(), more_.begin(), more_.end());
  const size_t masked = AddTemporal(&choices);
  // Only the cost estimate can compare operand roles, so choices of each are kept.
  auto most = static_cast<size_t>(options_.limit) + masked;
  if (!windowed_.empty()) most = std::max(most, 2 * kChoicesOfRoles * roles.size() + 2);
  if (choices.size() > most) choices.resize(most);
  choices.insert(choices.end(), beside_.begin(), beside_.end());
  if (choices.empty() && refusal != nullptr) *refusal = NoBlocks().ToString();
  return choices;
}

Refusal Enumerator::NoBlocks() const {
  std::vector<std::string> whole;
  for (DimId d = 0; d < static_cast<DimId>(smg_.dims.size()); ++d) {
    std::string why = WhyNotParallel(group_, d, options_.forbid_recompute);
    if (!why.empty()) whole.push_back(StrCat(smg_.dim(d).name, ": ", why));
  }
  size_t more = whole.size() - std::min(whole.size(), kMostWholeDims);
  whole.resize(whole.size() - more);
  return Refuse(RefusalCode::kNoBlocks, "no way to cut it into blocks; ",
                whole.empty() ? "every dim may be cut" : StrJoin(whole, "; "),
                more == 0 ? "" : StrCat("; and ", more, " dims more"));
}

std::vector<Choice> Enumerator::Roles() const {
  std::vector<Choice> out(1);
  for (const ProductShape& p : products_) {
    std::vector<Choice> next;
    for (const Choice& base : out) {
      std::vector<bool> open = OperandRoles(group_, p.op);
      // Product units that fetch their own operands can use a packed constant in any role, so one
      // role suffices.
      if (device_.explicit_memory && HasConstant(p.op)) open.resize(1);
      for (bool swap : open) {
        Job::Step();
        Choice c = base;
        c.products[p.op] = {.swap = swap, .block = BlocksOf(p.op, swap)[0]};
        next.push_back(std::move(c));
      }
    }
    out = std::move(next);
    if (out.size() > 8) out.resize(8);
  }
  return out;
}

const std::vector<RegisterBlock>& Enumerator::BlocksOf(int op, bool swap) const {
  return device_.BlocksOf(RateType(group_, op, swap, device_));
}

bool Enumerator::HasConstant(int op) const {
  const std::vector<SmgRead>& reads = smg_.op(op).reads;
  return std::any_of(reads.begin(), reads.end(), [&](const SmgRead& read) {
    return read.producer < 0 && group_.view(read.value).constant;
  });
}

void Enumerator::SetBlocks(Choice* choice, const std::vector<int64_t>& window) const {
  for (const ProductShape& p : products_) {
    ProductChoice& c = choice->products[p.op];
    const std::vector<DimId>& rows = c.swap ? p.dims.second : p.dims.first;
    int64_t most_rows = 1;
    for (DimId d : rows) most_rows = std::max(most_rows, window[static_cast<size_t>(d)]);
    c.block = WidestBlock(p.op, c.swap);
    const std::vector<DimId>& columns = c.swap ? p.dims.first : p.dims.second;
    // Packed columns are stored in panels of the block's width: tiles of tasks must begin and end
    // between panels.
    const SmgRead& column_read = smg_.op(p.op).reads[c.swap ? 0 : 1];
    bool packed = column_read.producer < 0 && group_.view(column_read.value).constant;
    auto fits = [&](const RegisterBlock& b) {
      return !packed || std::all_of(columns.begin(), columns.end(), [&](DimId d) {
        int64_t columns_of_task = window[static_cast<size_t>(d)];
        return columns_of_task == extent(d) || columns_of_task % b.n == 0;
      });
    };
    // Few rows: take the widest block that has as many, so that registers are not left idle.
    for (const RegisterBlock& b : BlocksOf(p.op, c.swap)) {
      bool wider = b.m <= c.block.m && b.n > c.block.n && b.m >= most_rows;
      if (most_rows < c.block.m && wider && fits(b)) c.block = b;
    }
    c.stage_rows = WantsStagedRows(p, c, window);
  }
}

RegisterBlock Enumerator::WidestBlock(int op, bool swap) const {
  const std::vector<RegisterBlock>& blocks = BlocksOf(op, swap);
  const std::array<DType, 2> types = *FactorTypes(smg_.op(op));
  const bool bytes = std::count(types.begin(), types.end(), DType::kU8) > 0 &&
                     !device_.other_types.contains(DType::kI8);
  if (!bytes || device_.explicit_memory) return blocks[0];
  const int lanes = static_cast<int>(device_.vector_bytes / DTypeBytes(DType::kF32));
  const int registers = device_.vector_bytes == 64 ? 32 : 16;  // of x86-64
  for (const RegisterBlock& b : blocks) {
    const int vectors = b.n / lanes;
    if (b.m * vectors + 2 * vectors + 2 <= registers) return b;
  }
  return blocks[0];
}

bool Enumerator::WantsStagedRows(const ProductShape& p, const ProductChoice& c,
                                 const std::vector<int64_t>& window) const {
  const SmgRead& read = smg_.op(p.op).reads[c.swap ? 1 : 0];
  const std::vector<DimId>& rows = c.swap ? p.dims.second : p.dims.first;
  const std::vector<DimId>& columns = c.swap ? p.dims.first : p.dims.second;
  if (read.producer >= 0 || rows.empty() || device_.alias_bytes == 0) return false;
  const TensorView& view = group_.view(read.value);
  int64_t panels = 1;
  for (DimId d : columns) panels *= (window[static_cast<size_t>(d)] + c.block.n - 1) / c.block.n;
  if (panels < kMinStagedPanels) return false;
  for (DimId d : rows) {
    int64_t stride = StrideAlong(read.index, view.strides, d);
    bool many = window[static_cast<size_t>(d)] >= 8;
    if (many && stride > 0 && stride * DTypeBytes(view.dtype) % device_.alias_bytes == 0)
      return true;
  }
  return false;
}

const ProductShape& Enumerator::Main() const {
  return *std::max_element(products_.begin(), products_.end(),
                           [](const auto& a, const auto& b) { return a.flops < b.flops; });
}

std::vector<int64_t> Enumerator::Tiles(int64_t n, int64_t unit, int64_t most) {
  if (n <= 1) return {1};
  std::vector<int64_t> tiles;
  for (int64_t pieces : {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 128}) {
    int64_t tile = (n + pieces - 1) / pieces;
    tile = std::min(n, (tile + unit - 1) / unit * unit);
    if (tile > most && pieces < 128) continue;
    if (tiles.empty() || tile < tiles.back()) tiles.push_back(tile);
    if (tile <= unit) break;
  }
  return tiles;
}

void Enumerator::AddProductChoices(const Choice& roles, std::vector<Choice>* out) {
  const ProductShape& main = Main();
  bool swap = roles.products.at(main.op).swap;
  const std::vector<DimId>& rows = swap ? main.dims.second : main.dims.first;
  const std::vector<DimId>& columns = swap ? main.dims.first : main.dims.second;
  DimId m = RowDim(main, swap, rows);
  DimId n = LongestDim(smg_, columns);
  const RegisterBlock block = BlocksOf(main.op, swap)[0];
  const int grain = device_.RowGrainOf(RateType(group_, main.op, swap, device_));
  std::vector<int64_t> m_tiles = {m >= 0 ? extent(m) : 1};
  std::vector<int64_t> n_tiles = {n >= 0 ? extent(n) : 1};
  bool tiles_m = m >= 0 && Parallel(m) && !Contains(windowed_, m);
  bool tiles_n = n >= 0 && Parallel(n) && !Contains(windowed_, n);
  if (tiles_m) m_tiles = Tiles(extent(m), std::min<int64_t>(grain, block.m), 512);
  if (tiles_n) n_tiles = Tiles(extent(n), block.n, 4096);
  if (!windowed_.empty() && n_tiles.size() > kMostColumnTilings) n_tiles.resize(kMostColumnTilings);

  const TileScore score(group_, device_, products_, !windowed_.empty());
  Shortlist sliced;  // what lies between products comes in slices
  Shortlist kept;    // or as a whole: tiles of images are shorter then
  Choice c = roles;
  for (const std::vector<GridDim>& windows : WindowTilings()) {
    for (int64_t mt : m_tiles) {
      for (int64_t nt : n_tiles) {
        c.grid.clear();
        for (DimId d : parallel_) {
          if (d != m && d != n && !Contains(windowed_, d)) c.grid.push_back({d, 1});
        }
        if (tiles_n) c.grid.push_back({n, nt});
        if (tiles_m) c.grid.push_back({m, mt});
        c.grid.insert(c.grid.end(), windows.begin(), windows.end());
        Dims window = WindowsOf(c);
        SetBlocks(&c, window);
        if (!windowed_.empty()) Keep(score.Of(c, window, window), c, &kept);
        Keep(score.Of(c, window, Slices(window)), c, &sliced);
        if (!windowed_.empty() || !Lengthen(main, rows, m, &c, &window)) continue;
        SetBlocks(&c, window);
        Keep(score.Of(c, window, window), c, &sliced);
      }
    }
  }
  for (const Shortlist* list : {&sliced, &kept}) AddBest(*list, out);
}

void Enumerator::Keep(double cost, const Choice& choice, Shortlist* list) const {
  // Tiles of images are scored in two ways.
  const size_t most = windowed_.empty() ? kChoicesOfRoles : 1;
  auto at = std::upper_bound(list->best.begin(), list->best.end(), cost,
                             [](double c, const Scored& s) { return c < s.cost; });
  if (at != list->best.end() || list->best.size() < most) {
    list->best.insert(at, {cost, choice});
    if (list->best.size() > most) list->best.pop_back();
  }
  const bool whole = !windowed_.empty() &&
                     std::all_of(choice.grid.begin(), choice.grid.end(), [&](const GridDim& g) {
                       return !Contains(windowed_, g.dim) || g.tile >= extent(g.dim);
                     });
  if (whole && (!list->whole || cost < list->whole->cost)) list->whole = {cost, choice};
}

void Enumerator::AddBest(const Shortlist& list, std::vector<Choice>* out) {
  for (const Scored& scored : list.best) {
    if (IsAmong(*out, scored.choice)) continue;
    Choice gathered = scored.choice;
    if (GatherWindows(&gathered) && !IsAmong(more_, gathered)) {
      more_.push_back(std::move(gathered));
    }
    out->push_back(scored.choice);
  }
  if (!list.whole || IsAmong(*out, list.whole->choice)) return;
  if (!IsAmong(more_, list.whole->choice)) more_.push_back(list.whole->choice);
}

bool Enumerator::IsAmong(const std::vector<Choice>& choices, const Choice& choice) {
  return std::any_of(choices.begin(), choices.end(), [&](const Choice& other) {
    return other.grid == choice.grid &&
           std::equal(other.products.begin(), other.products.end(), choice.products.begin(),
                      choice.products.end(), [](const auto& a, const auto& b) {
                        return a.second.swap == b.second.swap &&
                               a.second.stage_rows == b.second.stage_rows;
                      });
  });
}

bool Enumerator::GatherWindows(Choice* choice) const {
  bool changed = false;
  for (const ProductShape& p : products_) {
    ProductChoice& c = choice->products.at(p.op);
    const std::vector<DimId>& rows = c.swap ? p.dims.second : p.dims.first;
    const SmgOp& op = smg_.op(p.op);
    bool windows = ReadsWindows(op, op.reads[c.swap ? 1 : 0]);
    if (rows.empty() || !windows || c.stage_rows) continue;
    c.stage_rows = true;
    changed = true;
    ShortenFor(op, rows, choice);
  }
  return changed;
}

void Enumerator::ShortenFor(const SmgOp& op, const std::vector<DimId>& rows, Choice* choice) const {
  if (windowed_.empty()) return;
  auto rows_tile = std::find_if(choice->grid.begin(), choice->grid.end(),
                                [&](const GridDim& g) { return g.dim == windowed_[0]; });
  if (rows_tile == choice->grid.end() || !Contains(rows, rows_tile->dim)) return;
  std::vector<DimId> gathered = rows;
  gathered.insert(gathered.end(), op.reduced.begin(), op.reduced.end());
  double row = 4 * PointsOf(gathered, WindowsOf(*choice)) / static_cast<double>(rows_tile->tile);
  double room = static_cast<double>(device_.OnChipBytes()) / 2;
  rows_tile->tile = std::clamp<int64_t>(static_cast<int64_t>(room / row), 1, rows_tile->tile);
}

std::vector<std::vector<GridDim>> Enumerator::WindowTilings() const {
  std::vector<std::vector<GridDim>> tilings;
  if (windowed_.empty()) return {{}};
  DimId outer = windowed_[0];
  for (int64_t tile : Tiles(extent(outer), 1, extent(outer))) {
    tilings.push_back({{outer, tile}});
    if (windowed_.size() < 2 || tile == extent(outer)) continue;
    DimId inner = windowed_[1];
    int64_t half = (extent(inner) + 1) / 2;
    if (half >= kLeastWindowPiece) tilings.push_back({{outer, tile}, {inner, half}});
  }
  return tilings;
}

bool Enumerator::Lengthen(const ProductShape& main, const std::vector<DimId>& rows, DimId m,
                          Choice* choice, std::vector<int64_t>* window) const {
  if (m < 0) return false;
  double seconds = 2 / (device_.flops_per_s * device_.product_efficiency);
  double tasks = BlockCount(smg_, *choice);
  for (DimId d : smg_.op(main.op).dims) {
    seconds *= static_cast<double>((*window)[static_cast<size_t>(d)]);
  }
  bool changed = false;
  for (size_t g = choice->grid.size(); g-- > 0;) {
    GridDim& grid_dim = choice->grid[g];
    if (grid_dim.dim == m || !Contains(rows, grid_dim.dim)) continue;
    double most = std::min(device_.least_task_s / seconds, tasks / (4.0 * device_.threads));
    most = std::min(most, static_cast<double>((*window)[static_cast<size_t>(m)] - 1));
    int64_t tile = std::min(extent(grid_dim.dim), static_cast<int64_t>(most));
    if (tile <= 1) continue;
    grid_dim.tile = tile;
    (*window)[static_cast<size_t>(grid_dim.dim)] = tile;
    seconds *= static_cast<double>(tile);
    tasks /= static_cast<double>(tile);
    changed = true;
  }
  return changed;
}

DimId Enumerator::RowDim(const ProductShape& p, bool swap, const std::vector<DimId>& rows) const {
  const SmgRead& read = smg_.op(p.op).reads[swap ? 1 : 0];
  DimId best = LongestDim(smg_, rows);
  if (read.producer >= 0 || rows.size() < 2) return best;
  const Dims& strides = group_.view(read.value).strides;
  for (DimId d : rows) {
    if (extent(d) < std::min<int64_t>(kMinRows, BlocksOf(p.op, swap)[0].m) || !Parallel(d))
      continue;
    if (StrideAlong(read.index, strides, d) < StrideAlong(read.index, strides, best)) best = d;
  }
  return best;
}

Dims Enumerator::Slices(Dims window) const {
  for (const ProductShape& p : products_) {
    for (DimId d : p.dims.over) {
      int64_t& length = window[static_cast<size_t>(d)];
      length = std::min<int64_t>(length, device_.blocks[0].n);
    }
  }
  return window;
}

void Enumerator::AddRowChoices(const Choice& base, std::vector<Choice>* out) {
  // Tile from the outermost parallel dim until tasks are short enough; the other dims stay inside
  // the block.
  double total = 0;
  for (const SmgOp& op : smg_.ops) {
    double points = 1;
    for (DimId d : op.dims) points *= static_cast<double>(extent(d));
    total += points * (op.value.Cost() + 2 + static_cast<double>(op.reads.size()));
  }
  total /= device_.scalar_ops_per_s;
  double pieces = std::max(1.0, std::floor(total / device_.least_task_s));
  double wanted = std::min(pieces, device_.threads * 16.0);
  if (pieces < device_.threads && total > 4 * device_.task_s)
    wanted = std::min(2.0, device_.threads * 1.0);
  // Blocks with halos also in longer tiles, which share less, and untiled.
  for (int64_t least_window : {int64_t{1}, kLeastWindowPiece, kWholeWindow}) {
    Choice c = base;
    double tasks = 1;
    for (DimId d : parallel_) {
      if (tasks >= wanted || extent(d) <= 1) break;
      double wanted_tiles = std::min(static_cast<double>(extent(d)), std::ceil(wanted / tasks));
      auto tile = static_cast<int64_t>(std::ceil(static_cast<double>(extent(d)) / wanted_tiles));
      if (d == parallel_.back()) tile = RoundToVectors(tile, d);
      if (Contains(windowed_, d)) tile = std::min(extent(d), std::max(tile, least_window));
      c.grid.push_back({d, tile});
      tasks *= std::ceil(static_cast<double>(extent(d)) / static_cast<double>(tile));
    }
    bool fresh = std::none_of(out->begin(), out->end(),
                              [&](const Choice& other) { return other.grid == c.grid; });
    if (fresh) out->push_back(std::move(c));
    if (windowed_.empty()) return;
  }
}

int64_t Enumerator::RoundToVectors(int64_t tile, DimId d) const {
  int64_t unit = device_.vector_bytes;  // 4 vectors of f32
  if (extent(d) < 4 * unit) return tile;
  return std::min(extent(d), (tile + unit - 1) / unit * unit);
}

int64_t Enumerator::PanelWidth(const Choice& c) const {
  int64_t width = device_.blocks[0].n;
  if (!device_.explicit_memory) return width;
  width = 1;
  for (const auto& [op, product] : c.products) {
    width = std::max<int64_t>(width, product.block.n);
  }
  return width;
}

std::shared_ptr<const StreamedGroup> Enumerator::Stream(DimId d) {
  auto known = streamed_.find(d);
  if (known == streamed_.end()) known = streamed_.emplace(d, StreamGroup(group_, d)).first;
  return known->second;
}

std::vector<int64_t> Enumerator::StreamTiles(int64_t unit, int64_t length) const {
  int64_t panels = device_.stream_tile / unit;
  int64_t tile = std::max(unit, unit * panels);
  std::vector<int64_t> tiles = {std::min(length, tile)};
  // A single slice streams nothing.
  if (!windowed_.empty() && 2 * unit < length && tile >= length) tiles.clear();
  if (!windowed_.empty() && 2 * unit < std::min(tile, length)) tiles.push_back(2 * unit);
  return tiles;
}

double Enumerator::OnChipBefore(const Choice& c, const ProductShape& p, const Dims& window) const {
  double bytes = 0;
  const SmgOp& op = smg_.op(p.op);
  for (size_t r = 0; r < op.reads.size(); ++r) {
    const SmgRead& read = op.reads[r];
    bool made = read.producer >= 0 && read.relation == SmgRead::kAligned;
    if (!made && !(windowed_.empty() && IsStaged(c.products.at(p.op), r))) continue;
    double one = 4;
    for (DimId d : made ? smg_.op(read.producer).OutputDims() : op.dims) {
      if (made || Names(read.index, d)) one *= static_cast<double>(window[static_cast<size_t>(d)]);
    }
    bytes += one;
  }
  return bytes;
}

const std::vector<IndexExpr>& Enumerator::MaskOf(const StreamedGroup& streamed) {
  return streamed.needed.empty() ? streamed.underflow.needed : streamed.needed;
}

Choice Enumerator::FollowMask(const Choice& c,
                              const std::shared_ptr<const StreamedGroup>& streamed) const {
  const int64_t tile = std::min(kMaskPanels * PanelWidth(c), extent(streamed->dim));
  Choice out = c.Streaming(streamed, tile);
  const std::vector<IndexExpr>& mask = MaskOf(*streamed);
  for (GridDim& g : out.grid) {
    const bool masks = std::any_of(mask.begin(), mask.end(),
                                   [&](const IndexExpr& e) { return e.CoefficientOf(g.dim) != 0; });
    if (masks) g.tile = std::min(g.tile, tile);
  }
  return out;
}

Choice Enumerator::ShortenForSlices(Choice c, DimId streamed, int64_t slice) const {
  const bool weights = std::any_of(products_.begin(), products_.end(),
                                   [this](const ProductShape& p) { return HasConstant(p.op); });
  if (device_.explicit_memory || !windowed_.empty() || weights) return c;
  auto longest = std::max_element(c.grid.begin(), c.grid.end(),
                                  [](const auto& a, const auto& b) { return a.tile < b.tile; });
  if (longest == c.grid.end()) return c;
  auto kept = [&] {
    Dims window = WindowsOf(c);
    int64_t& length = window[static_cast<size_t>(streamed)];
    length = std::min(length, slice);
    double most = 0;
    for (const ProductShape& p : products_) most = std::max(most, OnChipBefore(c, p, window));
    return most;
  };
  const double near = kNearSlices * static_cast<double>(device_.OnChipBytes());
  while (kept() > near && longest->tile >= 2 * kShortestBlock) {
    longest->tile = (longest->tile + 1) / 2;
  }
  return c;
}

double Enumerator::MadeAlong(DimId d, const Dims& window) const {
  double most = 0;
  for (const ProductShape& p : products_) {
    const std::vector<DimId> dims = smg_.op(p.op).OutputDims();
    if (!Contains(dims, d)) continue;
    double bytes = 4;
    for (DimId own : dims) bytes *= static_cast<double>(window[static_cast<size_t>(own)]);
    most = std::max(most, bytes);
  }
  return most;
}

Enumerator::ToStream Enumerator::DimsToStream(const Choice& c) const {
  const Dims window = WindowsOf(c);
  const double most = 0.25 * static_cast<double>(device_.OnChipBytes());
  ToStream out;
  for (const ProductShape& p : products_) {
    if (OnChipBefore(c, p, window) <= most) continue;
    for (DimId d : p.dims.over) {
      if (!Contains(out.summed, d)) out.summed.push_back(d);
    }
  }
  for (int i = 0; i < static_cast<int>(smg_.ops.size()); ++i) {
    if (!smg_.op(i).reduce.has_value() || c.products.contains(i)) continue;
    for (DimId d : smg_.op(i).reduced) {
      if (MadeAlong(d, window) <= most) continue;
      if (!Contains(out.summed, d) && !Contains(out.reduced, d)) out.reduced.push_back(d);
    }
  }
  return out;
}

bool Enumerator::MakesOperands() const {
  return std::any_of(products_.begin(), products_.end(), [this](const ProductShape& p) {
    const SmgOp& op = smg_.op(p.op);
    return std::any_of(op.reads.begin(), op.reads.end(), [&](const SmgRead& read) {
      if (read.producer < 0 || smg_.op(read.producer).reduce.has_value()) return false;
      const SmgOp& from = smg_.op(read.producer);
      return std::all_of(from.reads.begin(), from.reads.end(),
                         [](const SmgRead& r) { return r.producer < 0; });
    });
  });
}

void Enumerator::AddStreams(const Choice& c, DimId d, std::vector<Choice>* out) {
  const std::shared_ptr<const StreamedGroup> streamed = Stream(d);
  if (streamed == nullptr || (options_.bitwise && streamed->rewritten)) return;
  for (int64_t tile : StreamTiles(PanelWidth(c), extent(d))) {
    Choice t = ShortenForSlices(c, d, tile).Streaming(streamed, tile);
    bool sliced = t.temporal_tile < extent(d);
    if (options_.bitwise && sliced && !SlicesKeepOrder(smg_, d)) continue;
    const bool shorter = !(t.grid == c.grid);
    out->push_back(std::move(t));
    if (shorter && MakesOperands()) beside_.push_back(c.Streaming(streamed, tile));
  }
}

size_t Enumerator::AddTemporal(std::vector<Choice>* choices) {
  std::vector<Choice> masked;
  std::vector<Choice> more;
  for (const Choice& c : *choices) {
    const ToStream dims = DimsToStream(c);
    for (DimId d : dims.reduced) AddStreams(c, d, &beside_);
    for (DimId d : dims.summed) {
      AddStreams(c, d, &more);
      const std::shared_ptr<const StreamedGroup> streamed = Stream(d);
      if (streamed == nullptr || MaskOf(*streamed).empty() || options_.bitwise) continue;
      if (device_.explicit_memory) continue;
      Choice t = FollowMask(c, streamed);
      if (!IsAmong(masked, t)) masked.push_back(std::move(t));
    }
  }
  // Streamed forms come first: the resident ones overflow.
  choices->insert(choices->begin(), more.begin(), more.end());
  choices->insert(choices->begin(), masked.begin(), masked.end());
  return masked.size();
}

std::vector<Choice> EnumerateChoices(const FusionGroup& group, const DeviceSpec& device,
                                     const CandidateOptions& options, std::string* refusal) {
  return Enumerator(group, device, options).Run(refusal);
}

}  // namespace fusion
