#include "core/smg/stream.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <unordered_map>

#include "core/algebra/centres.h"
#include "core/algebra/separate.h"
#include "core/algebra/support.h"
#include "core/base/contains.h"
#include "core/smg/companions.h"
#include "core/smg/slicers.h"
#include "core/smg/stream_builder.h"

namespace fusion {
namespace {

constexpr int kMostDegree = 4;
constexpr size_t kMostStates = 8;

std::vector<int64_t> ExtentsOf(const Smg& smg) {
  std::vector<int64_t> extents;
  for (const SmgDim& d : smg.dims) extents.push_back(d.extent);
  return extents;
}

class Streamer {
 public:
  Streamer(const Smg& smg, const std::vector<ValueId>& outputs, DimId dim,
           const AlgebraRules& rules)
      : smg_(smg),
        outputs_(outputs),
        dim_(dim),
        leaves_(ExtentsOf(smg), dim, rules),
        separator_(&leaves_),
        build_(smg, dim, &leaves_) {}

  Streamed Run() {
    Streamed out;
    if (!CheckReads()) return Refused();
    form_.assign(smg_.ops.size(), kFree);
    composite_.resize(smg_.ops.size());
    if (!NeedsRewriting()) {
      out.kind = reduces_ ? Streamed::kSimpleAggregate : Streamed::kStream;
      out.smg = smg_;
      for (int i = 0; i < count(); ++i) {
        out.ops.push_back({.source = i});
        if (smg_.op(i).Reduces(dim_)) Touches(i, *smg_.op(i).reduce, Composite(i));
      }
      out.needed = Needed();
      out.underflow = Underflow(out.needed);
      return out;
    }
    for (int i = 0; i < count(); ++i) {
      if (!Visit(i)) return Refused();
    }
    out.needed = Needed();
    out.underflow = Underflow(out.needed);
    build_.Finish(outputs_, &out);
    out.kind = updates_ ? Streamed::kUpdateThenAggregate : Streamed::kSimpleAggregate;
    out.rewritten = true;
    out.loose = loose_;
    out.certificate = std::move(certificate_);
    return out;
  }

 private:
  // How an op takes part.
  enum Form : uint8_t {
    kFree,   // depends on no partial result
    kState,  // made of partial results, element-wise: follows them
    kLate,   // needs whole results and lacks the dim: computed after the loop
    kMixed,  // varies along the dim and depends on partial results: computed inside the reductions
             // that read it
  };

  int count() const { return static_cast<int>(smg_.ops.size()); }
  size_t At(int i) const { return static_cast<size_t>(i); }

  Streamed Refused() {
    Streamed out;
    out.refusal = refusal_;
    return out;
  }
  template <typename... Parts>
  bool No(RefusalCode code, const Parts&... parts) {
    refusal_ = Refuse(code, parts...);
    return false;
  }

  bool CheckReads() {
    for (int i = 0; i < count(); ++i) {
      for (const SmgRead& read : smg_.op(i).reads) {
        if (!CrossesAlong(read, smg_, dim_)) continue;
        return No(RefusalCode::kCrossing, OpName(smg_, i), " reads %", read.value,
                  " at other places along ", smg_.dim(dim_).name);
      }
    }
    return true;
  }

  // True if an op with the dim needs a reduction along it.
  bool NeedsRewriting() {
    std::vector<bool> after(smg_.ops.size(), false);
    bool needs = false;
    for (int i = 0; i < count(); ++i) {
      const SmgOp& op = smg_.op(i);
      for (const SmgRead& read : op.reads) {
        if (read.producer < 0) continue;
        bool state = smg_.op(read.producer).Reduces(dim_) || after[At(read.producer)];
        after[At(i)] = after[At(i)] || state;
      }
      needs |= op.Has(dim_) && after[At(i)];
      reduces_ |= op.Reduces(dim_);
    }
    return needs;
  }

