#include "core/smg/smg.h"

#include <algorithm>

#include "core/base/contains.h"

namespace fusion {
namespace {

// Dims of the data space an index map addresses, in order of appearance.
std::vector<DimId> DimsOf(const IndexMap& map) {
  std::vector<DimId> dims;
  for (const IndexExpr& e : map) {
    for (const IndexExpr::Term& t : e.terms()) {
      if (!Contains(dims, t.axis)) dims.push_back(t.axis);
    }
  }
  return dims;
}

// The padding that op `producer` adds along the dim that it writes at `digit`, from its guard on
// that dim.
void FindPadding(const Smg& smg, int producer, const IndexExpr& digit, SmgWindow* window) {
  if (producer < 0 || smg.op(producer).reduce || !digit.IsPlainAxis()) return;
  DimId d = digit.terms()[0].axis;
  for (const SmgRead& read : smg.op(producer).reads) {
    for (const Guard& g : read.guards) {
      if (g.axis != d) continue;
      window->pad_begin = std::max<int64_t>(g.begin, 0);
      window->pad_end = std::max<int64_t>(smg.dim(d).extent - g.end, 0);
    }
  }
}

// The window of index `i` of a read: one dim that the op keeps and one that it reduces.
std::optional<SmgMapping> WindowAt(const Smg& smg, const SmgOp& op, const SmgRead& read, size_t i) {
  const IndexExpr::Terms& terms = read.index[i].terms();
  if (read.index[i].indirect() >= 0 || terms.size() != 2) return std::nullopt;
  bool first_slides = !op.Reduces(terms[0].axis);
  if (first_slides == !op.Reduces(terms[1].axis)) return std::nullopt;
  const IndexExpr::Term& slides = terms[first_slides ? 0 : 1];
  const IndexExpr::Term& over = terms[first_slides ? 1 : 0];
  // Digits of one number are the factors of a merged dim, not a window.
  int64_t extent = smg.dim(over.axis).extent;
  bool digits = slides.coefficient == over.coefficient * extent ||
                over.coefficient == slides.coefficient * smg.dim(slides.axis).extent;
  bool number = digits && read.relation != SmgRead::kShifted;
  if (number || slides.coefficient < 1 || over.coefficient < 1) return std::nullopt;
  SmgMapping mapping{.kind = SmgMapping::kWindow, .value = read.value, .dim = slides.axis};
  mapping.window = {.over = over.axis,
                    .extent = extent,
                    .stride = slides.coefficient,
                    .dilation = over.coefficient};
  if (read.producer >= 0) {
    FindPadding(smg, read.producer, smg.op(read.producer).write[i], &mapping.window);
  }
  return mapping;
}

void ReadMappings(const Smg& smg, const SmgRead& read, int op_index, const SmgOp& op,
                  std::vector<SmgMapping>* out) {
  auto add = [&](SmgMapping::Kind kind, DimId dim) {
    out->push_back({.kind = kind, .value = read.value, .op = op_index, .dim = dim});
  };
  size_t before = out->size();
  std::vector<DimId> from = DimsOf(read.index);
  for (DimId d : op.dims) {
    if (!Contains(from, d)) add(SmgMapping::kOneToAll, d);
  }
  for (size_t i = 0; i < read.index.size(); ++i) {
    const IndexExpr& e = read.index[i];
    if (e.indirect() >= 0) add(SmgMapping::kIndexed, -1);
    if (std::optional<SmgMapping> window = WindowAt(smg, op, read, i)) {
      window->op = op_index;
      out->push_back(*std::move(window));
    }
    bool shifted = e.constant() != 0 || read.relation == SmgRead::kShifted;
    if (shifted && e.terms().size() == 1 && e.constant() != 0) {
      add(SmgMapping::kShift, e.terms()[0].axis);
    }
  }
  if (out->size() == before) add(SmgMapping::kOneToOne, -1);
}

void WriteMappings(int op_index, const SmgOp& op, std::vector<SmgMapping>* out) {
  if (op.reduced.empty()) {
    out->push_back(
        {.kind = SmgMapping::kOneToOne, .value = op.output, .op = op_index, .from_data = false});
  }
  for (DimId d : op.reduced) {
    out->push_back({.kind = SmgMapping::kAllToOne,
                    .value = op.output,
                    .op = op_index,
                    .from_data = false,
                    .dim = d,
                    .monoid = op.reduce ? op.reduce->name() : ""});
  }
}

}  // namespace

std::optional<std::vector<std::pair<DimId, IndexExpr>>> ProducerCoordinates(const Smg& smg,
                                                                            const SmgRead& read) {
  if (read.producer < 0 || read.relation == SmgRead::kAliased) return std::nullopt;
  const SmgOp& from = smg.op(read.producer);
  std::vector<std::pair<DimId, IndexExpr>> out;
  for (size_t d = 0; d < read.index.size(); ++d) {
    auto digits = from.write[d].terms();
    std::sort(digits.begin(), digits.end(), IndexExpr::MajorFirst);
    IndexExpr rest = read.index[d];
    if (rest.indirect() >= 0) return std::nullopt;
    for (const IndexExpr::Term& digit : digits) {
      // Terms, and the part of the constant, that are multiples of the digit's stride belong to the
      // digit.
      IndexExpr mine(0);
      IndexExpr minor(0);
      for (const IndexExpr::Term& t : rest.terms()) {
        bool whole = t.coefficient % digit.coefficient == 0;
        (whole ? mine : minor) +=
            IndexExpr::Axis(t.axis, whole ? t.coefficient / digit.coefficient : t.coefficient);
      }
      IndexRange range = RangeOf(
          minor + IndexExpr(rest.constant()),
          [&](DimId dim) {
            return IndexRange{0, smg.dim(dim).extent};
          },
          read.guards);
      if (range.empty()) return std::nullopt;
      int64_t low = range.begin;
      int64_t carry = low >= 0 ? low / digit.coefficient
                               : -((-low + digit.coefficient - 1) / digit.coefficient);
      if (range.end > (carry + 1) * digit.coefficient) return std::nullopt;
      out.emplace_back(digit.axis, mine + IndexExpr(carry));
      rest = minor + IndexExpr(rest.constant() - carry * digit.coefficient);
    }
    if (!rest.terms().empty() || (rest.constant() != 0 && !digits.empty())) return std::nullopt;
  }
  return out;
}

bool SmgOp::Has(DimId d) const { return Contains(dims, d); }
bool SmgOp::Reduces(DimId d) const { return Contains(reduced, d); }

std::vector<DimId> SmgOp::OutputDims() const {
  std::vector<DimId> out;
  out.reserve(dims.size());
  for (DimId d : dims) {
    if (!Reduces(d)) out.push_back(d);
  }
  return out;
}

std::string Smg::DimNames(const std::vector<DimId>& list) const {
  return StrJoin(list, ", ", [&](DimId d) { return dim(d).name; });
}

std::vector<SmgMapping> Mappings(const Smg& smg) {
  std::vector<SmgMapping> out;
  for (size_t i = 0; i < smg.ops.size(); ++i) {
    for (const SmgRead& read : smg.ops[i].reads) {
      ReadMappings(smg, read, static_cast<int>(i), smg.ops[i], &out);
    }
    WriteMappings(static_cast<int>(i), smg.ops[i], &out);
  }
  return out;
}

void RemoveDim(DimId gone, Smg* smg) {
  auto moved = [gone](DimId d) { return d > gone ? d - 1 : d; };
  auto move = [&](IndexMap* map) {
    for (IndexExpr& e : *map) {
      e = e.Substitute([&](int d) { return IndexExpr::Axis(moved(d)); });
    }
  };
  for (SmgOp& op : smg->ops) {
    for (std::vector<DimId>* list : {&op.dims, &op.reduced}) {
      std::erase(*list, gone);
      for (DimId& d : *list) d = moved(d);
    }
    for (SmgRead& read : op.reads) {
      for (Guard& g : read.guards) g.axis = moved(g.axis);
      move(&read.index);
    }
    move(&op.write);
    op.value = op.value.MapLeaves([&](const Expr& e) -> Expr {
      if (e.op() == ScalarOp::kAxis) return Expr::Axis(moved(e.index()));
      if (e.op() == ScalarOp::kWithin) return Expr::Within(moved(e.index()), e.integer(), e.end());
      return e;
    });
  }
  smg->dims.erase(smg->dims.begin() + gone);
}

}  // namespace fusion
