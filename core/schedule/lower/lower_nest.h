#pragma once

#include <vector>

#include "core/schedule/lower/assemble.h"
#include "core/schedule/lower/params.h"

namespace fusion {

/// What the nests of a block are lowered against. Internal to lowering.
struct NestContext {
  const FusionGroup& group;
  const Choice& choice;
  const DeviceSpec& device;
  const NestPlan& plan;
  const ProductRoles& roles;
  const ParamTable& params;
  Lowered& lowered;
  /// Length of each dim's window where the nest stands.
  Dims windows;
  /// Last nest of the section that reads each op's value from its buffer; -1: none.
  std::vector<int> last_reads;
  LocalBuffers locals;

  const SmgOp& op(int i) const { return group.smg.op(i); }
  OpClass kind(int i) const { return plan.classes[static_cast<size_t>(i)]; }
  int64_t window(DimId d) const { return windows[static_cast<size_t>(d)]; }
  const Buffer& buffer(BufferId b) const { return lowered.schedule.buffer(b); }
};

/// NestContext::last_reads of section `section`; a nest beyond all others for what later sections
/// read.
std::vector<int> LastReads(const FusionGroup& group, const NestPlan& plan,
                           const std::vector<const std::vector<Nest>*>& sections, size_t section);

/// Gives the partial result of op i, which is reduced along the streamed dim, its buffer. In the
/// nest that the buffers are at. FailedPrecondition if it is a product without columns.
absl::Status DeclareState(int i, NestContext* at);

/// A nest without products: one element-wise region. FailedPrecondition where a value has no form
/// in a region.
absl::StatusOr<NestCode> LowerPlainNest(const Nest& nest, NestContext* at);

/// Products that share rows and columns: loops over register blocks, and in each what is done to
/// the accumulators while they are at hand. FailedPrecondition as above, or where the products'
/// roles do not fit together.
absl::StatusOr<NestCode> LowerProductNest(const Nest& nest, NestContext* at);

}  // namespace fusion
