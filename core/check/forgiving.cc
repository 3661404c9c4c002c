#include "core/check/forgiving.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

namespace fusion {
namespace {

// `wanted`, with the elements i of `got` for which forgives(i).
HostTensor ForgivingWhere(const HostTensor& wanted, const HostTensor& got,
                          const std::function<bool(int64_t i)>& forgives) {
  HostTensor out = wanted;
  for (int64_t i = 0; i < std::min(wanted.elements(), got.elements()); ++i) {
    if (!forgives(i)) continue;
    if (IsFloat(wanted.dtype())) {
      out.SetDouble(i, got.GetDouble(i));
    } else {
      out.SetInt(i, got.GetInt(i));
    }
  }
  return out;
}

// The op that computes `v`, looking through reinterpretations; null if `v` is an input.
const LoopOp* ComputerOf(const Program& program, ValueId v) {
  for (LoopId l = program.value(v).producer; l != kNoLoop; l = program.value(v).producer) {
    const LoopOp& op = program.op(l);
    if (op.kind == LoopOp::kLoop) return &op;
    v = op.inputs[0];
  }
  return nullptr;
}

// The same program, but reads of a float element x that was computed by an op with of(op) give
// instead(x).
Program WithReadsAs(Program program, const std::function<bool(const LoopOp& op)>& of,
                    const std::function<Expr(const Expr& x)>& instead) {
  for (LoopOp& op : program.ops) {
    if (op.kind != LoopOp::kLoop) continue;
    op.body.value = op.body.value.MapLeaves([&](const Expr& leaf) {
      if (leaf.op() != ScalarOp::kInput || !IsFloat(leaf.type())) return leaf;
      const LoopOp* from = ComputerOf(program, op.inputs[static_cast<size_t>(leaf.index())]);
      return from != nullptr && of(*from) ? instead(leaf) : leaf;
    });
  }
  return program;
}

bool IsSum(const LoopOp& op) { return op.body.reduce && op.body.reduce->name() == "sum"; }

// The unit in the last place of 1.
double UnitOf(DType type) {
  double unit = 0.5;
  while (RoundTo(type, 1 + unit) > 1) unit /= 2;
  return 2 * unit;
}

bool IsNaN(const HostTensor& tensor, int64_t element) {
  return IsFloat(tensor.dtype()) && std::isnan(tensor.GetDouble(element));
}

}  // namespace

HostTensor ForgivingNaN(const HostTensor& wanted, const HostTensor& got) {
  return ForgivingWhere(wanted, got, [&](int64_t i) { return IsNaN(wanted, i); });
}

HostTensor ForgivingDoubtful(const HostTensor& wanted, const HostTensor& got,
                             const HostTensor& doubtful) {
  return ForgivingWhere(wanted, got,
                        [&](int64_t i) { return !std::isfinite(doubtful.GetDouble(i)); });
}

HostTensor ForgivingWhereEqual(const HostTensor& wanted, const HostTensor& got,
                               const HostTensor& before, const HostTensor& after) {
  return ForgivingWhere(wanted, got, [&](int64_t i) {
    if (!IsFloat(wanted.dtype())) return before.GetInt(i) == after.GetInt(i);
    return IsNaN(wanted, i) && before.GetDouble(i) == after.GetDouble(i);
  });
}

HostTensor ForgivingUnlikeInfinities(const HostTensor& wanted, const HostTensor& got,
                                     const HostTensor& before, const HostTensor& after) {
  return ForgivingWhere(wanted, got, [&](int64_t i) {
    const double x = before.GetDouble(i);
    const double y = after.GetDouble(i);
    const bool alike = x == y || (std::isnan(x) && std::isnan(y));
    return !std::isfinite(wanted.GetDouble(i)) && !std::isfinite(got.GetDouble(i)) && !alike;
  });
}

Program WithInfiniteSumsUnknown(Program program) {
  return WithReadsAs(std::move(program), IsSum,
                     [](const Expr& sum) { return sum + sum * Expr::Const(sum.type(), 0); });
}

Program WithSumsMoved(Program program, int places) {
  return WithReadsAs(std::move(program), IsSum, [places](const Expr& sum) {
    return sum * Expr::Const(sum.type(), 1 + places * UnitOf(sum.type()));
  });
}

Program WithUnderflowAsZero(Program program) {
  auto any = [](const LoopOp&) { return true; };
  return WithReadsAs(std::move(program), any, [](const Expr& x) {
    // Kernels compute 16-bit types in f32.
    const double least = x.type() == DType::kF64 ? std::numeric_limits<double>::min()
                                                 : std::numeric_limits<float>::min();
    const Expr small =
        Expr::Binary(ScalarOp::kLt, Expr::Unary(ScalarOp::kAbs, x), Expr::Const(x.type(), least));
    return Expr::Select(small, Expr::Const(x.type(), 0), x);
  });
}

}  // namespace fusion
