#include "core/op/body/scalar_decisions.h"

#include <cmath>

namespace fusion {
namespace {

using Keeps = ShapeDecision::Keeps;

// True if the difference of the arguments decides, for integers as for floats.
bool AddOrder(ScalarOp op, double a, double b, DecisionLog* log) {
  switch (op) {
    case ScalarOp::kEq:
    case ScalarOp::kNe:
      log->Add(Keeps::kZero, a - b);
      return true;
    case ScalarOp::kLt:
    case ScalarOp::kGe:
      log->Add(Keeps::kNegative, a - b);
      return true;
    case ScalarOp::kGt:
    case ScalarOp::kLe:
      log->Add(Keeps::kNegative, b - a);
      return true;
    case ScalarOp::kMax:
    case ScalarOp::kMin:
      log->Add(Keeps::kOrder, a - b);
      return true;
    case ScalarOp::kAbs:
      log->Add(Keeps::kOrder, a);
      return true;
    case ScalarOp::kSign:
      log->Add(Keeps::kNegative, a);
      log->Add(Keeps::kZero, a);
      return true;
    default:
      return false;
  }
}

}  // namespace

bool Decides(const Expr& e) {
  switch (e.op()) {
    case ScalarOp::kEq:
    case ScalarOp::kNe:
    case ScalarOp::kLt:
    case ScalarOp::kLe:
    case ScalarOp::kGt:
    case ScalarOp::kGe:
    case ScalarOp::kMax:
    case ScalarOp::kMin:
    case ScalarOp::kAbs:
    case ScalarOp::kSign:
    case ScalarOp::kFloor:
    case ScalarOp::kCeil:
    case ScalarOp::kRound:
    case ScalarOp::kMod:
    case ScalarOp::kIsNan:
    case ScalarOp::kIsInf:
    case ScalarOp::kBitAnd:
    case ScalarOp::kBitOr:
    case ScalarOp::kBitXor:
    case ScalarOp::kBitCast:
      return true;
    case ScalarOp::kDiv:
    case ScalarOp::kPow:
      return !IsFloat(e.type());
    case ScalarOp::kCast:
      return e.type() == DType::kBool || (IsFloat(e.arg(0).type()) && !IsFloat(e.type()));
    default:
      return false;
  }
}

void AddRealDecision(ScalarOp op, DType to, double a, double b, DecisionLog* log) {
  if (AddOrder(op, a, b, log)) return;
  switch (op) {
    case ScalarOp::kFloor:
    case ScalarOp::kCeil:
    case ScalarOp::kRound:
      return log->Add(Keeps::kForm, a - EvaluateReal(op, a, 0));
    case ScalarOp::kMod:
      log->Add(Keeps::kNumber, b);
      log->Add(Keeps::kNegative, a);
      return log->Add(Keeps::kForm, std::fmod(a, b));
    case ScalarOp::kCast:
      if (to == DType::kBool) return log->Add(Keeps::kZero, a);
      log->Add(Keeps::kNegative, a);
      return log->Add(Keeps::kForm, a - std::trunc(a));
    case ScalarOp::kBitCast:
      return log->Add(Keeps::kNumber, a);
    default:  // kIsNan, kIsInf
      return log->Add(Keeps::kNumber, EvaluatePredicate(op, a, 0) ? 1 : 0);
  }
}

void AddIntegerDecision(ScalarOp op, int64_t a, int64_t b, DecisionLog* log) {
  if (AddOrder(op, static_cast<double>(a), static_cast<double>(b), log)) return;
  switch (op) {
    case ScalarOp::kDiv:
    case ScalarOp::kMod:
      // quotient * b + rest == a: with one divisor and one form of the rest, the quotient has one.
      log->Add(Keeps::kNumber, static_cast<double>(b));
      log->Add(Keeps::kNegative, static_cast<double>(a));
      return log->Add(Keeps::kForm, b == 0 || b == -1 ? 0 : static_cast<double>(a % b));
    case ScalarOp::kCast:  // to bool
      return log->Add(Keeps::kZero, static_cast<double>(a));
    case ScalarOp::kPow:
      if (b < 0) log->Add(Keeps::kNumber, static_cast<double>(a));
      return log->Add(Keeps::kNumber, static_cast<double>(b));
    default:  // bits
      log->Add(Keeps::kNumber, static_cast<double>(a));
      return log->Add(Keeps::kNumber, static_cast<double>(b));
  }
}

}  // namespace fusion
