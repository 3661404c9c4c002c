#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/algebra/leaves.h"
#include "core/smg/stream.h"

namespace fusion {

/// Writes the ops of a streamed SMG from expressions over leaves. Internal to the temporal slicer.
class StreamBuilder {
 public:
  /// A sum that tells how another one changes with its centres: of the derivative of these orders.
  struct Moment {
    std::vector<int> orders;  // by centre
    Expr rest;
    int op = -1;
  };

  StreamBuilder(const Smg& smg, DimId dim, Leaves* leaves);

  /// Op i of the given SMG as it is. Returns its number here.
  int Copy(int i);
  int OpOf(int i) const { return op_of_[static_cast<size_t>(i)]; }

  // ---- leaves ----

  /// What read r of an op gives, which does not depend on partial results, as a leaf.
  Expr ReadLeaf(const SmgOp& op, int r, DType type);
  /// The value of op `op` of the result as a leaf.
  Expr OpLeaf(Leaf leaf, int op, DType type);
  /// How many elements of its input op `op` of the result makes one of.
  double PointsFolded(int op) const;
  int OpOfLeaf(const Expr& leaf) const { return op_of_leaf_.at(leaf.index()); }
  /// True if states occur in `e` other than in running exponents.
  bool HasPlainState(const Expr& e);

  // ---- sharing ----

  /// Where `rest` occurs inside a loop body, it is read from one op with op i's dims.
  void Anchor(const Expr& rest, int i) { anchors_.emplace(rest.id(), std::pair{rest, i}); }
  /// Where `value` occurs behind the loop, op `op` of the result has it.
  void AnchorLate(const Expr& value, int op) { late_.emplace(value.id(), std::pair{value, op}); }

  // ---- ops ----

  /// The fold of `rest` as op i folds: a state.
  int Reduction(int i, const Expr& rest);
  /// A running exponent's value with each tile and before it. False if it has none before the first
  /// tile.
  bool Follow(int running);
  /// What a sum with these running exponents lacks in the end where clamping had a part in them; 1
  /// if it cannot have.
  Expr Correction(const std::vector<int>& running);
  /// `rest` with everything made of states alone replaced by leaves that the loop follows.
  Expr TakeCentres(const Expr& rest, std::vector<int>* centres);
  /// The updates of the moments, lowest orders first, of the sum that op i is.
  void Updates(int i, const std::vector<Moment>& moments, const std::vector<int>& running,
               const std::vector<int>& centres);
  /// Op `op` of the result is what op i was.
  void Adopt(int i, int op);
  /// state * product of factors, the factors computed once for all that they do not vary along.
  Expr Scaled(const Expr& state, const std::vector<Expr>& factors);
  /// `value` is what op i was, computed behind the loop.
  void FinishOp(int i, const Expr& value);

  /// Drops what nobody needs; `out->underflow` names ops of this builder, then of the result.
  void Finish(const std::vector<ValueId>& outputs, Streamed* out);

  /// An expression for people: leaves by what they stand for.
  std::string Text(const Expr& e) const;

 private:
  enum Place : uint8_t { kInside, kBehind };
  struct Followed {
    int now = -1;
    int before = -1;
    Expr now_leaf;
    Expr before_leaf;
  };
  class Writer;

  int Emit(const Expr& value, std::string label, Place place, StreamOp what);
  int EmitShared(const Expr& value, Place place, int source);
  int Append(SmgOp op, StreamOp what);
  SmgRead ReadOf(int op) const;
  std::vector<DimId> InOrder(const std::vector<bool>& used) const;
  Expr DefinitionOf(const SmgRead& read);
  void AppendText(const Expr& e, std::string* out) const;
  static double LowestOf(DType type);
  Expr Clamped(const Expr& value) const;
  bool IsFiniteAtStart(const Expr& value) const;
  Expr Known(int op, DType type) {
    return OpLeaf({.kind = Leaf::kFixed, .element = {}, .monoid = ""}, op, type);
  }
  Expr Change(const std::vector<int>& running);
  void StartCount();
  Expr Extrapolated(const Expr& value, const Expr& ratio);
  bool HasRunning(const Expr& e) const;
  int CentreOf(const Expr& e);
  Expr Delta(int centre);

  const Smg& smg_;
  DimId dim_;
  Leaves& leaves_;
  std::vector<SmgOp> ops_;
  std::vector<StreamOp> what_;
  std::vector<int> op_of_;  // by op of smg_
  ValueId next_value_ = 0;

  std::map<std::string, Expr> read_leaves_;
  std::map<int, SmgRead> read_of_leaf_;  // by leaf; producers are ops of smg_
  std::map<int, Expr> index_of_leaf_;    // by leaf: the leaf that gives an indirect index
  std::map<int, int> op_of_leaf_;        // by leaf
  std::unordered_map<const void*, std::pair<Expr, int>> anchors_;
  std::unordered_map<const void*, std::pair<Expr, int>> late_;
  std::unordered_map<const void*, std::pair<Expr, int>> shared_;  // ops made for an expression
  std::map<int, Followed> running_;
  std::map<int, Followed> centres_;
  std::map<std::vector<int>, Expr> changes_;
  std::map<int, Expr> deltas_;
  int count_ = -1;  // op that counts what of the dim has been seen
  Expr ratio_now_;
  Expr ratio_before_;
  Expr is_first_;
};

}  // namespace fusion
