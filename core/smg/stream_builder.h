#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/algebra/leaves.h"
#include "core/smg/stream.h"

namespace fusion {

/// Writes the ops of a streamed SMG from expressions over leaves. Internal to the temporal slicer
/// (stream.cc). Not thread-safe; `smg` and `leaves` must outlive it.
///
/// Here "the result" is the SMG under construction, a "state" is a partial result, a "centre" is a
/// mean or an extremum that a sum is taken about, and a "running exponent" is the exponent whose
/// exponential keeps a sum small.
class StreamBuilder {
 public:
  /// A sum over a derivative of a summand by its centres: it says how the main sum changes when the
  /// centres move.
  struct Moment {
    std::vector<int> orders;  // order of the derivative, by centre
    Expr rest;
    int op = -1;
  };

  StreamBuilder(const Smg& smg, DimId dim, Leaves* leaves);

  /// Copies op i of the given SMG unchanged. Returns its number in the result.
  int Copy(int i);
  /// The op of the result that writes what op i of the given SMG wrote; -1: none yet.
  int OpOf(int i) const { return op_of_[static_cast<size_t>(i)]; }

  // ---- leaves ----

  /// Read r of an op, as a leaf. The value must not depend on partial results.
  Expr ReadLeaf(const SmgOp& op, int r, DType type);
  /// The value of op `op` of the result, as a leaf.
  Expr OpLeaf(Leaf leaf, int op, DType type);
  /// The number of input elements that op `op` of the result reduces to one.
  double PointsFolded(int op) const;
  /// The op of the result that computes a leaf of OpLeaf or Follow.
  int OpOfLeaf(const Expr& leaf) const { return op_of_leaf_.at(leaf.index()); }
  /// True if `e` contains states outside of running exponents.
  bool HasPlainState(const Expr& e);

  // ---- sharing ----

  /// Wherever `rest` occurs inside a loop body, it is read from one shared op with the dims of op
  /// i.
  void Anchor(const Expr& rest, int i) { anchors_.emplace(rest.id(), std::pair{rest, i}); }
  /// Wherever `value` occurs after the loop, it is read from op `op` of the result.
  void AnchorLate(const Expr& value, int op) { late_.emplace(value.id(), std::pair{value, op}); }

  // ---- ops ----

  /// Adds a reduction of `rest` with the monoid and dims of op i; its value is a state. Returns its
  /// number in the result.
  int Reduction(int i, const Expr& rest);
  /// Adds ops for a running exponent's value at each tile and before the tile. False if it has no
  /// value before the first tile.
  bool Follow(int running);
  /// The factor that a sum with these running exponents still needs after the last tile, where
  /// clamping changed its updates; 1 if clamping cannot have.
  Expr Correction(const std::vector<int>& running);
  /// `rest` with each subexpression of states alone replaced by a leaf that follows it tile by
  /// tile. `centres` receives these leaves.
  Expr TakeCentres(const Expr& rest, std::vector<int>* centres);
  /// Adds the updates of the moments of op i's sum. Moments are in ascending order.
  void Updates(int i, const std::vector<Moment>& moments, const std::vector<int>& running,
               const std::vector<int>& centres);
  /// Op `op` of the result takes the place of op i of the given SMG.
  void Adopt(int i, int op);
  /// state * product of the factors. The product is computed once for all dims along which the
  /// factors do not vary.
  Expr Scaled(const Expr& state, const std::vector<Expr>& factors);
  /// Computes `value` after the loop, in place of op i of the given SMG.
  void FinishOp(int i, const Expr& value);

  /// Drops unused ops and moves the result to `out->smg` and `out->ops`. `out->underflow.maximum`
  /// is renumbered from this builder to the result.
  void Finish(const std::vector<ValueId>& outputs, Streamed* out);

  /// An expression for people; each leaf is written as what it stands for.
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
  int count_ = -1;  // op that counts the coordinates of the dim seen so far
  Expr ratio_now_;
  Expr ratio_before_;
  Expr is_first_;
};

}  // namespace fusion