  // Notes which points change op `at` of the result, a partial result that accumulates `value`.
  void Touches(int at, const Monoid& monoid, const Expr& value) {
    Region region;
    Region soft;
    if (monoid.name() == "sum") {
      region = RegionOfNonZero(value, leaves_);
      UnderflowRegion under = RegionOfNoUnderflow(value, leaves_);
      soft = std::move(under.region);
      for (const auto& [running, most] : under.at_most) running_.emplace_back(running, most);
    }
    if (monoid.name() == "max") {
      region = RegionAboveMinusInfinity(value, leaves_);
      UpperRegion above = RegionAboveMasks(value, leaves_);
      soft = std::move(above.region);
      if (std::isfinite(above.bound)) least_.emplace_back(at, above.bound);
    }
    needed_ = needed_.has_value() ? Hull(*needed_, region) : region;
    soft_ = soft_.has_value() ? Hull(*soft_, soft) : soft;
  }

  // Tiles that finite masks make idle, if these are more than `needed` excludes.
  Streamed::Underflow Underflow(const Region& needed) {
    Streamed::Underflow out;
    if (!soft_.has_value() || soft_->empty() || *soft_ == needed || WritesEveryPoint()) return out;
    int leaf = -1;
    // The least value of the one maximum on which all of this depends.
    out.least = -std::numeric_limits<double>::infinity();
    for (const auto& [running, most] : running_) {
      const Expr& exponent = leaves_.leaf(running).element;
      exponent.VisitOnce([&](const Expr& e) {
        if (e.op() == ScalarOp::kInput) leaf = leaf < 0 || leaf == e.index() ? e.index() : leaf;
      });
      if (leaf < 0 || leaves_.leaf(leaf).monoid != "max") return {};
      auto line = leaves_.LineIn(exponent, leaf);
      if (!line.has_value() || line->second >= 0) return {};
      out.least = std::max(out.least, (line->first - most) / -line->second);
      out.maximum = build_.OpOfLeaf(Expr::Input(leaf, exponent.type()));
    }
    for (const auto& [op, bound] : least_) {
      if (out.maximum >= 0 && out.maximum != op) return {};
      out.maximum = op;
      out.least = std::max(out.least, bound);
    }
    if (out.maximum < 0) return {};
    out.needed = *soft_;
    return out;
  }

  // Whether an output is written at every point along the dim, so that no tile can be skipped.
  bool WritesEveryPoint() const {
    return std::any_of(smg_.ops.begin(), smg_.ops.end(), [&](const SmgOp& op) {
      return op.Has(dim_) && !op.Reduces(dim_) && Contains(outputs_, op.output);
    });
  }

  Region Needed() const { return WritesEveryPoint() ? Region() : needed_.value_or(Region()); }

  // ---- the original ops, in order ----

  bool Visit(int i) {
    const SmgOp& op = smg_.op(i);
    bool depends = std::any_of(op.reads.begin(), op.reads.end(), [&](const SmgRead& r) {
      return r.producer >= 0 && form_[At(r.producer)] != kFree;
    });
    if (!depends) {
      int at = build_.Copy(i);
      if (op.Reduces(dim_)) {
        form_[At(i)] = kState;
        Touches(at, *op.reduce, Composite(i));
        composite_[At(i)] = StateLeaf(at, op.reduce->name(), Composite(i), false);
        build_.AnchorLate(composite_[At(i)], at);
      }
      return true;
    }
    if (!op.Has(dim_)) return VisitAfter(i);
    for (const SmgRead& read : op.reads) {
      if (read.producer < 0) continue;
      if (form_[At(read.producer)] == kLate) {
        return No(RefusalCode::kNeedsFinishedReduction, OpName(smg_, i), " uses ",
                  OpName(smg_, read.producer), ", which needs whole results along ",
                  smg_.dim(dim_).name);
      }
      if (form_[At(read.producer)] != kFree && read.relation != SmgRead::kAligned) {
        return No(RefusalCode::kShiftedState, OpName(smg_, i),
                  " reads a partial result at an offset");
      }
    }
    composite_[At(i)] = Composite(i);
    if (op.reduce.has_value()) {
      if (!op.Reduces(dim_)) {
        return No(RefusalCode::kStateInReduction, OpName(smg_, i),
                  " reduces another dim of what "
                  "depends on partial results along ",
                  smg_.dim(dim_).name);
      }
      // Factors and centres that vary along d cannot be moved out of a sum over d.
      for (DimId d : op.reduced) {
        if (d == dim_ || !StatesVaryAlong(i, d)) continue;
        return No(RefusalCode::kStateInReduction, OpName(smg_, i), " reduces ", smg_.dim(d).name,
                  " too, along which partial results vary that it depends on");
      }
      return Derive(i);
    }
    form_[At(i)] = kMixed;
    if (Contains(outputs_, op.output)) {
      return No(RefusalCode::kNeedsFinishedReduction, OpName(smg_, i),
                " leaves the kernel and uses "
                "whole results along ",
                smg_.dim(dim_).name);
    }
    std::vector<Term> terms = separator_.Separate(composite_[At(i)]);
    bool single = terms.size() == 1 && terms[0].HasRest() && !terms[0].rest.args().empty();
    if (single) build_.Anchor(terms[0].rest, i);
    return true;
  }

