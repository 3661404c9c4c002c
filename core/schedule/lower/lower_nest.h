#pragma once

#include <vector>

#include "core/schedule/lower/assemble.h"
#include "core/schedule/lower/params.h"

namespace fusion {

/// The context in which the nests of a block are lowered. Internal to lowering.
struct NestContext {
  const FusionGroup& group;
  const Choice& choice;
  const DeviceSpec& device;
  const NestPlan& plan;
  const ProductRoles& roles;
  const ParamTable& params;
  Lowered& lowered;
  /// Length of each dim's window at the nest.
  Dims windows;
  /// By op: the last nest of the section that reads the op's value from its buffer; -1: none.
  std::vector<int> last_reads;
  LocalBuffers locals;

  const SmgOp& op(int i) const { return group.smg.op(i); }
  OpClass kind(int i) const { return plan.classes[static_cast<size_t>(i)]; }
  int64_t window(DimId d) const { return windows[static_cast<size_t>(d)]; }
  const Buffer& buffer(BufferId b) const { return lowered.schedule.buffer(b); }
};

/// NestContext::last_reads of section `section`. `sections`: the nests of all sections, in order.
/// INT_MAX for values that later sections read.
std::vector<int> LastReads(const FusionGroup& group, const NestPlan& plan,
                           const std::vector<const std::vector<Nest>*>& sections, size_t section);

/// Allocates the buffer of op i's partial result, which is reduced along the streamed dim, at the
/// current nest of `at`. FailedPrecondition if op i is a product without columns.
absl::Status DeclareState(int i, NestContext* at);

/// Lowers a nest without products to one element-wise region. FailedPrecondition if a value cannot
/// be computed in a region.
absl::StatusOr<NestCode> LowerPlainNest(const Nest& nest, NestContext* at);

/// Lowers a nest of products that share rows and columns: loops over register blocks, and the
/// epilogue on the accumulators of each block. FailedPrecondition as above, or if the products'
/// roles are incompatible.
absl::StatusOr<NestCode> LowerProductNest(const Nest& nest, NestContext* at);

}  // namespace fusion
