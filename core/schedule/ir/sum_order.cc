#include "core/schedule/ir/sum_order.h"

#include <algorithm>
#include <cmath>

namespace fusion {
namespace {

// Columns stream through the nearest cache and drive rows out of it that lie in pieces (windows
// read in place): a jump to the next piece waits for the next cache. 64 channels of 3x3 windows on
// 56x56 pixels, rows in pieces 2672 us, columns in pieces 2276 us; Intel family 6 model 85, g++ 12,
// 2026-11-22; redo: tests/bench/kernel_bench conv_bias_leakyrelu.
constexpr double kJumpsOfFarRows = 3.5;

constexpr size_t kMostOrdered = 4;

// Columns as they lie once they are laid out in this order.
void LayOut(std::vector<SumDim>* dims) {
  int64_t step = 1;
  for (size_t i = dims->size(); i-- > 0;) {
    (*dims)[i].columns = step;
    step *= static_cast<int64_t>((*dims)[i].length);
  }
}

}  // namespace

double JumpsOfSum(const std::vector<SumDim>& dims) {
  double jumps = 1;
  bool rows_apart = false;
  for (size_t i = 0; i + 1 < dims.size(); ++i) {
    const SumDim& inner = dims[i + 1];
    const auto length = static_cast<int64_t>(inner.length);
    const bool rows_follow = dims[i].rows == inner.rows * length;
    if (rows_follow && dims[i].columns == inner.columns * length) continue;
    jumps *= dims[i].length;
    rows_apart = rows_apart || !rows_follow;
  }
  return (jumps - 1) * (rows_apart ? kJumpsOfFarRows : 1);
}

std::vector<SumDim> LeastJumps(std::vector<SumDim> dims, bool laid_out) {
  if (dims.size() < 2 || dims.size() > kMostOrdered) return dims;
  std::vector<size_t> order(dims.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::vector<SumDim> best = dims;
  double least = -1;
  do {  // the given order comes first
    std::vector<SumDim> walked;
    for (size_t i : order) walked.push_back(dims[i]);
    if (laid_out) LayOut(&walked);
    const double jumps = JumpsOfSum(walked);
    if (least >= 0 && jumps >= least) continue;
    least = jumps;
    best = std::move(walked);
  } while (std::next_permutation(order.begin(), order.end()));
  return best;
}

std::optional<SumBlocks> BlocksOfSum(const SmgOp& op, const Dims& windows, int64_t lanes) {
  constexpr double kMostSteps = 8192;
  constexpr double kLeastSteps = 1024;
  const bool sums = op.reduce && IsFloat(op.reduce->type()) &&
                    (op.reduce->name() == "sum" || op.reduce->name() == "prod");
  if (!sums) return std::nullopt;
  auto window = [&](DimId d) { return windows[static_cast<size_t>(d)]; };
  SumBlocks out;
  double steps = 1 / static_cast<double>(lanes);
  for (DimId d : op.dims) {
    if (!op.Reduces(d)) continue;
    steps *= static_cast<double>(window(d));
    if (out.dim < 0 || window(d) > window(out.dim)) out.dim = d;
  }
  if (steps <= kMostSteps) return std::nullopt;
  const double block = std::max(std::sqrt(steps), kLeastSteps);
  const double part = std::ceil(static_cast<double>(window(out.dim)) * block / steps);
  out.tile = (static_cast<int64_t>(part) + lanes - 1) / lanes * lanes;
  if (out.tile >= window(out.dim)) return std::nullopt;
  return out;
}

}  // namespace fusion