  // Whether op i depends on a partial result that has dim d.
  bool StatesVaryAlong(int i, DimId d) const {
    std::vector<bool> seen(smg_.ops.size(), false);
    std::vector<int> stack = {i};
    while (!stack.empty()) {
      int at = stack.back();
      stack.pop_back();
      for (const SmgRead& read : smg_.op(at).reads) {
        if (read.producer < 0 || seen[At(read.producer)]) continue;
        seen[At(read.producer)] = true;
        Form form = form_[At(read.producer)];
        if (form == kState && Contains(smg_.op(read.producer).OutputDims(), d)) return true;
        if (form == kMixed) stack.push_back(read.producer);
      }
    }
    return false;
  }

  bool VisitAfter(int i) {
    const SmgOp& op = smg_.op(i);
    int at = build_.Copy(i);
    bool follows = !op.reduce && std::all_of(op.reads.begin(), op.reads.end(), [&](const auto& r) {
      if (r.producer < 0) return r.guards.empty();
      Form form = form_[At(r.producer)];
      return form == kFree || (form == kState && r.relation == SmgRead::kAligned);
    });
    form_[At(i)] = follows ? kState : kLate;
    if (follows) {
      composite_[At(i)] = Composite(i);
      build_.AnchorLate(composite_[At(i)], at);
    }
    return true;
  }

  // The value of op i (for a reduction: its summand) as an expression over leaves. It may be wider
  // than the op's type if the values in it are.
  Expr Composite(int i) {
    std::unordered_map<const void*, Expr> done;
    std::function<Expr(const Expr&)> write = [&](const Expr& e) -> Expr {
      auto known = done.find(e.id());
      if (known != done.end()) return known->second;
      Expr out = e.op() == ScalarOp::kInput ? Operand(smg_.op(i), e) : Rebuilt(e, write);
      done.emplace(e.id(), out);
      return out;
    };
    return write(smg_.op(i).value);
  }

  Expr Operand(const SmgOp& op, const Expr& leaf) {
    const SmgRead& read = op.reads[At(leaf.index())];
    bool inlined = read.producer >= 0 && form_[At(read.producer)] != kFree;
    return inlined ? composite_[At(read.producer)] : build_.ReadLeaf(op, leaf.index(), leaf.type());
  }

  Expr Rebuilt(const Expr& e, const std::function<Expr(const Expr&)>& write) {
    std::vector<Expr> args;
    bool changed = false;
    for (const Expr& a : e.args()) {
      args.push_back(write(a));
      changed |= args.back().id() != a.id();
    }
    if (e.op() == ScalarOp::kCast) {
      bool narrower = IsFloat(e.type()) && IsFloat(args[0].type()) &&
                      DTypeBytes(e.type()) < DTypeBytes(args[0].type()) && !IsNarrowFloat(e.type());
      bool kept = narrower && leaves_.HasState(args[0]) && leaves_.HasSlice(args[0]) &&
                  leaves_.rules().Has(AlgebraRule::kUnrounded);
      return kept ? args[0] : changed ? Expr::Cast(args[0], e.type()) : e;
    }
    if (!changed) return e;
    DType widest = DType::kBool;
    for (const Expr& a : args) {
      bool wider =
          IsFloat(a.type()) && (!IsFloat(widest) || DTypeBytes(a.type()) > DTypeBytes(widest));
      if (wider) widest = a.type();
    }
    for (Expr& a : args) {
      if (IsFloat(a.type())) a = Expr::Cast(a, widest);
    }
    return e.WithArgs(std::move(args));
  }

