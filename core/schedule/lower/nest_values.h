#pragma once

#include <utility>
#include <vector>

#include "core/schedule/lower/lower_nest.h"
#include "core/schedule/lower/region.h"

namespace fusion {

/// The values that a nest keeps, folds and stores, as steps of one region. Internal to lowering.
class NestValues {
 public:
  /// `accumulators`: buffers of the products of the nest, in their order; empty if they are not at
  /// hand here. `placed` (may be null): the one reduction of the nest, which is to be done at
  /// places. All must outlive this object.
  NestValues(const Nest& nest, const std::vector<BufferId>& accumulators, NestContext* at,
             const IndexedReduction* placed = nullptr);

  /// The value that holds the place; -1: there is none.
  int place() const { return place_; }
  /// The value that goes there.
  int update() const { return folded_.front().value; }

  /// The steps that compute the values.
  const std::vector<ElementOp>& loads() const { return region_.steps(); }

  /// All steps: the values computed, then folded and stored. Buffers of kept values are made as
  /// they come, with their dims in the order of `order`.
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
