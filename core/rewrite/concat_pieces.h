#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "core/graph/program/program.h"

namespace fusion {

/// A concatenation of more pieces is not recognised (PiecesOf).
inline constexpr size_t kMostConcatPieces = 32;

/// The part [begin, end) of an axis.
struct AxisSpan {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t length() const { return end - begin; }
};

/// An expression that equals pieces[i] where `axis` is in spans[i], and the last piece outside of
/// all spans. One piece per span, at least one. Spans are adjacent and ascending.
Expr ChosenBySpan(int axis, const std::vector<AxisSpan>& spans, const std::vector<Expr>& pieces);

/// As ChosenBySpan, but subexpressions that the pieces have in common occur once. `spans`, and all
/// pieces passed to Of, must outlive it: its memo table compares their addresses (Expr::id).
class CommonForm {
 public:
  CommonForm(int axis, const std::vector<AxisSpan>& spans) : axis_(axis), spans_(spans) {}

  Expr Of(const std::vector<Expr>& pieces) {
    std::vector<const void*> ids;
    for (const Expr& e : pieces) ids.push_back(e.id());
    auto known = known_.find(ids);
    if (known == known_.end()) known = known_.emplace(std::move(ids), Find(pieces)).first;
    return known->second;
  }

 private:
  Expr Find(const std::vector<Expr>& pieces) {
    const Expr& first = pieces[0];
    const auto all = [&](const auto& holds) {
      return std::all_of(pieces.begin() + 1, pieces.end(), holds);
    };
    if (all([&](const Expr& e) { return e == first; })) return first;
    if (first.args().empty() || !all([&](const Expr& e) { return AreAlike(e, first); })) {
      return ChosenBySpan(axis_, spans_, pieces);
    }
    std::vector<Expr> args;
    for (size_t a = 0; a < first.args().size(); ++a) {
      std::vector<Expr> of_pieces;
      for (const Expr& e : pieces) of_pieces.push_back(e.args()[a]);
      args.push_back(Of(of_pieces));
    }
    return first.WithArgs(std::move(args));
  }

  // The same function of arguments of the same types.
  static bool AreAlike(const Expr& a, const Expr& b) {
    return a.op() == b.op() && a.type() == b.type() &&
           std::equal(a.args().begin(), a.args().end(), b.args().begin(), b.args().end(),
                      [](const Expr& x, const Expr& y) { return x.type() == y.type(); });
  }

  const int axis_;
  const std::vector<AxisSpan>& spans_;
  std::map<std::vector<const void*>, Expr> known_;
};

/// An op that concatenates its inputs along `axis`. reads[i], a read of the op, gives the piece in
/// spans[i]. Spans begin at 0 and cover the axis.
struct ConcatPieces {
  int axis = -1;
  std::vector<AxisSpan> spans;
  std::vector<size_t> reads;
};

/// The read that `value`, a choice between spans of `axis`, equals everywhere in `span`; -1: there
/// is no single one.
int ReadWithin(const Expr& value, int axis, const AxisSpan& span);

/// The pieces of an op that only concatenates its inputs; nullopt for any other op.
std::optional<ConcatPieces> PiecesOf(const LoopOp& op);

/// Whether the index depends on the elements of a tensor.
bool ReadsIndirectly(const Read& read);

/// Whether the index depends on `axis`.
bool NamesAxis(const Read& read, int axis);

/// The index with `by` added to `axis`.
IndexMap MovedAlong(const IndexMap& index, int axis, int64_t by);

/// Whether each output dim is an axis or has one element.
bool WritesPlainly(const LoopBody& body);

}  // namespace fusion