  Expr StateLeaf(int op, const std::string& monoid, const Expr& element, bool updated) {
    return build_.OpLeaf({.kind = Leaf::kState,
                          .element = element,
                          .monoid = monoid,
                          .updated = updated,
                          .points = build_.PointsFolded(op)},
                         op, element.type());
  }

  // ---- reductions that depend on others ----

  bool Derive(int i) {
    form_[At(i)] = kState;
    const std::string& monoid = smg_.op(i).reduce->name();
    if (monoid == "sum") return DeriveSum(i);
    if (monoid == "max" || monoid == "min") return DeriveExtremum(i);
    return No(RefusalCode::kMonoid, OpName(smg_, i), " folds by ", monoid,
              " what depends on a partial result");
  }

  bool NotSeparable(int i) {
    const Refusal& why = separator_.obstacle();
    bool known = !why.empty();
    return No(known ? why.code : RefusalCode::kNotSeparable,
              known ? why.words : "no law takes it apart", "; in ", OpName(smg_, i), " along ",
              smg_.dim(dim_).name);
  }

  // From a maximum or minimum, non-negative factors are factored out. Addends are not: if one is
  // infinite, elements of the opposite infinity give NaN, which the extremum of the rest lacks.
  bool DeriveExtremum(int i) {
    std::vector<Term> terms = separator_.Separate(composite_[At(i)]);
    if (terms.size() != 1 || !terms[0].running.empty() || !terms[0].HasRest()) {
      return NotSeparable(i);
    }
    for (const Expr& f : terms[0].factors) {
      bool usable = leaves_.rules().Has(AlgebraRule::kPositiveFactor) && leaves_.IsNonNegative(f);
      if (!usable) return NotSeparable(i);
    }
    const Expr& rest = terms[0].rest;
    if (leaves_.HasState(rest)) {
      if (separator_.SeparateSum(rest).mixed) return NotSeparable(i);
      return No(RefusalCode::kInfinities, "a ", smg_.op(i).reduce->name(),
                " of sums may be NaN where the sum of the two is not; in ", OpName(smg_, i),
                " along ", smg_.dim(dim_).name);
    }
    int at = build_.Reduction(i, rest);
    Touches(at, *smg_.op(i).reduce, rest);
    Expr state = StateLeaf(at, smg_.op(i).reduce->name(), rest, false);
    Expr whole = state;
    for (const Expr& f : terms[0].factors) whole = whole * f;
    certificate_.push_back(StrCat(OpName(smg_, i), ": ", smg_.op(i).reduce->name(), " of ",
                                  build_.Text(rest), ", then ", build_.Text(whole)));
    if (terms[0].factors.empty() && state.type() == smg_.op(i).value.type()) {
      return Close(i, whole, at);
    }
    loose_ = true;
    certificate_.push_back(StrCat(OpName(smg_, i),
                                  ": where a factor is 0 or infinite, an element that would be NaN "
                                  "may not be seen"));
    if (!Close(i, WherePresent(i, terms[0], state, whole), -1)) return false;
    return Known(i, whole);
  }

  bool DeriveSum(int i) {
    DType type = composite_[At(i)].type();
    std::vector<Term> terms = separator_.Separate(composite_[At(i)]);
    if (terms.size() > 1 && !leaves_.rules().Has(AlgebraRule::kSeparateSums)) {
      return NotSeparable(i);
    }
    if (terms.size() > 1) {
      loose_ = true;
      certificate_.push_back(StrCat(OpName(smg_, i), ": taken apart into ", terms.size(),
                                    " sums; where a factor of both is infinite the result may be "
                                    "NaN"));
    }
    Expr closed;  // without corrections, which are 1 if everything is finite
    Expr whole;
    int alone = -1;
    for (const Term& term : terms) {
      Expr state;
      Expr rest = term.HasRest() ? term.rest : Expr::Const(type, 1);
      if (!MakeStates(i, rest, term.running, &state)) return false;
      Expr product = state;
      for (const Expr& f : term.factors) product = product * f;
      std::vector<Expr> factors = term.factors;
      if (!term.running.empty()) factors.push_back(build_.Correction(term.running));
      Expr scaled = WherePresent(i, term, state, build_.Scaled(state, factors));
      closed = closed.empty() ? product : closed + product;
      whole = whole.empty() ? scaled : whole + scaled;
      bool result =
          term.factors.empty() && term.running.empty() && state.type() == smg_.op(i).value.type();
      if (terms.size() == 1 && result) {
        alone = build_.OpOfLeaf(state);
      }
      Certify(i, rest, term);
    }
    if (!Close(i, whole, alone)) return false;
    return Known(i, closed);
  }

