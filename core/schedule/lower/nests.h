#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/op/body/indexed_reduction.h"
#include "core/schedule/lower/streamed_group.h"

namespace fusion {

/// The indexed form of a reduction (core/op/body/indexed_reduction.h) over dims of the SMG, for ops
/// that reduce at places which they read (scatters). nullopt: `op` is no such reduction. `at`
/// consists of dims that the op keeps.
std::optional<IndexedReduction> IndexedReductionOf(const Smg& smg, const SmgOp& op);

/// The class of an op, derived from its loop body.
enum class OpClass : uint8_t {
  kPointwise,  // no reduction: computed where its value is read
  kReduction,  // folds an expression into a buffer
  kProduct,    // a matrix product: a sum of products of two operands, one of which lacks an output
               // dim
};

/// The operand types of a sum of products of two reads, summed in f32 or i32: by read, the type of
/// the elements in memory, before a cast. nullopt: `op` is no such sum.
std::optional<std::array<DType, 2>> FactorTypes(const SmgOp& op);

/// The class of op `i`. A product of one row with a matrix param (not a constant) whose summed
/// elements are contiguous is a kReduction: as a kProduct, each matrix element would be copied
/// first and used once.
OpClass Classify(const FusionGroup& group, int i);

/// The dims of a product op, by the operands that have them. `first`, `second`: output dims of read
/// 0 only, of read 1 only. `batch`: output dims of both. `over`: summed dims.
struct ProductDims {
  std::vector<DimId> first;
  std::vector<DimId> second;
  std::vector<DimId> batch;
  std::vector<DimId> over;
};
ProductDims SplitProductDims(const SmgOp& op);

/// A loop nest of a block: element-wise, or of matrix products with the element-wise work on each
/// accumulator tile (epilogue). Lists hold op numbers.
struct Nest {
  std::vector<DimId> dims;    // iteration dims, unordered
  std::vector<int> products;  // empty: an element-wise nest
  std::vector<int> reduce;    // reductions that are folded here
  std::vector<int> keep;      // ops whose value is stored to a local buffer
  std::vector<int> store;     // ops whose value is stored to an output param
  std::vector<int> update;    // ops whose value replaces a partial result
};

/// The loop nests of a group, independent of the device.
struct NestPlan {
  /// By op.
  std::vector<OpClass> classes;
  /// By op: whether its value is kept in a local buffer for later nests. Results of reductions
  /// always are.
  std::vector<bool> kept;
  /// Nests before, inside and after the temporal loop. Without a streamed dim all are in `before`.
  std::vector<Nest> before;
  std::vector<Nest> inside;
  std::vector<Nest> after;
};

/// Decides which values are kept or recomputed, and which ops share a loop nest. `streamed`: the
/// streamed form that `group` (or the group of one of its parts) belongs to; null: no dim is
/// streamed. FailedPrecondition, with the reason, if the group has no schedule, for example because
/// an intermediate is read through an alias. Pure.
absl::StatusOr<NestPlan> PlanNests(const FusionGroup& group, const StreamedGroup* streamed);

}  // namespace fusion
