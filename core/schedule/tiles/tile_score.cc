#include "core/schedule/tiles/tile_score.h"

#include <algorithm>
#include <cmath>

#include "core/base/contains.h"
#include "core/schedule/ir/access.h"

namespace fusion {
namespace {

// Fraction of its peak rate that a register block reaches with this many rows. Unlike the
// estimate's formula it ignores the columns: only tilings of the rows are compared here.
double RowEfficiency(double rows, double most) {
  double blocks = std::ceil(rows / most);
  double per_block = rows / blocks;
  return std::min(1.0, 0.35 + 0.65 * per_block / std::min(most, 8.0));
}

}  // namespace

double TileScore::Of(const Choice& c, const Dims& window, const Dims& kept) const {
  double tasks = BlockCount(smg_, c);
  double block_seconds = 0;
  double on_chip = 0;
  double traffic = 0;
  for (const ProductShape& p : products_) {
    const ProductChoice& pc = c.products.at(p.op);
    double work = 2;
    for (DimId d : smg_.op(p.op).dims) work *= static_cast<double>(window[static_cast<size_t>(d)]);
    const std::vector<DimId>& rows = pc.swap ? p.dims.second : p.dims.first;
    double row_window = 1;
    for (DimId d : rows)
      row_window = std::max(row_window, static_cast<double>(window[static_cast<size_t>(d)]));
    double efficiency = !windows_ ? RowEfficiency(row_window, pc.block.m)
                                  : BlockEfficiency(p, pc, row_window, window);
    const DType type = RateType(group_, p.op, pc.swap, device_);
    block_seconds +=
        work / (device_.Rates(type).flops_per_s * device_.product_efficiency * efficiency);
    for (int r = 0; r < 2; ++r) {
      const SmgRead& read = smg_.op(p.op).reads[static_cast<size_t>(r)];
      double bytes = 4;
      double whole = 4;
      const bool staged = read.producer >= 0 || IsStaged(pc, static_cast<size_t>(r));
      for (DimId d : smg_.op(p.op).dims) {
        if (!Names(read.index, d)) continue;
        double length = static_cast<double>(window[static_cast<size_t>(d)]);
        // What lies on chip before a product is streamed if it is large (AddTemporal).
        bool streamed = Contains(p.dims.over, d) && (read.producer >= 0 || (staged && !windows_));
        bytes *= streamed ? std::min(length, static_cast<double>(device_.stream_tile)) : length;
        whole *= length;
      }
      if (windows_ && read.producer >= 0 && read.relation == SmgRead::kShifted) {
        bytes = 4 * PointsOf(smg_.op(read.producer).OutputDims(), kept);
      }
      if (read.producer < 0) traffic += whole;
      on_chip += staged ? bytes : 0;
    }
  }
  if (windows_) block_seconds += PointwiseSeconds(window);
  double threads = device_.threads;
  double waves = std::ceil(tasks / threads);
  double memory =
      traffic * tasks / std::max(1.0, std::min(threads, tasks)) / device_.SharedLevel().bytes_per_s;
  double spill = on_chip > static_cast<double>(device_.OnChipBytes()) ? 2.0 : 1.0;
  return std::max(waves * block_seconds * spill, memory) + waves * device_.task_s +
         0.25 * std::min(waves * block_seconds, memory);
}

// Part of the product rate that register blocks reach whose last columns may be few: tiles of
// images are narrow.
double TileScore::BlockEfficiency(const ProductShape& p, const ProductChoice& c, double rows,
                                  const std::vector<int64_t>& window) const {
  double columns = 1;
  for (DimId d : c.swap ? p.dims.first : p.dims.second) {
    columns = std::max(columns, static_cast<double>(window[static_cast<size_t>(d)]));
  }
  double lanes = std::max(device_.vector_bytes / 4, 1);
  double across = columns / std::ceil(columns / c.block.n);
  double down = rows / std::ceil(rows / c.block.m);
  double padded = std::ceil(across / lanes) * lanes;
  return device_.BlockRate(RateType(group_, p.op, c.swap, device_), down, padded) * across / padded;
}

// What a block does besides products: what it does of a halo counts.
double TileScore::PointwiseSeconds(const std::vector<int64_t>& window) const {
  double seconds = 0;
  for (size_t i = 0; i < smg_.ops.size(); ++i) {
    if (Classify(group_, static_cast<int>(i)) == OpClass::kProduct) continue;
    const SmgOp& op = smg_.ops[i];
    seconds += PointsOf(op.dims, window) * (op.value.Cost() + 1) / device_.scalar_ops_per_s;
  }
  return seconds;
}

}  // namespace fusion