  // Ops that depend on op i see its value as `closed`.
  bool Known(int i, Expr closed) {
    closed = Expr::Cast(closed, smg_.op(i).value.type());
    composite_[At(i)] = closed;
    build_.AnchorLate(closed, build_.OpOf(i));
    return true;
  }

  // `scaled` where an element was accumulated; `state` unchanged where a mask hid all elements, so
  // that infinite factors do not matter there.
  Expr WherePresent(int i, const Term& term, const Expr& state, const Expr& scaled) {
    bool everywhere = term.present.empty() || (term.factors.empty() && term.running.empty());
    if (everywhere) return scaled;
    const Monoid& monoid = *smg_.op(i).reduce;
    DType type = composite_[At(i)].type();
    Expr zero = Expr::Const(type, 0);
    bool least = monoid.name() == "min";
    Expr there = Expr::Select(term.present, Expr::Const(type, least ? -1 : 1), zero);
    int at = build_.Reduction(i, there);
    Touches(at, monoid, there);
    Expr seen = StateLeaf(at, monoid.name(), there, false);
    zero = Expr::Const(seen.type(), 0);
    Expr any = Expr::Binary(least ? ScalarOp::kLt : ScalarOp::kGt, seen, zero);
    return Expr::Select(any, scaled, Expr::Cast(state, scaled.type()));
  }

  // Emits op i's result from its states. `alone`: the state that is the result; -1: none is.
  bool Close(int i, Expr whole, int alone) {
    if (alone >= 0) {
      build_.Adopt(i, alone);
    } else {
      whole = Expr::Cast(whole, smg_.op(i).value.type());
      build_.FinishOp(i, whole);
    }
    composite_[At(i)] = whole;
    build_.AnchorLate(whole, build_.OpOf(i));
    return true;
  }

  // Adds the states for the sum of `rest` over op i's reduced dims, with their updates. `state`
  // receives the main one.
  bool MakeStates(int i, Expr rest, const std::vector<int>& running, Expr* state) {
    for (int r : running) {
      if (!build_.Follow(r)) {
        return No(RefusalCode::kNotTotal,
                  "a factor between tiles has no value before the first one; in ", OpName(smg_, i),
                  " along ", smg_.dim(dim_).name);
      }
    }
    std::vector<int> centres;
    if (build_.HasPlainState(rest)) {
      if (!leaves_.rules().Has(AlgebraRule::kShift)) return NotSeparable(i);
      rest = build_.TakeCentres(rest, &centres);
      if (build_.HasPlainState(rest)) return NotSeparable(i);
      loose_ = true;
      certificate_.push_back(StrCat(OpName(smg_, i),
                                    ": moves with its centre from tile to tile; "
                                    "where another factor is infinite the result may be NaN"));
      needed_ = Region();  // every tile counts
      soft_ = Region();
    }
    std::vector<StreamBuilder::Moment> moments;
    if (!Moments(rest, centres, &moments)) return NotSeparable(i);
    if (!centres.empty() && !CanFollow(rest, centres, Curved(centres, moments), &leaves_)) {
      return No(RefusalCode::kUnboundedError, "nothing bounds the digits that ", OpName(smg_, i),
                " loses while its centre moves along ", smg_.dim(dim_).name);
    }
    for (StreamBuilder::Moment& m : moments) {
      m.op = build_.Reduction(i, m.rest);
      Touches(m.op, *smg_.op(i).reduce, m.rest);
      bool updated = !running.empty() || !centres.empty();
      Expr leaf = StateLeaf(m.op, "sum", m.rest, updated);
      if (state->empty()) *state = leaf;
    }
    if (!running.empty() || !centres.empty()) {
      build_.Updates(i, moments, running, centres);
      updates_ = true;
    }
    return true;
  }

