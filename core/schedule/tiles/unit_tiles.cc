#include "core/schedule/tiles/unit_tiles.h"

#include <algorithm>
#include <cmath>

#include "core/base/contains.h"
#include "core/schedule/ir/access.h"
#include "core/schedule/tiles/legality.h"

namespace fusion {
namespace {

// Limit of choices that are lowered: lowering takes most of the planning time, and later choices
// rank worse.
constexpr int kMostTries = 64;

bool SameGrid(const Choice& a, const Choice& b) { return a.grid == b.grid; }

}  // namespace

bool UnitTiles::Parallel(DimId d) const { return d >= 0 && Contains(parallel_, d); }

// Every product gets the largest block within `widest` that its columns fill.
void UnitTiles::SetBlocks(const RegisterBlock& widest, const Windows& window,
                          Choice* choice) const {
  for (const ProductShape& p : products_) {
    ProductChoice& c = choice->products[p.op];
    const std::vector<DimId>& columns = c.swap ? p.dims.first : p.dims.second;
    int64_t most = 1;
    for (DimId d : columns) most = std::max(most, window[static_cast<size_t>(d)]);
    // Packed columns are stored in panels of the block's width: tiles end between panels.
    auto fits = [&](const RegisterBlock& b) {
      return b.m <= widest.m && b.n <= widest.n &&
             std::all_of(columns.begin(), columns.end(), [&](DimId d) {
               int64_t length = window[static_cast<size_t>(d)];
               return length == extent(d) || length % b.n == 0;
             });
    };
    c.stage_rows = false;
    c.block = widest;
    int64_t best = -1;
    for (const RegisterBlock& b : device_.blocks) {
      int64_t used = b.m * std::min<int64_t>(b.n, most) * 1000 - b.n;  // ties: the narrower one
      if (!fits(b) || used <= best) continue;
      best = used;
      c.block = b;
    }
  }
}

// Roughly: products at the rate of their blocks, operands from the shared level each time a block
// needs them, whole waves of blocks. Only ranks tiles of one group against each other.
double UnitTiles::Seconds(const Choice& choice, const Windows& window) const {
  auto length = [&](DimId d) { return static_cast<double>(window[static_cast<size_t>(d)]); };
  double seconds = 0;
  double bytes = 0;
  for (const ProductShape& p : products_) {
    const SmgOp& op = group_.smg.op(p.op);
    const ProductChoice& c = choice.products.at(p.op);
    const std::vector<DimId>& row_dims = c.swap ? p.dims.second : p.dims.first;
    const std::vector<DimId>& column_dims = c.swap ? p.dims.first : p.dims.second;
    double rows = row_dims.empty() ? 1 : length(LongestDim(group_.smg, row_dims));
    double columns = column_dims.empty() ? 1 : length(LongestDim(group_.smg, column_dims));
    double work = 2;
    for (DimId d : op.dims) work *= length(d);
    double whole_rows = std::ceil(rows / device_.row_grain) * device_.row_grain;
    double rate = device_.flops_per_s * device_.product_efficiency *
                  device_.BlockRate(DType::kF32, std::min(rows, static_cast<double>(c.block.m)),
                                    std::min(columns, static_cast<double>(c.block.n)));
    seconds += work * whole_rows / std::max(rows, 1.0) / rate;
    for (int r = 0; r < 2; ++r) {
      const SmgRead& read = op.reads[static_cast<size_t>(r)];
      if (read.producer >= 0) continue;
      double operand = 4;
      for (DimId d : op.dims) {
        if (Names(read.index, d)) operand *= length(d);
      }
      bool is_rows = (r == 0) != c.swap;
      bytes += operand * (is_rows ? std::ceil(columns / c.block.n) : std::ceil(rows / c.block.m));
    }
  }
  double tasks = BlockCount(group_.smg, choice);
  double units = device_.threads;
  double waves = std::ceil(tasks / units);
  const MemoryLevel& shared = device_.SharedLevel();
  double rate = std::min(shared.total_bytes_per_s,
                         shared.bytes_per_s * std::min(units, std::max(tasks, 1.0)));
  double memory = bytes * tasks / rate;
  double compute = waves * seconds;
  return std::max(compute, memory) + (1 - device_.overlap) * std::min(compute, memory) +
         waves * device_.task_s;
}

std::vector<Choice> UnitTiles::Products(const std::vector<Choice>& roles) const {
  const ProductShape& main =
      *std::max_element(products_.begin(), products_.end(),
                        [](const auto& a, const auto& b) { return a.flops < b.flops; });
  struct Scored {
    double seconds;
    Choice choice;
  };
  std::vector<Scored> scored;
  for (const Choice& role : roles) {
    bool swap = role.products.at(main.op).swap;
    DimId m = LongestDim(group_.smg, swap ? main.dims.second : main.dims.first);
    DimId n = LongestDim(group_.smg, swap ? main.dims.first : main.dims.second);
    for (const RegisterBlock& block : device_.blocks) {
      for (bool whole_columns : {false, true}) {
        if (whole_columns && (!Parallel(n) || extent(n) <= block.n)) continue;
        Choice c = role;
        Windows window;
        for (const SmgDim& d : group_.smg.dims) window.push_back(d.extent);
        auto tile_dim = [&](DimId d, int64_t tile) {
          tile = std::min(tile, std::max<int64_t>(extent(d), 1));
          c.grid.push_back({d, tile});
          window[static_cast<size_t>(d)] = std::min(tile, extent(d));
        };
        for (DimId d : parallel_) {
          if (d != m && d != n) tile_dim(d, 1);
        }
        if (Parallel(n) && !whole_columns) tile_dim(n, block.n);
        if (Parallel(m)) tile_dim(m, block.m);
        SetBlocks(block, window, &c);
        scored.push_back({Seconds(c, window), std::move(c)});
      }
    }
  }
  std::stable_sort(scored.begin(), scored.end(),
                   [](const Scored& a, const Scored& b) { return a.seconds < b.seconds; });
  std::vector<Choice> out;
  for (Scored& s : scored) out.push_back(std::move(s.choice));
  return out;
}

// Whether vectors of some output run along `d`.
bool UnitTiles::IsContiguous(DimId d) const {
  return std::any_of(group_.outputs.begin(), group_.outputs.end(), [&](ValueId v) {
    std::vector<DimId> dims = group_.smg.op(group_.Writer(v)).OutputDims();
    return !dims.empty() && dims.back() == d;
  });
}

std::vector<Choice> UnitTiles::Rows() const {
  std::vector<Choice> out;
  for (double per_unit : {1.0, 2.0, 4.0, 0.25, 16.0, 0.0}) {
    double wanted = std::max(1.0, per_unit * device_.threads);
    Choice c;
    double tasks = 1;
    for (DimId d : parallel_) {
      if (tasks >= wanted || extent(d) <= 1) break;
      double pieces = std::min(static_cast<double>(extent(d)), std::ceil(wanted / tasks));
      auto tile = static_cast<int64_t>(std::ceil(static_cast<double>(extent(d)) / pieces));
      int64_t vector = device_.vector_bytes / 4;
      bool innermost = IsContiguous(d) && extent(d) >= 4 * vector;
      if (innermost) tile = std::min(extent(d), (tile + vector - 1) / vector * vector);
      c.grid.push_back({d, tile});
      tasks *= std::ceil(static_cast<double>(extent(d)) / static_cast<double>(tile));
    }
    bool fresh = std::none_of(out.begin(), out.end(),
                              [&](const Choice& other) { return SameGrid(other, c); });
    if (fresh) out.push_back(std::move(c));
  }
  return out;
}

std::vector<Choice> KeepFitting(const FusionGroup& group, const DeviceSpec& device,
                                const std::vector<Choice>& choices, const CandidateOptions& options,
                                std::string* refusal) {
  std::vector<Choice> out;
  std::string reason;
  int tries = 0;
  GroupLowering lowering(group, device, options.bitwise);
  for (const Choice& choice : choices) {
    if (out.size() == static_cast<size_t>(options.limit) || tries++ == kMostTries) break;
    auto lowered = lowering.Of(choice);
    std::string misfit = lowered.ok() ? Misfit(NeedOnChip(lowered->schedule, device), device)
                                      : std::string(Message(lowered.status()));
    if (misfit.empty()) {
      out.push_back(choice);
    } else {
      reason = std::move(misfit);
    }
  }
  if (out.empty() && refusal != nullptr && !reason.empty()) *refusal = reason;
  return out;
}

}  // namespace fusion
