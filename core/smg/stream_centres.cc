// The part of the builder that follows centres: means and extrema that a sum is taken about.
#include <algorithm>

#include "core/base/contains.h"
#include "core/smg/stream_builder.h"

namespace fusion {
namespace {

// f32 represents every integer up to here.
constexpr int64_t kMostCountedByF32 = int64_t{1} << 24;

double Binomial(int n, int k) {
  double out = 1;
  for (int i = 1; i <= k; ++i) out = out * (n - k + i) / i;
  return out;
}

// True if a condition decides the contribution of some elements.
bool HasSelect(const Expr& e) {
  bool found = false;
  e.VisitOnce([&](const Expr& n) { found |= n.op() == ScalarOp::kSelect; });
  return found;
}

}  // namespace

// Counts the coordinates of the dim seen so far, so that a sum over a part estimates the whole sum.
// The count's type represents every such number: after the last tile the share must be exactly 1.
void StreamBuilder::StartCount() {
  if (count_ >= 0) return;
  DType type = smg_.dim(dim_).extent <= kMostCountedByF32 ? DType::kF32 : DType::kF64;
  Expr one = Expr::Const(type, 1);
  SmgOp count{.label = "Count",
              .output = next_value_++,
              .dims = {dim_},
              .reduced = {dim_},
              .reads = {},
              .write = {},
              .value = one,
              .reduce = Monoid::Sum(type)};
  count_ = Append(std::move(count), {});
  Expr seen = Known(count_, type);
  Expr extent = Expr::Const(type, static_cast<double>(smg_.dim(dim_).extent));
  Expr ratio = extent / seen;
  ratio_now_ = Known(Emit(ratio, "Share", kInside, {}), type);
  ratio_before_ = Known(Emit(ratio, "Share", kInside, {.role = StreamRole::kBefore}), type);
  Expr none = Expr::Binary(ScalarOp::kEq, seen, Expr::Const(type, 0));
  is_first_ = Known(Emit(Expr::Select(none, one, Expr::Const(type, 0)), "First", kInside,
                         {.role = StreamRole::kBefore}),
                    type);
}

// Extrapolates sums over a part to sums over the whole.
Expr StreamBuilder::Extrapolated(const Expr& value, const Expr& ratio) {
  return Clamped(value).MapLeaves([&](const Expr& l) -> Expr {
    bool sum = l.op() == ScalarOp::kInput && leaves_.leaf(l.index()).kind == Leaf::kState &&
               leaves_.leaf(l.index()).monoid == "sum";
    if (!sum) return l;
    DType type = DTypeBytes(l.type()) < DTypeBytes(ratio.type()) ? ratio.type() : l.type();
    return Expr::Cast(Expr::Cast(l, type) * Expr::Cast(ratio, type), l.type());
  });
}

bool StreamBuilder::HasRunning(const Expr& e) const {
  bool found = false;
  e.VisitOnce([&](const Expr& n) {
    found |= n.op() == ScalarOp::kInput && leaves_.leaf(n.index()).kind == Leaf::kRunning;
  });
  return found;
}

// The leaf that follows `e`, an expression of states and values that do not change.
int StreamBuilder::CentreOf(const Expr& e) {
  for (const auto& [c, followed] : centres_) {
    if (leaves_.AreEqual(leaves_.leaf(c).element, e)) return c;
  }
  StartCount();
  Followed f;
  f.now = Emit(Extrapolated(e, ratio_now_), "Centre", kInside, {});
  f.before = Emit(Extrapolated(e, ratio_before_), "Before", kInside, {.role = StreamRole::kBefore});
  f.now_leaf = Known(f.now, e.type());
  f.before_leaf = Known(f.before, e.type());
  int leaf = OpLeaf({.kind = Leaf::kCentre, .element = e, .monoid = ""}, f.now, e.type()).index();
  centres_.emplace(leaf, std::move(f));
  return leaf;
}

Expr StreamBuilder::TakeCentres(const Expr& rest, std::vector<int>* centres) {
  std::unordered_map<const void*, Expr> done;
  std::function<Expr(const Expr&)> take = [&](const Expr& e) -> Expr {
    auto known = done.find(e.id());
    if (known != done.end()) return known->second;
    Expr out = e;
    if (!HasPlainState(e)) {
      // Nothing to follow.
    } else if (!leaves_.HasSlice(e) && !HasRunning(e) && IsFloat(e.type())) {
      int leaf = CentreOf(e);
      if (!Contains(*centres, leaf)) centres->push_back(leaf);
      out = Expr::Input(leaf, e.type());
    } else {
      // A leaf that is no float stays.
      std::vector<Expr> args;
      for (const Expr& a : e.args()) args.push_back(take(a));
      out = e.WithArgs(std::move(args));
    }
    done.emplace(e.id(), out);
    return out;
  };
  return take(rest);
}

// The change of a centre since the previous tile; 0 at the first tile.
Expr StreamBuilder::Delta(int centre) {
  auto known = deltas_.find(centre);
  if (known != deltas_.end()) return known->second;
  const Followed& f = centres_.at(centre);
  DType type = f.now_leaf.type();
  Expr first = Expr::Binary(ScalarOp::kNe, Expr::Cast(is_first_, type), Expr::Const(type, 0));
  Expr delta = Expr::Select(first, Expr::Const(type, 0), f.now_leaf - f.before_leaf);
  // If a mask hid all previous elements, the centre was 0 / 0 and was subtracted from nothing.
  Expr lowest = Expr::Const(type, LowestOf(type));
  Expr most = Expr::Const(type, -LowestOf(type));
  Expr finite = Expr::Binary(ScalarOp::kAnd, Expr::Binary(ScalarOp::kLe, f.before_leaf, most),
                             Expr::Binary(ScalarOp::kGe, f.before_leaf, lowest));
  delta = Expr::Select(finite, delta, Expr::Const(type, 0));
  Expr leaf = Known(Emit(delta, "Change", kInside, {}), type);
  deltas_.emplace(centre, leaf);
  return leaf;
}

void StreamBuilder::Updates(int i, const std::vector<Moment>& moments,
                            const std::vector<int>& running, const std::vector<int>& centres) {
  std::vector<Expr> states;
  for (const Moment& m : moments) states.push_back(Known(m.op, m.rest.type()));
  for (size_t a = 0; a < moments.size(); ++a) {
    Expr value = states[a];
    for (size_t b = a + 1; b < moments.size(); ++b) {
      double coefficient = 1;
      for (size_t c = 0; c < centres.size(); ++c) {
        int from = moments[a].orders[c];
        int to = moments[b].orders[c];
        coefficient = to < from ? 0 : coefficient * Binomial(to, from);
      }
      if (coefficient == 0) continue;
      Expr term = states[b];
      if (coefficient != 1) term = term * Expr::Const(term.type(), coefficient);
      for (size_t c = 0; c < centres.size(); ++c) {
        for (int k = moments[a].orders[c]; k < moments[b].orders[c]; ++k) {
          term = term * Expr::Cast(Delta(centres[c]), term.type());
        }
      }
      // If nothing accumulated depends on the centre, an infinite centre does not matter.
      if (HasSelect(moments[b].rest)) {
        const Expr zero = Expr::Const(term.type(), 0);
        term = Expr::Select(
            Expr::Binary(ScalarOp::kEq, states[b], Expr::Const(states[b].type(), 0)), zero, term);
      }
      value = value + term;
    }
    if (!running.empty()) value = value * Expr::Cast(Change(running), value.type());
    if (value == states[a]) continue;
    // Rounding must not take a sum of squares below 0, where a root would be NaN.
    if (!centres.empty() && leaves_.IsNonNegative(moments[a].rest)) {
      value = Expr::Binary(ScalarOp::kMax, value, Expr::Const(value.type(), 0));
    }
    Emit(value, "Update", kInside,
         {.role = StreamRole::kUpdate, .target = moments[a].op, .source = i});
  }
}

}  // namespace fusion