  // Centres that occur in terms of a degree above 1.
  static std::vector<int> Curved(const std::vector<int>& centres,
                                 const std::vector<StreamBuilder::Moment>& moments) {
    std::vector<int> curved;
    for (size_t c = 0; c < centres.size(); ++c) {
      bool above = std::any_of(moments.begin(), moments.end(), [&](const auto& m) {
        return m.orders[c] > 0 && std::accumulate(m.orders.begin(), m.orders.end(), 0) > 1;
      });
      if (above) curved.push_back(centres[c]);
    }
    return curved;
  }

  // The derivatives of `rest` by the centres, each divided by the factorials of its orders: the
  // sums that say how the sum of `rest` changes with the centres. Lowest orders first.
  bool Moments(const Expr& rest, const std::vector<int>& centres,
               std::vector<StreamBuilder::Moment>* out) {
    out->push_back({.orders = std::vector<int>(centres.size(), 0), .rest = rest});
    for (size_t at = 0; at < out->size(); ++at) {
      for (size_t c = 0; c < centres.size(); ++c) {
        // Each combination of orders once: a later centre never before an earlier one.
        std::vector<int> orders = (*out)[at].orders;
        bool later = std::any_of(orders.begin() + static_cast<std::ptrdiff_t>(c) + 1, orders.end(),
                                 [](int o) { return o > 0; });
        if (later) continue;
        ++orders[c];
        Expr d = Derivative((*out)[at].rest, centres[c]);
        if (d.empty()) return false;
        if (d.IsConst(0)) continue;
        if (orders[c] > kMostDegree || out->size() == kMostStates) return false;
        if (orders[c] > 1) d = d * Expr::Const(d.type(), 1.0 / orders[c]);
        out->push_back({.orders = std::move(orders), .rest = d});
      }
    }
    return true;
  }

  void Certify(int i, const Expr& rest, const Term& term) {
    std::string line = StrCat(OpName(smg_, i), ": sum of ", build_.Text(rest));
    for (const Expr& f : term.factors) line += StrCat(", times ", build_.Text(f), " at the end");
    for (int r : term.running) {
      line += StrCat(", times e^(new - old) of ", build_.Text(leaves_.leaf(r).element),
                     " at each tile: at most 1, since it falls; before the first tile clamped to "
                     "finite numbers");
    }
    certificate_.push_back(std::move(line));
  }

  const Smg& smg_;
  const std::vector<ValueId>& outputs_;
  DimId dim_;
  Leaves leaves_;
  Separator separator_;
  StreamBuilder build_;
  bool reduces_ = false;
  bool updates_ = false;
  bool loose_ = false;
  std::vector<Form> form_;
  std::vector<Expr> composite_;  // kState: over states; kMixed: over slices and states
  std::vector<std::string> certificate_;
  Refusal refusal_;
  std::optional<Region> needed_;
  std::optional<Region> soft_;                   // the same for finite masks, provided that
  std::vector<std::pair<int, double>> running_;  // ... these exponents (leaves) are at most this
  std::vector<std::pair<int, double>> least_;    // ... these partial maxima (ops) at least this
};

}  // namespace

Streamed StreamAlong(const Smg& smg, const std::vector<ValueId>& outputs, DimId dim,
                     const AlgebraRules& rules) {
  // Dims that read the same input at the same indices are streamed together if that has a form.
  std::optional<Smg> together = WithCompanions(smg, dim);
  if (together.has_value()) {
    Streamed united = Streamer(*together, outputs, dim, rules).Run();
    if (united.kind != Streamed::kRefused) {
      united.rewritten = true;
      return united;
    }
    Streamed apart = Streamer(smg, outputs, dim, rules).Run();
    apart.apart = std::move(united.refusal);
    return apart;
  }
  return Streamer(smg, outputs, dim, rules).Run();
}

}  // namespace fusion
