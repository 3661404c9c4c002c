#include "core/tensor/size_expr.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/base/text/text.h"
#include "core/base/threads/job.h"

namespace fusion {
namespace {

__extension__ using Wide = __int128;

constexpr size_t kMostTerms = 4;
constexpr size_t kMostDegree = 4;
constexpr Wide kLimit = Wide{1} << 62;

std::optional<int64_t> Narrow(Wide value) {
  if (value > kLimit || value < -kLimit) return std::nullopt;
  return static_cast<int64_t>(value);
}

// Beyond what an int64_t holds: its end. No size is evaluated there.
int64_t Saturated(Wide value) {
  constexpr Wide kMost = std::numeric_limits<int64_t>::max();
  return static_cast<int64_t>(std::clamp(value, -kMost, kMost));
}

// The product of the symbols of a term; nullopt if it is too large.
std::optional<int64_t> Product(const std::vector<int>& symbols,
                               const std::vector<int64_t>& values) {
  Wide product = 1;
  for (int s : symbols) {
    product *= values[static_cast<size_t>(s)];
    if (!Narrow(product).has_value()) return std::nullopt;
  }
  return static_cast<int64_t>(product);
}

bool Before(const SizeExpr::Term& a, const SizeExpr::Term& b) {
  if (a.symbols.size() != b.symbols.size()) return a.symbols.size() > b.symbols.size();
  return a.symbols < b.symbols;
}

// All products of `symbols` symbols up to kMostDegree, the constant first.
std::vector<std::vector<int>> Products(int symbols) {
  std::vector<std::vector<int>> out = {{}};
  size_t begin = 0;
  for (size_t degree = 1; degree <= kMostDegree; ++degree) {
    const size_t end = out.size();
    for (size_t i = begin; i < end; ++i) {
      const int first = out[i].empty() ? 0 : out[i].back();
      for (int s = first; s < symbols; ++s) {
        std::vector<int> longer = out[i];
        longer.push_back(s);
        out.push_back(std::move(longer));
      }
    }
    begin = end;
  }
  return out;
}

// Numbers modulo the prime 2^61 - 1: exact enough to tell which sets of products cannot be it.
class Residue {
 public:
  Residue() = default;
  explicit Residue(int64_t value)
      : value_(static_cast<uint64_t>((value % kPrime + kPrime) % kPrime)) {}

  bool IsZero() const { return value_ == 0; }
  bool operator==(const Residue&) const = default;
  Residue operator-(Residue other) const {
    Residue out;
    out.value_ = value_ >= other.value_ ? value_ - other.value_
                                        : value_ + static_cast<uint64_t>(kPrime) - other.value_;
    return out;
  }
  Residue operator*(Residue other) const {
    __extension__ using Product = unsigned __int128;
    Residue out;
    out.value_ = static_cast<uint64_t>(Product{value_} * other.value_ % uint64_t{kPrime});
    return out;
  }
  // Of a number that is not 0: its power of kPrime - 2.
  Residue Inverse() const {
    Residue out(1);
    Residue power = *this;
    for (int64_t rest = kPrime - 2; rest > 0; rest >>= 1) {
      if ((rest & 1) != 0) out = out * power;
      power = power * power;
    }
    return out;
  }

 private:
  static constexpr int64_t kPrime = (int64_t{1} << 61) - 1;
  uint64_t value_ = 0;
};

// Finds the terms of one polynomial: which products take part, by trying sets of them.
class Fitter {
 public:
  Fitter(const std::vector<std::vector<int64_t>>& points, const std::vector<int64_t>& values)
      : values_(values) {
    for (std::vector<int>& p : Products(static_cast<int>(points.front().size()))) {
      std::vector<int64_t> column;
      for (const std::vector<int64_t>& point : points) {
        std::optional<int64_t> value = Product(p, point);
        if (!value.has_value()) break;
        column.push_back(*value);
      }
      if (column.size() != values.size()) continue;
      products_.push_back(std::move(p));
      columns_.push_back(std::move(column));
    }
    // From all over the list: neighbours may have all but one symbol in common.
    const size_t count = std::min(values.size(), kMostRows);
    for (size_t i = 0; i < count; ++i) rows_.push_back(i * values.size() / count);
  }

