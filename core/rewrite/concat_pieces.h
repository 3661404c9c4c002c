#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "core/graph/program/program.h"

namespace fusion {

inline constexpr size_t kMostConcatPieces = 32;

/// A part of an axis.
struct AxisSpan {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t length() const { return end - begin; }
};

/// Leaves pieces[i] where `axis` lies in spans[i], which follow each other.
Expr ChosenBySpan(int axis, const std::vector<AxisSpan>& spans, const std::vector<Expr>& pieces);

/// ChosenBySpan, with what the pieces have in common written once.
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

/// An op that puts its inputs one behind the other: reads[i] is that of the i-th piece.
struct ConcatPieces {
  int axis = -1;
  std::vector<AxisSpan> spans;
  std::vector<size_t> reads;
};

/// Which read `value` is where `axis` lies in `span`; -1: not one alone.
int ReadWithin(const Expr& value, int axis, const AxisSpan& span);

/// The pieces of an op that does nothing but put its inputs one behind the other.
std::optional<ConcatPieces> PiecesOf(const LoopOp& op);

/// Whether an index that a tensor holds decides what is read.
bool ReadsIndirectly(const Read& read);

/// Whether the place that is read depends on `axis`.
bool NamesAxis(const Read& read, int axis);

/// The index with `by` added to an axis.
IndexMap MovedAlong(const IndexMap& index, int axis, int64_t by);

/// Whether each dim of the result is an axis, or of one element.
bool WritesPlainly(const LoopBody& body);

}  // namespace fusion
