#include "core/benefit/opaque_cost.h"

#include <algorithm>
#include <cmath>

#include "core/op/indexed/opaque.h"
#include "core/schedule/lower/opaque.h"

namespace fusion {
namespace {

// In additions of f32 (DeviceSpec::scalar_ops_per_s); core/op/README.md, "Adding an operator",
// lists the opaque ops.
constexpr double kFoldChain = 60;     // an element of a row that waits for the one before
constexpr double kFoldLanes = 6;      // one of rows beside each other, or of a sum of f32
constexpr double kOrderElement = 45;  // an element that is looked at
constexpr double kOrderStep = 90;     // an element, for each halving, that is put in order
constexpr double kPlaceElement = 30;  // an element of a list of which some are chosen
constexpr double kOverlap = 250;      // a box beside one that is chosen

double Log2(double n) { return std::log2(std::max(n, 2.0)); }

double FoldCost(const RunningFold& fold, DType type, bool bitwise) {
  const auto extent = static_cast<double>(fold.rows.extent);
  const bool lanes = fold.rows.inner >= 8 || (fold.monoid == "sum" && type == DType::kF32 &&
                                              !fold.exclusive && !fold.reverse && !bitwise);
  return extent * (lanes ? kFoldLanes : kFoldChain);
}

double OrderCost(const RowOrder& order) {
  const auto extent = static_cast<double>(order.rows.extent);
  const auto count = static_cast<double>(order.count);
  const double width = order.things ? static_cast<double>(order.rows.inner) : 1;
  // Few of many are sorted among themselves only.
  return extent * kOrderElement + count * Log2(count) * kOrderStep * std::min(width, 4.0);
}

double BoxesCost(const BoxChoice& choice) {
  const auto boxes = static_cast<double>(choice.boxes);
  const auto count = static_cast<double>(choice.count);
  return boxes * Log2(boxes) * kOrderStep + boxes * count / 2 * kOverlap;
}

}  // namespace

double OpaqueSeconds(const Schedule& schedule, const CallStmt& call,
                     const std::vector<double>& windows, const DeviceSpec& device) {
  double rows = 1;
  for (DimId d : call.over) rows *= windows[static_cast<size_t>(d)];
  const Buffer& x = schedule.buffer(call.inputs[0]);
  double cost = 0;
  if (call.op == RunningFold::kName) {
    cost = FoldCost(RunningFoldOf(call.attrs, x.shape), x.dtype, schedule.bitwise);
    if (call.attrs.Has(kOpaquePart)) {
      cost /= static_cast<double>(schedule.dim(call.over[1]).extent);
    }
  } else if (call.op == RowOrder::kName) {
    cost = OrderCost(RowOrderOf(call.attrs, x.shape));
  } else if (call.op == ChosenPlaces::kName) {
    cost = kPlaceElement * static_cast<double>(x.shape[0]);
  } else if (call.op == BoxChoice::kName) {
    cost = BoxesCost(BoxChoiceOf(call.attrs, schedule.buffer(call.inputs[1]).shape));
  }
  return rows * cost / device.scalar_ops_per_s;
}

}  // namespace fusion
