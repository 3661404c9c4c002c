#include "core/op/body/index_map.h"

#include <algorithm>

#include "core/base/threads/job.h"

namespace fusion {

IndexExpr::IndexExpr(const IndexExpr&) = default;
IndexExpr::IndexExpr(IndexExpr&&) noexcept = default;
IndexExpr& IndexExpr::operator=(const IndexExpr&) = default;
IndexExpr& IndexExpr::operator=(IndexExpr&&) noexcept = default;

IndexExpr IndexExpr::Axis(int axis, int64_t coefficient) {
  IndexExpr e;
  if (coefficient != 0) e.terms_.push_back({axis, coefficient});
  return e;
}

IndexExpr IndexExpr::Indirect(int input) {
  IndexExpr e;
  e.indirect_ = input;
  return e;
}

int64_t IndexExpr::CoefficientOf(int axis) const {
  for (const Term& t : terms_) {
    if (t.axis == axis) return t.coefficient;
  }
  return 0;
}

IndexExpr& IndexExpr::operator+=(const IndexExpr& other) {
  FUSION_CHECK(indirect_ < 0 || other.indirect_ < 0, "one indirect index per tensor dim");
  constant_ += other.constant_;
  if (indirect_ < 0) indirect_ = other.indirect_;
  for (size_t i = 0; i < other.terms_.size(); ++i) {
    const Term term = other.terms_[i];  // `other` may be this one
    auto at = std::find_if(terms_.begin(), terms_.end(),
                           [&](const Term& t) { return t.axis >= term.axis; });
    if (at == terms_.end() || at->axis != term.axis) {
      terms_.insert(at, term);
    } else {
      at->coefficient += term.coefficient;
      if (at->coefficient == 0) terms_.erase(at);
    }
  }
  return *this;
}

IndexExpr operator*(const IndexExpr& a, int64_t factor) {
  FUSION_CHECK(a.indirect_ < 0 || factor == 1, "an indirect index is not scaled");
  IndexExpr product(a.constant_ * factor);
  product.indirect_ = a.indirect_;
  if (factor == 0) return product;
  for (const IndexExpr::Term& t : a.terms_) {
    product.terms_.push_back({t.axis, t.coefficient * factor});
  }
  return product;
}

IndexExpr IndexExpr::Substitute(const std::function<IndexExpr(int)>& axis) const {
  Job::Step();
  IndexExpr out(constant_);
  out.indirect_ = indirect_;
  for (const Term& t : terms_) {
    IndexExpr at = axis(t.axis);
    out += t.coefficient == 1 ? std::move(at) : at * t.coefficient;
  }
  return out;
}

int64_t IndexExpr::At(const std::vector<int64_t>& point) const {
  int64_t value = constant_;
  for (const Term& t : terms_) value += t.coefficient * point[static_cast<size_t>(t.axis)];
  return value;
}

std::string IndexExpr::ToString(const std::function<std::string(int)>& name) const {
  std::string out;
  auto add = [&](std::string_view piece) {
    if (!out.empty()) out += " + ";
    out += piece;
  };
  for (const Term& t : terms_) {
    add(t.coefficient == 1 ? name(t.axis) : StrCat(t.coefficient, "*", name(t.axis)));
  }
  if (indirect_ >= 0) add(StrCat("@in", indirect_));
  if (constant_ != 0 || out.empty()) add(StrCat(constant_));
  return out;
}

absl::StatusOr<IndexExpr> IndexExpr::Parse(Lexer& in,
                                           const std::function<int(std::string_view)>& find) {
  IndexExpr sum;
  do {
    int64_t coefficient = 1;
    bool number = in.PeekNumber() && !in.PeekIdentifier();
    if (number) {
      ASSIGN_OR_RETURN(coefficient, in.Integer());
      if (!in.Accept("*")) {
        sum = sum + IndexExpr(coefficient);
        continue;
      }
    }
    if (in.Accept("@")) {
      ASSIGN_OR_RETURN(std::string word, in.Identifier());
      if (word.size() < 3 || word.size() > 6 || word.compare(0, 2, "in") != 0 ||
          word.find_first_not_of("0123456789", 2) != std::string::npos || sum.indirect() >= 0) {
        return in.Error("@in<i>, at most once, before this");
      }
      sum = sum + Indirect(std::stoi(word.substr(2)));
      continue;
    }
    const Lexer place = in;
    ASSIGN_OR_RETURN(std::string word, in.Identifier());
    int axis = find(word);
    if (axis < 0) return place.Error("the name of a declared axis");
    sum = sum + Axis(axis, coefficient);
  } while (in.Accept("+"));
  return sum;
}

std::string GuardsToString(const std::vector<Guard>& guards,
                           const std::function<std::string(int)>& name) {
  if (guards.empty()) return "";
  return StrCat(" where ", StrJoin(guards, " and ", [&](const Guard& g) {
                  return StrCat(name(g.axis), " in [", g.begin, ", ", g.end, "]");
                }));
}

absl::StatusOr<std::vector<Guard>> ParseGuards(Lexer& in,
                                               const std::function<int(std::string_view)>& find) {
  std::vector<Guard> guards;
  if (!in.Accept("where")) return guards;
  do {
    const Lexer place = in;
    ASSIGN_OR_RETURN(std::string name, in.Identifier());
    Guard g{.axis = find(name)};
    if (g.axis < 0) return place.Error("the name of a declared axis");
    RETURN_IF_ERROR(in.Expect("in"));
    RETURN_IF_ERROR(in.Expect("["));
    ASSIGN_OR_RETURN(g.begin, in.Integer());
    RETURN_IF_ERROR(in.Expect(","));
    ASSIGN_OR_RETURN(g.end, in.Integer());
    RETURN_IF_ERROR(in.Expect("]"));
    guards.push_back(g);
  } while (in.Accept("and"));
  return guards;
}

IndexRange Guarded(IndexRange range, int axis, const std::vector<Guard>& guards) {
  for (const Guard& g : guards) {
    if (g.axis != axis) continue;
    range.begin = std::max(range.begin, g.begin);
    range.end = std::min(range.end, g.end);
  }
  return range;
}

IndexRange RangeOf(const IndexExpr& e, const std::function<IndexRange(int)>& axis,
                   const std::vector<Guard>& guards) {
  IndexRange out{e.constant(), e.constant() + 1};
  for (const IndexExpr::Term& t : e.terms()) {
    IndexRange range = Guarded(axis(t.axis), t.axis, guards);
    if (range.empty()) return {};
    int64_t first = t.coefficient * range.begin;
    int64_t last = t.coefficient * (range.end - 1);
    out.begin += std::min(first, last);
    out.end += std::max(first, last);
  }
  return out;
}

std::string IndexMapToString(const IndexMap& map, const std::function<std::string(int)>& name) {
  return StrCat("[", StrJoin(map, ", ", [&](const IndexExpr& e) { return e.ToString(name); }), "]");
}

absl::StatusOr<IndexMap> ParseIndexMap(Lexer& in,
                                       const std::function<int(std::string_view)>& find) {
  IndexMap map;
  RETURN_IF_ERROR(in.Expect("["));
  if (in.Accept("]")) return map;
  do {
    ASSIGN_OR_RETURN(IndexExpr e, IndexExpr::Parse(in, find));
    map.push_back(e);
  } while (in.Accept(","));
  RETURN_IF_ERROR(in.Expect("]"));
  return map;
}

}  // namespace fusion
