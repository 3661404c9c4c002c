#pragma once

#include <utility>
#include <vector>

#include "core/schedule/lower/lower_nest.h"
#include "core/schedule/lower/region.h"

namespace fusion {

/// The steps of one region that compute, fold and store the values of a nest. Internal to lowering.
class NestValues {
 public:
  /// `accumulators`: buffers of the nest's products, in their order; empty if the region does not
  /// run on accumulators. `placed` (may be null): the nest's only reduction, if it reduces at
  /// looked-up places. All arguments must outlive this object.
  NestValues(const Nest& nest, const std::vector<BufferId>& accumulators, NestContext* at,
             const IndexedReduction* placed = nullptr);

  /// With `placed`: the number of the value that is the place (EachStmt::place). Else -1.
  int place() const { return place_; }
  /// The number of the value that is reduced at the place.
  int update() const { return folded_.front().value; }

  /// The steps that compute the values.
  const std::vector<ElementOp>& loads() const { return region_.steps(); }

  /// All steps: computing the values, then folding and storing them. Creates the buffers of kept
  /// values, with their dims in the order of `order`. Fails with the status of the region.
  absl::StatusOr<std::vector<ElementOp>> Finish(const std::vector<DimId>& order);

 private:
  // An op and its value in the region.
  struct OpValue {
    int op;
    int value;
  };

  void Fold(const OpValue& folded, const std::vector<DimId>& order);
  void Update(const OpValue& updated);
  void Keep(const OpValue& kept, const std::vector<DimId>& order, std::vector<ElementOp>* steps);
  bool MayTakeOver(size_t holder, const std::vector<DimId>& dims, DType type) const;
  bool ReadsInPlace(BufferId b, const std::vector<ElementOp>& steps) const;
  BufferId InPlace(int op, const std::vector<ElementOp>& steps) const;

  NestContext& at_;
  RegionBuilder region_;
  int place_ = -1;
  std::vector<OpValue> kept_;
  std::vector<OpValue> folded_;
  std::vector<OpValue> stored_;
  std::vector<OpValue> updated_;  // op: of the update
};

}  // namespace fusion
