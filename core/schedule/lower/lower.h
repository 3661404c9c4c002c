#pragma once

#include <map>
#include <memory>
#include <vector>

#include "core/device/device_spec.h"
#include "core/schedule/ir/group.h"
#include "core/schedule/ir/schedule.h"
#include "core/schedule/lower/nests.h"

namespace fusion {

/// How one product becomes register-blocked: which operand runs along vectors, the block, and
/// whether rows of the other operand are copied next to each other first.
struct ProductChoice {
  bool swap = false;  // columns come from read 0 instead of read 1
  RegisterBlock block;
  bool stage_rows = false;
};

/// What is left to decide once the group is known; everything else follows. Made by candidates.h.
struct Choice {
  std::vector<GridDim> grid;  // last dim fastest
  DimId temporal = -1;        // streamed inside the block
  int64_t temporal_tile = 0;
  /// The form in which `temporal` is streamed; null if it is -1.
  std::shared_ptr<const StreamedGroup> streamed;
  std::map<int, ProductChoice> products;  // by op, of the streamed form if there is one
  /// How long dims are taken to be where that decides something, by dim: of a member of a family
  /// as long as in its largest member. Empty: as long as they are.
  Dims most = {};

  int64_t MostOf(const Smg& smg, DimId d) const {
    return most.empty() ? smg.dim(d).extent : most[static_cast<size_t>(d)];
  }

  /// The same, with a dim streamed in tiles of `tile` as `form` says.
  Choice Streaming(std::shared_ptr<const StreamedGroup> form, int64_t tile) const;
};

/// What a param of a lowered schedule is.
struct LoweredParam {
  ValueId value = 0;
  bool output = false;
  /// A constant laid out for the kernel before the first run: element (dims...) of the param is
  /// element source[...] of the value.
  bool packed = false;
  IndexMap source;          // over `dims`
  std::vector<DimId> dims;  // of the group: one per param dim
};

struct Lowered {
  Schedule schedule;
  std::vector<LoweredParam> params;
  std::vector<std::string> certificate;  // of the form that was lowered, as FusionGroup's
};

/// What blocks of the grid of a choice reach of dims that are read through windows or at offsets.
/// FailedPrecondition if two halos reach for each other.
absl::StatusOr<std::vector<Halo>> HalosOfChoice(const Smg& smg, const Choice& choice);

/// Turns the choices for one group into schedules; what choices have in common is decided once. Not
/// thread-safe. What it is made from outlives it.
class GroupLowering {
 public:
  GroupLowering(const FusionGroup& group, const DeviceSpec& device, bool bitwise)
      : group_(group), device_(device), bitwise_(bitwise) {}

  /// FailedPrecondition with the reason where this choice has no schedule. Deterministic: equal
  /// inputs give equal text.
  absl::StatusOr<Lowered> Of(const Choice& choice);

 private:
  const FusionGroup& group_;
  const DeviceSpec& device_;
  const bool bitwise_;
  /// Of a form, and of the parts of its streamed dim.
  struct Plans {
    NestPlan whole;
    std::vector<NestPlan> parts;
  };
  absl::StatusOr<Plans> PlansOf(const StreamedGroup* streamed) const;

  std::map<std::shared_ptr<const StreamedGroup>, absl::StatusOr<Plans>> plans_;  // by form
};

/// The same for one choice. Pure.
absl::StatusOr<Lowered> Lower(const FusionGroup& group, const Choice& choice,
                              const DeviceSpec& device, bool bitwise);

/// The schedule that fills packed param `param` of `lowered` from the value as the client holds it:
/// one input, one output.
Schedule PackSchedule(const FusionGroup& group, const Lowered& lowered, size_t param);

}  // namespace fusion
