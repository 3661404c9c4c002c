#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/op/body/indexed_reduction.h"
#include "core/schedule/lower/streamed_group.h"

namespace fusion {

/// What an op reduces at places that it reads (core/op/body/indexed_reduction.h), over dims;
/// nullopt: it does not. The dims of `at` are ones that the op keeps.
std::optional<IndexedReduction> IndexedReductionOf(const Smg& smg, const SmgOp& op);

/// What an op is to the schedule, derived from its loop body.
enum class OpClass : uint8_t {
  kPointwise,  // no reduction: computed where its value is needed
  kReduction,  // folds an expression into a buffer
  kProduct,  // sum of products of two operands of which at least one lacks an output dim: a matrix
             // product
};

/// By read, the types of the factors of a sum of products of two reads in f32: elements as they are
/// or, of narrower types, cast to f32. nullopt: the op is none.
std::optional<std::array<DType, 2>> FactorTypes(const SmgOp& op);

/// What op `i` of a group is. One row times a matrix that lies with what is summed up next to each
/// other is a reduction: to have columns next to each other it would be copied first, each element
/// for one use.
OpClass Classify(const FusionGroup& group, int i);

/// The dims of a product op from the side of its operands. `first` / `second`: output dims that
/// only read 0 / read 1 has; `batch`: both have; `over`: reduced.
struct ProductDims {
  std::vector<DimId> first;
  std::vector<DimId> second;
  std::vector<DimId> batch;
  std::vector<DimId> over;
};
ProductDims SplitProductDims(const SmgOp& op);

/// One element-wise loop nest of a block, or one nest of matrix products with what is done to each
/// accumulator tile.
struct Nest {
  std::vector<DimId> dims;    // iteration dims, unordered
  std::vector<int> products;  // ops; empty: a plain nest
  std::vector<int> reduce;    // reduction ops folded here
  std::vector<int> keep;      // ops whose value is stored to a local buffer here
  std::vector<int> store;     // ops whose value is stored to an output param here
  std::vector<int> update;    // ops whose value replaces a partial result here
};

/// How the ops of a group become nests, independent of any device.
struct NestPlan {
  std::vector<OpClass> classes;
  /// Ops whose value lies in a local buffer for later nests (every reduction does anyway).
  std::vector<bool> kept;
  /// Nests before, inside and after the temporal loop; without one everything is in `before`.
  std::vector<Nest> before;
  std::vector<Nest> inside;
  std::vector<Nest> after;
};

/// Decides what is kept, what is recomputed and which steps share a loop nest. `streamed`: the form
/// in which a dim is streamed inside the block, `group` being its group; null: none is. Fails with
/// FailedPrecondition and the reason where the group has no schedule (an intermediate read through
/// an alias, say).
absl::StatusOr<NestPlan> PlanNests(const FusionGroup& group, const StreamedGroup* streamed);

}  // namespace fusion
