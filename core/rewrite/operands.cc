#include "core/rewrite/operands.h"

#include <algorithm>

namespace fusion {
namespace {

bool IsPlain(const IndexMap& index) {
  for (size_t d = 0; d < index.size(); ++d) {
    if (!(index[d] == IndexExpr::Axis(static_cast<int>(d)))) return false;
  }
  return true;
}

bool IsWritten(const LoopBody& body, int axis) {
  return std::any_of(body.write.begin(), body.write.end(),
                     [axis](const IndexExpr& e) { return e.CoefficientOf(axis) != 0; });
}

}  // namespace

const LoopOp* ElementwiseOf(const Program& program, ValueId value) {
  const LoopId producer = program.value(value).producer;
  if (producer == kNoLoop) return nullptr;
  const LoopOp& op = program.op(producer);
  const bool plain = op.kind == LoopOp::kLoop && !op.body.reduce && IsPlain(op.body.write);
  return plain ? &op : nullptr;
}

std::optional<IndexMap> OverOutput(const LoopBody& body, size_t read, const IndexMap& index) {
  IndexMap out;
  for (const IndexExpr& e : index) {
    IndexExpr moved(e.constant());
    if (e.indirect() >= 0) return std::nullopt;
    for (const IndexExpr::Term& t : e.terms()) {
      const IndexExpr& of_dim = body.reads[read].index[static_cast<size_t>(t.axis)];
      if (of_dim.IsConstant()) {
        moved = moved + IndexExpr(t.coefficient * of_dim.constant());
        continue;
      }
      if (!of_dim.IsPlainAxis()) return std::nullopt;
      const IndexExpr axis = IndexExpr::Axis(of_dim.terms()[0].axis);
      const auto dim = std::find(body.write.begin(), body.write.end(), axis);
      if (dim == body.write.end()) return std::nullopt;
      moved = moved + IndexExpr::Axis(static_cast<int>(dim - body.write.begin()), t.coefficient);
    }
    out.push_back(std::move(moved));
  }
  return out;
}

int SummedAxis(const LoopBody& body, const IndexExpr& index) {
  if (!index.IsPlainAxis()) return -1;
  const int axis = index.terms()[0].axis;
  return IsWritten(body, axis) ? -1 : axis;
}

bool SlidesWindows(const LoopBody& body, const IndexMap& index) {
  return std::any_of(index.begin(), index.end(), [&](const IndexExpr& e) {
    return e.terms().size() > 1 &&
           std::any_of(e.terms().begin(), e.terms().end(),
                       [&](const IndexExpr::Term& t) { return IsWritten(body, t.axis); });
  });
}

}  // namespace fusion
