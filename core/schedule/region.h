#pragma once

#include <functional>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "core/schedule/nests.h"

namespace fusion {

/// Builds one element-wise region: values of ops at shifted or plain coordinates, computed from
/// what lies in memory, each distinct step once. Internal to lowering.
class RegionBuilder {
 public:
  /// Where a value can be had without computing it: the buffer that holds op i's value at the
  /// moment (params give none: they are asked for through `param`), or nullopt if it must be
  /// computed here.
  using BufferOf = std::function<std::optional<BufferId>(int op)>;
  /// The param buffer of a kernel input.
  using ParamOf = std::function<BufferId(ValueId)>;

  RegionBuilder(const FusionGroup& group, const Schedule& schedule, BufferOf buffer, ParamOf param)
      : group_(group), schedule_(schedule), buffer_(std::move(buffer)), param_(std::move(param)) {}

  /// Value of op i's expression at the coordinates of the region (for a reduction: the value to
  /// fold).
  int Compute(int op);
  /// Value of op i: loaded, or computed.
  int Value(int op);

  void Store(int value, BufferId buffer, const IndexMap& index);
  void Reduce(int value, const std::string& monoid, BufferId buffer, const IndexMap& index);
  /// From now on op i's value at plain coordinates is `value` (it was just stored).
  void Remember(int op, int value);

  const std::vector<ElementOp>& steps() const { return ops_; }
  std::vector<ElementOp> Take() { return std::move(ops_); }

  /// Not OK once something had no form in a region (a guard under a mirrored index); the steps are
  /// then unusable.
  const absl::Status& status() const { return status_; }

 private:
  // Coordinates of an op's dims in terms of the region's dims, where they differ.
  using Shift = std::map<DimId, IndexExpr>;

  int ValueAt(int op, const Shift& shift, const std::vector<Guard>& guards);
  int ComputeAt(int op, const Shift& shift, const std::vector<Guard>& guards);
  int ReadAt(int op, const SmgRead& read, const Shift& shift, const std::vector<Guard>& guards,
             const std::function<int(int)>& input);
  int Translate(int of, const Expr& e, const Shift& shift, const std::function<int(int)>& input,
                std::unordered_map<const void*, int>* done);
  int Coordinate(const IndexExpr& at);
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
  std::unordered_multimap<size_t, size_t> emitted_;  // hash -> position of a step with a result
  int results_ = 0;
  std::map<int, int> remembered_;
  std::map<std::pair<int, std::string>, int> computed_;  // (op, shift text) -> value
};

}  // namespace fusion