  std::optional<SizeExpr> Run() {
    if (std::all_of(values_.begin(), values_.end(), [](int64_t v) { return v == 0; })) {
      return SizeExpr();
    }
    Reduced all;
    for (const std::vector<int64_t>& column : columns_) all.columns.push_back(RowsOf(column));
    all.target = RowsOf(values_);
    for (size_t count = 1; count <= kMostTerms && count < values_.size(); ++count) {
      chosen_.clear();
      pivots_.clear();
      if (std::optional<SizeExpr> found = Choose(count, 0, all)) return found;
    }
    return std::nullopt;
  }

 private:
  static constexpr size_t kMostRows = 16;
  using Column = std::vector<Residue>;

  // Columns and values at some points, less what the chosen columns say of them.
  struct Reduced {
    std::vector<Column> columns;
    Column target;
  };

  Column RowsOf(const std::vector<int64_t>& column) const {
    Column out;
    for (size_t row : rows_) out.emplace_back(column[row]);
    return out;
  }

  static std::optional<size_t> PivotOf(const Column& column) {
    for (size_t row = 0; row < column.size(); ++row) {
      if (!column[row].IsZero()) return row;
    }
    return std::nullopt;
  }

  // to -= to[pivot] / by[pivot] * by
  static void Reduce(const Column& by, size_t pivot, Residue inverse, Column* to) {
    if ((*to)[pivot].IsZero()) return;
    const Residue factor = (*to)[pivot] * inverse;
    for (size_t row = 0; row < by.size(); ++row) (*to)[row] = (*to)[row] - factor * by[row];
  }

  // Whether a multiple of the column is all that is left.
  static bool Completes(const Column& column, size_t pivot, const Column& target) {
    for (size_t row = 0; row < column.size(); ++row) {
      if (column[row] * target[pivot] != column[pivot] * target[row]) return false;
    }
    return true;
  }

  // Tries every set of `count` more products from `first` on.
  std::optional<SizeExpr> Choose(size_t count, size_t first, const Reduced& reduced) {
    for (size_t p = first; p < products_.size(); ++p) {
      const Column& column = reduced.columns[p];
      const std::optional<size_t> pivot = PivotOf(column);
      if (!pivot.has_value()) continue;
      if (count == 1 && !Completes(column, *pivot, reduced.target)) continue;
      chosen_.push_back(p);
      pivots_.push_back(rows_[*pivot]);
      std::optional<SizeExpr> found;
      if (count == 1) {
        found = Solve();
      } else {
        Job::Step();
        Reduced rest = reduced;
        const Residue inverse = column[*pivot].Inverse();
        for (size_t q = p + 1; q < products_.size(); ++q) {
          Reduce(column, *pivot, inverse, &rest.columns[q]);
        }
        Reduce(column, *pivot, inverse, &rest.target);
        found = Choose(count - 1, p + 1, rest);
      }
      chosen_.pop_back();
      pivots_.pop_back();
      if (found.has_value()) return found;
    }
    return std::nullopt;
  }

  // Elimination without fractions at the pivots, then all points as a check.
  std::optional<SizeExpr> Solve() const {
    const size_t n = chosen_.size();
    std::vector<std::vector<Wide>> rows(n);
    for (size_t r = 0; r < n; ++r) {
      for (size_t p : chosen_) rows[r].push_back(columns_[p][pivots_[r]]);
      rows[r].push_back(values_[pivots_[r]]);
    }
    if (!Eliminate(&rows)) return std::nullopt;
    std::vector<SizeExpr::Term> terms;
    for (size_t c = 0; c < n; ++c) {
      if (rows[c][n] % rows[c][c] != 0) return std::nullopt;
      std::optional<int64_t> coefficient = Narrow(rows[c][n] / rows[c][c]);
      if (!coefficient.has_value() || *coefficient == 0) return std::nullopt;
      terms.push_back({*coefficient, products_[chosen_[c]]});
    }
    if (!GoesThroughEveryPoint(terms)) return std::nullopt;
    return SizeExpr::Sum(std::move(terms));
  }

