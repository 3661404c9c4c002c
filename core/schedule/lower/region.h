#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>

#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "core/schedule/lower/nests.h"

namespace fusion {

/// Builds the steps of one element-wise region. Values of ops, at plain or shifted coordinates, are
/// computed from params and local buffers; equal steps are emitted once. Internal to lowering.
class RegionBuilder {
 public:
  /// The local buffer that holds op i's value at this point; nullopt if the region must compute it.
  /// Kernel inputs are found through ParamOf.
  using BufferOf = std::function<std::optional<BufferId>(int op)>;
  /// The param buffer of a kernel input.
  using ParamOf = std::function<BufferId(ValueId)>;

  RegionBuilder(const FusionGroup& group, const Schedule& schedule, BufferOf buffer, ParamOf param)
      : group_(group),
        schedule_(schedule),
        buffer_(std::move(buffer)),
        param_(std::move(param)),
        emitted_(0, StepHash{&ops_}, SameStep{&ops_}),
        remembered_(group.smg.ops.size(), -1),
        computed_(group.smg.ops.size(), -1) {}
  // Not copyable: its hash tables point into it.
  RegionBuilder(const RegionBuilder&) = delete;
  RegionBuilder& operator=(const RegionBuilder&) = delete;

  /// Each returns the number of a value (v<n>) of the region. Compute: op's expression at the
  /// coordinates of the region; for a reduction the value to fold.
  int Compute(int op);
  /// The same for a subexpression of it.
  int Compute(int op, const Expr& part);
  /// Op's value: loaded if a buffer holds it, else computed.
  int Value(int op);

  void Store(int value, BufferId buffer, const IndexMap& index);
  void Reduce(int value, const std::string& monoid, BufferId buffer, const IndexMap& index);
  /// From here on, op's value at plain coordinates is the value numbered `value`, which was just
  /// stored.
  void Remember(int op, int value);

  const std::vector<ElementOp>& steps() const { return ops_; }
  std::vector<ElementOp> Take() && { return std::move(ops_); }

  /// FailedPrecondition once a value could not be expressed in a region (for example a guard under
  /// a mirrored index). The steps are unusable then.
  const absl::Status& status() const { return status_; }

 private:
  // Coordinates of an op's dims in terms of the region's dims, where they differ.
  using Shift = std::map<DimId, IndexExpr>;

  // An op that is being computed at some coordinates, and the steps emitted for it until now.
  struct Site {
    int op;
    const Shift& shift;
    const std::vector<Guard>& guards;
    std::vector<int> inputs;                      // by read; -1: not yet
    absl::flat_hash_map<const void*, int> steps;  // by node of the op's expression
  };

  // Hash and equality of steps with a result. The result does not count. Sets hold positions in
  // `ops`.
  struct StepHash {
    using is_transparent = void;
    const std::vector<ElementOp>* ops;
    size_t operator()(const ElementOp& op) const;
    size_t operator()(size_t at) const { return (*this)((*ops)[at]); }
  };
  struct SameStep {
    using is_transparent = void;
    const std::vector<ElementOp>* ops;
    bool operator()(size_t a, size_t b) const { return a == b; }
    bool operator()(size_t at, const ElementOp& op) const { return (*ops)[at].DoesTheSame(op); }
  };

  int ValueAt(int op, const Shift& shift, const std::vector<Guard>& guards);
  int ComputeAt(int op, const Shift& shift, const std::vector<Guard>& guards);
  int Input(size_t i, Site* site);
  int Read(const SmgRead& read, Site* site);
  int Translate(const Expr& e, Site* site);
  int Coordinate(const IndexExpr& at);
  int Constant(int64_t value);
  int Load(Access access);
  int Emit(ElementOp op);
  IndexExpr At(const IndexExpr& e, const Shift& shift) const;
  std::vector<Guard> Shifted(int op, const std::vector<Guard>& guards, const Shift& shift);

  const FusionGroup& group_;
  const Schedule& schedule_;
  BufferOf buffer_;
  ParamOf param_;
  absl::Status status_ = absl::OkStatus();
  std::vector<ElementOp> ops_;
  absl::flat_hash_set<size_t, StepHash, SameStep> emitted_;
  int results_ = 0;
  std::vector<int> remembered_;  // by op; -1: not
  std::vector<int> computed_;    // by op: its value at plain coordinates; -1: not yet
  std::map<std::pair<int, std::string>, int> computed_at_;  // (op, text of where) -> value
};

}  // namespace fusion
