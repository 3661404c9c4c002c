#pragma once

#include <map>
#include <memory>
#include <vector>

#include "core/device/device_spec.h"
#include "core/schedule/ir/group.h"
#include "core/schedule/ir/schedule.h"
#include "core/schedule/lower/nests.h"

namespace fusion {

/// How one product is register-blocked: which operand runs along vectors, the block, and whether
/// rows of the other operand are copied to contiguous memory first.
struct ProductChoice {
  bool swap = false;  // columns come from read 0 of the op instead of read 1
  RegisterBlock block;
  /// Copies the rows before they are multiplied (for windows: im2col).
  bool stage_rows = false;
};

/// The decisions that turn a group into a schedule; everything else follows. Made by
/// EnumerateChoices, checked by CheckChoice.
struct Choice {
  std::vector<GridDim> grid;  // dims tiled into parallel blocks; last dim fastest
  DimId temporal = -1;        // the dim streamed inside the block; -1: none
  int64_t temporal_tile = 0;  // length of a slice of `temporal`, in elements
  /// The form in which `temporal` is streamed; null if it is -1.
  std::shared_ptr<const StreamedGroup> streamed;
  /// By op of `streamed->group` if that is set, else of the group.
  std::map<int, ProductChoice> products;
  /// By dim: the extent that decisions assume. For a member of a family, the extent in its largest
  /// member. Empty: the extents of the SMG.
  Dims most = {};

  int64_t MostOf(const Smg& smg, DimId d) const {
    return most.empty() ? smg.dim(d).extent : most[static_cast<size_t>(d)];
  }

  /// A copy of this choice that streams `form->dim` in tiles of `tile`. The entries of `products`
  /// move to the ops of `form`.
  Choice Streaming(std::shared_ptr<const StreamedGroup> form, int64_t tile) const;
};

/// What a param of a lowered schedule holds.
struct LoweredParam {
  ValueId value = 0;
  bool output = false;
  /// A constant that is packed for the kernel before the first run (PackSchedule): element
  /// (dims...) of the param is element source[...] of `value`.
  bool packed = false;
  IndexMap source;          // over `dims`
  std::vector<DimId> dims;  // dims of the group, one for each param dim
};

struct Lowered {
  Schedule schedule;
  /// One for each param of `schedule`.
  std::vector<LoweredParam> params;
  /// Of the form that was lowered, see FusionGroup::certificate.
  std::vector<std::string> certificate;
};

/// The halos of a choice's grid: per-block ranges of the dims that are read through windows or at
/// offsets. FailedPrecondition if two halos depend on each other.
absl::StatusOr<std::vector<Halo>> HalosOfChoice(const Smg& smg, const Choice& choice);

/// Lowers choices of one group to schedules. What several choices share is computed once, so this
/// is cheaper than Lower for each. Not thread-safe. Keeps references to `group` and `device`.
class GroupLowering {
 public:
  GroupLowering(const FusionGroup& group, const DeviceSpec& device, bool bitwise)
      : group_(group), device_(device), bitwise_(bitwise) {}

  /// `choice.streamed` is null or comes from StreamGroup for this group. FailedPrecondition, with
  /// the reason (Refusal::ToString), if the choice has no schedule. Deterministic: equal inputs
  /// give equal text.
  absl::StatusOr<Lowered> Of(const Choice& choice);

 private:
  const FusionGroup& group_;
  const DeviceSpec& device_;
  const bool bitwise_;
  /// The nests of a form, and of each part of its streamed dim.
  struct Plans {
    NestPlan whole;
    std::vector<NestPlan> parts;
  };
  absl::StatusOr<Plans> PlansOf(const StreamedGroup* streamed) const;

  std::map<std::shared_ptr<const StreamedGroup>, absl::StatusOr<Plans>> plans_;  // by form
};

/// GroupLowering::Of for one choice. `bitwise`: sums in index order, no fused multiply-add. Pure.
absl::StatusOr<Lowered> Lower(const FusionGroup& group, const Choice& choice,
                              const DeviceSpec& device, bool bitwise);

/// The schedule that packs param `param` of `lowered` (LoweredParam::packed) from the value in the
/// layout that the client holds: one input, one output.
Schedule PackSchedule(const FusionGroup& group, const Lowered& lowered, size_t param);

}  // namespace fusion