  bool GoesThroughEveryPoint(const std::vector<SizeExpr::Term>& terms) const {
    for (size_t i = 0; i < values_.size(); ++i) {
      Wide sum = 0;
      for (size_t c = 0; c < terms.size(); ++c) {
        sum += Wide{terms[c].coefficient} * columns_[chosen_[c]][i];
      }
      if (sum != values_[i]) return false;
    }
    return true;
  }

  // Makes the square part of `rows` diagonal. False: it is singular, or the numbers grow too long.
  static bool Eliminate(std::vector<std::vector<Wide>>* rows) {
    const size_t n = rows->size();
    for (size_t c = 0; c < n; ++c) {
      size_t pivot = c;
      while (pivot < n && (*rows)[pivot][c] == 0) ++pivot;
      if (pivot == n) return false;
      std::swap((*rows)[pivot], (*rows)[c]);
      for (size_t r = 0; r < n; ++r) {
        if (r != c && !Clear((*rows)[c], c, &(*rows)[r])) return false;
      }
    }
    return true;
  }

  // Takes so much of `by` from `row` that its column c is 0. False: the numbers grow too long.
  static bool Clear(const std::vector<Wide>& by, size_t c, std::vector<Wide>* row) {
    const Wide a = by[c];
    const Wide b = (*row)[c];
    if (b == 0) return true;
    for (size_t k = 0; k < row->size(); ++k) {
      Wide left = 0;
      Wide right = 0;
      if (__builtin_mul_overflow((*row)[k], a, &left) || __builtin_mul_overflow(by[k], b, &right) ||
          __builtin_sub_overflow(left, right, &(*row)[k])) {
        return false;
      }
    }
    Reduce(row);
    return true;
  }

  // Divides a row by what its numbers have in common.
  static void Reduce(std::vector<Wide>* row) {
    Wide common = 0;
    for (Wide v : *row) {
      Wide a = v < 0 ? -v : v;
      while (a != 0) {
        const Wide rest = common % a;
        common = a;
        a = rest;
      }
    }
    if (common > 1) {
      for (Wide& v : *row) v /= common;
    }
  }

