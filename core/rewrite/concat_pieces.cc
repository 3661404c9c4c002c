#include "core/rewrite/concat_pieces.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "core/rewrite/inlined_reads.h"

namespace fusion {

Expr ChosenBySpan(int axis, const std::vector<AxisSpan>& spans, const std::vector<Expr>& pieces) {
  Expr out = pieces.back();
  for (size_t i = pieces.size() - 1; i-- > 0;) {
    out = Expr::Select(Expr::Within(axis, spans[0].begin, spans[i].end), pieces[i], out);
  }
  return out;
}

int ReadWithin(const Expr& value, int axis, const AxisSpan& span) {
  if (value.op() == ScalarOp::kInput) return value.index();
  if (value.op() != ScalarOp::kSelect) return -1;
  const Expr& within = value.arg(0);
  if (within.op() != ScalarOp::kWithin || within.index() != axis) return -1;
  const bool inside = within.integer() <= span.begin && span.end <= within.end();
  const bool outside = span.end <= within.integer() || within.end() <= span.begin;
  if (!inside && !outside) return -1;
  return ReadWithin(value.arg(inside ? 1 : 2), axis, span);
}

std::optional<ConcatPieces> PiecesOf(const LoopOp& op) {
  if (!IsMap(op) || op.inputs.size() < 2 || op.inputs.size() > kMostConcatPieces)
    return std::nullopt;
  const LoopBody& body = op.body;
  ConcatPieces out;
  for (size_t r = 0; r < op.inputs.size(); ++r) {
    if (body.reads[r].guards.size() != 1) return std::nullopt;
    const Guard& guard = body.reads[r].guards[0];
    if (out.axis >= 0 && guard.axis != out.axis) return std::nullopt;
    out.axis = guard.axis;
    out.reads.push_back(r);
  }
  const auto guard = [&](size_t r) -> const Guard& { return body.reads[r].guards[0]; };
  std::sort(out.reads.begin(), out.reads.end(),
            [&](size_t a, size_t b) { return guard(a).begin < guard(b).begin; });
  int64_t done = 0;
  for (size_t r : out.reads) {
    const AxisSpan span{guard(r).begin, guard(r).end};
    if (span.begin != done || span.length() <= 0) return std::nullopt;
    if (ReadWithin(body.value, out.axis, span) != static_cast<int>(r)) return std::nullopt;
    done = span.end;
    out.spans.push_back(span);
  }
  const Dim& extent = body.axes[static_cast<size_t>(out.axis)].extent;
  return extent == Dim(done) ? std::optional(out) : std::nullopt;
}

bool ReadsIndirectly(const Read& read) {
  return std::any_of(read.index.begin(), read.index.end(),
                     [](const IndexExpr& e) { return e.indirect() >= 0; });
}

bool NamesAxis(const Read& read, int axis) {
  return std::any_of(read.index.begin(), read.index.end(),
                     [axis](const IndexExpr& e) { return e.CoefficientOf(axis) != 0; });
}

IndexMap MovedAlong(const IndexMap& index, int axis, int64_t by) {
  IndexMap out;
  for (const IndexExpr& e : index) {
    out.push_back(e.Substitute([&](int a) {
      return a == axis ? IndexExpr::Axis(a) + IndexExpr(by) : IndexExpr::Axis(a);
    }));
  }
  return out;
}

bool WritesPlainly(const LoopBody& body) {
  return std::all_of(body.write.begin(), body.write.end(),
                     [](const IndexExpr& e) { return e.IsPlainAxis() || e == IndexExpr(0); });
}

}  // namespace fusion
