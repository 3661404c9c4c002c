#include "core/algebra/separate.h"

namespace fusion {
namespace {

class Differentiator {
 public:
  explicit Differentiator(int leaf) : leaf_(leaf) {}

  // Of `e`; empty if there is none. Zeros are constants.
  Expr Of(const Expr& e) {
    auto known = known_.find(e.id());
    if (known != known_.end()) return known->second;
    Expr d = Uses(e) ? Rule(e) : Zero(e.type());
    known_.emplace(e.id(), d);
    return d;
  }

 private:
  static Expr Zero(DType type) { return Expr::Const(type, 0); }
  static Expr Times(const Expr& a, const Expr& b) {
    if (a.IsConst(0) || b.IsConst(0)) return Zero(a.type());
    return a.IsConst(1) ? b : b.IsConst(1) ? a : a * b;
  }
  static Expr Plus(const Expr& a, const Expr& b) {
    return a.IsConst(0) ? b : b.IsConst(0) ? a : a + b;
  }
  static Expr Negative(const Expr& a) {
    if (a.op() == ScalarOp::kConst) return Expr::Const(a.type(), -a.value());
    return Expr::Unary(ScalarOp::kNeg, a);
  }

  bool Uses(const Expr& e) {
    auto known = uses_.find(e.id());
    if (known != uses_.end()) return known->second;
    bool uses = e.op() == ScalarOp::kInput && e.index() == leaf_;
    for (const Expr& a : e.args()) uses = Uses(a) || uses;
    uses_.emplace(e.id(), uses);
    return uses;
  }

  Expr Rule(const Expr& e) {
    std::vector<Expr> d;
    bool condition = e.op() == ScalarOp::kSelect;
    for (size_t i = 0; i < e.args().size(); ++i) {
      if (condition && i == 0) {
        if (Uses(e.arg(0))) return {};
        d.emplace_back();
        continue;
      }
      if (!IsFloat(e.args()[i].type())) return {};
      d.push_back(Of(e.args()[i]));
      if (d.back().empty()) return {};
    }
    switch (e.op()) {
      case ScalarOp::kInput:
        return Expr::Const(e.type(), 1);
      case ScalarOp::kAdd:
        return Plus(d[0], d[1]);
      case ScalarOp::kSub:
        return d[1].IsConst(0) ? d[0] : d[0].IsConst(0) ? Negative(d[1]) : d[0] - d[1];
      case ScalarOp::kNeg:
        return Negative(d[0]);
      case ScalarOp::kMul:
        return Plus(Times(d[0], e.arg(1)), Times(e.arg(0), d[1]));
      case ScalarOp::kDiv:
        return d[1].IsConst(0) ? d[0] / e.arg(1) : Expr();
      case ScalarOp::kSelect:
        return Expr::Select(e.arg(0), d[1], d[2]);
      case ScalarOp::kPow: {
        const Expr& power = e.arg(1);
        bool whole = power.op() == ScalarOp::kConst && power.value() >= 1 && power.value() <= 8 &&
                     power.value() == static_cast<int>(power.value());
        if (!whole) return {};
        Expr lower =
            Expr::Binary(ScalarOp::kPow, e.arg(0), Expr::Const(e.type(), power.value() - 1));
        if (power.IsConst(1)) lower = Expr::Const(e.type(), 1);
        if (power.IsConst(2)) lower = e.arg(0);
        return Times(Times(power, lower), d[0]);
      }
      default:
        return {};
    }
  }

  int leaf_;
  std::unordered_map<const void*, bool> uses_;
  std::unordered_map<const void*, Expr> known_;
};

}  // namespace

Expr Derivative(const Expr& e, int leaf) { return Differentiator(leaf).Of(e); }

}  // namespace fusion