  const std::vector<int64_t>& values_;
  std::vector<std::vector<int>> products_;
  std::vector<std::vector<int64_t>> columns_;  // by product: its value at every point
  std::vector<size_t> rows_;                   // points that tell sets apart
  std::vector<size_t> chosen_;                 // products
  std::vector<size_t> pivots_;                 // points, one for each of them
};

}  // namespace

SizeExpr::SizeExpr(int64_t constant) {
  if (constant != 0) terms_.push_back({constant, {}});
}

SizeExpr SizeExpr::Sum(std::vector<Term> terms) {
  SizeExpr out;
  for (Term& t : terms) std::sort(t.symbols.begin(), t.symbols.end());
  std::sort(terms.begin(), terms.end(), Before);
  for (Term& t : terms) {
    if (!out.terms_.empty() && out.terms_.back().symbols == t.symbols) {
      out.terms_.back().coefficient =
          Saturated(Wide{out.terms_.back().coefficient} + t.coefficient);
    } else {
      out.terms_.push_back(std::move(t));
    }
    if (out.terms_.back().coefficient == 0) out.terms_.pop_back();
  }
  return out;
}

int SizeExpr::AsSymbol() const {
  const bool alone =
      terms_.size() == 1 && terms_[0].coefficient == 1 && terms_[0].symbols.size() == 1;
  return alone ? terms_[0].symbols[0] : -1;
}

int SizeExpr::symbols() const {
  int out = 0;
  for (const Term& t : terms_) {
    if (!t.symbols.empty()) out = std::max(out, t.symbols.back() + 1);
  }
  return out;
}

SizeExpr SizeExpr::operator-(const SizeExpr& other) const {
  std::vector<Term> terms = terms_;
  for (Term t : other.terms_) {
    t.coefficient = Saturated(-Wide{t.coefficient});
    terms.push_back(std::move(t));
  }
  return SizeExpr::Sum(std::move(terms));
}

namespace {

// The sum of the terms, those that are added where the symbols are least, the others where they are
// most.
std::optional<int64_t> TermByTerm(const std::vector<SizeExpr::Term>& terms,
                                  const std::vector<int64_t>& least,
                                  const std::vector<int64_t>& most) {
  Wide sum = 0;
  for (const SizeExpr::Term& t : terms) {
    std::optional<int64_t> product = Product(t.symbols, t.coefficient > 0 ? least : most);
    if (!product.has_value()) return std::nullopt;
    sum += Wide{t.coefficient} * *product;
    if (!Narrow(sum).has_value()) return std::nullopt;
  }
  return static_cast<int64_t>(sum);
}

// The same polynomial of what each symbol is above `from` (sign 1), or below it (sign -1).
std::optional<SizeExpr> Shifted(const std::vector<SizeExpr::Term>& terms,
                                const std::vector<int64_t>& from, int sign) {
  std::vector<SizeExpr::Term> out;
  for (const SizeExpr::Term& t : terms) {
    // Each symbol of a term is either its `from` or what it is above or below that.
    for (size_t chosen = 0; chosen < size_t{1} << t.symbols.size(); ++chosen) {
      Wide coefficient = t.coefficient;
      SizeExpr::Term part;
      for (size_t i = 0; i < t.symbols.size(); ++i) {
        const bool kept = (chosen >> i & 1) != 0;
        if (kept) part.symbols.push_back(t.symbols[i]);
        coefficient *= kept ? sign : from[static_cast<size_t>(t.symbols[i])];
        if (!Narrow(coefficient).has_value()) return std::nullopt;
      }
      part.coefficient = static_cast<int64_t>(coefficient);
      out.push_back(std::move(part));
    }
  }
  return SizeExpr::Sum(std::move(out));
}

}  // namespace

std::optional<int64_t> SizeExpr::Evaluate(const std::vector<int64_t>& values) const {
  return TermByTerm(terms_, values, values);
}

std::optional<int64_t> SizeExpr::LowerBound(const std::vector<int64_t>& least,
                                            const std::vector<int64_t>& most) const {
  std::optional<int64_t> bound = TermByTerm(terms_, least, most);
  if (!bound.has_value() || least == most) return bound;
  // (a - 1) * (b - 1) has terms of both signs, and none of what a and b are above their least.
  std::vector<int64_t> room;
  for (size_t s = 0; s < least.size(); ++s) room.push_back(most[s] - least[s]);
  for (const auto& [from, sign] : {std::pair(&least, 1), std::pair(&most, -1)}) {
    const std::optional<SizeExpr> shifted = Shifted(terms_, *from, sign);
    if (!shifted.has_value()) continue;
    const std::optional<int64_t> other =
        TermByTerm(shifted->terms(), std::vector<int64_t>(room.size(), 0), room);
    if (other.has_value()) bound = std::max(*bound, *other);
  }
  return bound;
}

std::string SizeExpr::ToString(const std::vector<std::string>& names) const {
  std::string out;
  for (const Term& t : terms_) {
    const bool negative = t.coefficient < 0;
    if (!out.empty() || negative) out += out.empty() ? "-" : negative ? " - " : " + ";
    std::vector<std::string> factors;
    for (int s : t.symbols) {
      const auto i = static_cast<size_t>(s);
      factors.push_back(i < names.size() ? names[i] : StrCat("s", s));
    }
    const int64_t size = negative ? -t.coefficient : t.coefficient;
    if (size != 1 || factors.empty()) factors.push_back(StrCat(size));
    out += StrJoin(factors, "*");
  }
  return out.empty() ? "0" : out;
}

std::optional<SizeExpr> FitSize(const std::vector<std::vector<int64_t>>& points,
                                const std::vector<int64_t>& values) {
  if (points.size() != values.size() || points.empty()) return std::nullopt;
  return Fitter(points, values).Run();
}

}  // namespace fusion
