#include "core/check/forgiving.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace fusion {
namespace {

// `wanted`, with what `got` has where forgives(i).
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

// The op that computes `v`, looking through reinterpretations; null if it is passed in.
const LoopOp* ComputerOf(const Program& program, ValueId v) {
  for (LoopId l = program.value(v).producer; l != kNoLoop; l = program.value(v).producer) {
    const LoopOp& op = program.op(l);
    if (op.kind == LoopOp::kLoop) return &op;
    v = op.inputs[0];
  }
  return nullptr;
}

// The same program, which reads instead(s) wherever it reads the element s of a sum of floats.
Program WithSumsAs(Program program, const std::function<Expr(const Expr& sum)>& instead) {
  for (LoopOp& op : program.ops) {
    if (op.kind != LoopOp::kLoop) continue;
    op.body.value = op.body.value.MapLeaves([&](const Expr& leaf) {
      if (leaf.op() != ScalarOp::kInput || !IsFloat(leaf.type())) return leaf;
      const LoopOp* from = ComputerOf(program, op.inputs[static_cast<size_t>(leaf.index())]);
      const bool sum = from != nullptr && from->body.reduce && from->body.reduce->name() == "sum";
      return sum ? instead(leaf) : leaf;
    });
  }
  return program;
}

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
  return WithSumsAs(std::move(program),
                    [](const Expr& sum) { return sum + sum * Expr::Const(sum.type(), 0); });
}

Program WithSumsMoved(Program program, int places) {
  return WithSumsAs(std::move(program), [places](const Expr& sum) {
    return sum * Expr::Const(sum.type(), 1 + places * UnitOf(sum.type()));
  });
}

}  // namespace fusion
