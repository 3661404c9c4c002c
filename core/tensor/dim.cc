#include "core/tensor/dim.h"

#include <charconv>

namespace fusion {

Dim Dim::Symbol(SymbolId id, int64_t coefficient) {
  Dim dim;
  if (coefficient != 0) dim.terms_.push_back({id, coefficient});
  return dim;
}

Dim operator+(const Dim& a, const Dim& b) {
  Dim sum(a.constant_ + b.constant_);
  size_t i = 0;
  size_t j = 0;
  while (i < a.terms_.size() || j < b.terms_.size()) {
    bool take_a =
        j >= b.terms_.size() || (i < a.terms_.size() && a.terms_[i].symbol <= b.terms_[j].symbol);
    bool take_b =
        i >= a.terms_.size() || (j < b.terms_.size() && b.terms_[j].symbol <= a.terms_[i].symbol);
    Dim::Term term{take_a ? a.terms_[i].symbol : b.terms_[j].symbol, 0};
    if (take_a) term.coefficient += a.terms_[i++].coefficient;
    if (take_b) term.coefficient += b.terms_[j++].coefficient;
    if (term.coefficient != 0) sum.terms_.push_back(term);
  }
  return sum;
}

Dim operator*(const Dim& a, int64_t factor) {
  Dim product(a.constant_ * factor);
  if (factor == 0) return product;
  for (const Dim::Term& term : a.terms_) {
    product.terms_.push_back({term.symbol, term.coefficient * factor});
  }
  return product;
}

absl::StatusOr<int64_t> Dim::Evaluate(const std::vector<int64_t>& values) const {
  int64_t sum = constant_;
  for (const Term& term : terms_) {
    if (term.symbol < 0 || static_cast<size_t>(term.symbol) >= values.size()) {
      return InvalidArgument("no value for symbol s", term.symbol, " of dim ", ToString());
    }
    sum += term.coefficient * values[static_cast<size_t>(term.symbol)];
  }
  return sum;
}

std::string Dim::ToString() const {
  if (is_static()) return StrCat(constant_);
  std::string out;
  for (const Term& term : terms_) {
    if (!out.empty()) out += " + ";
    if (term.coefficient != 1) out += StrCat(term.coefficient, "*");
    out += StrCat("s", term.symbol);
  }
  if (constant_ != 0) out += StrCat(" + ", constant_);
  return out;
}

absl::StatusOr<Dim> Dim::Parse(std::string_view text) {
  Dim sum;
  for (std::string_view rest = text;;) {
    size_t plus = rest.find('+');
    std::string_view piece = StripSpace(rest.substr(0, plus));
    int64_t coefficient = 1;
    const char* p = piece.data();
    const char* end = p + piece.size();
    bool ok = !piece.empty();
    bool number = ok && *p != 's';
    bool product = !number;
    if (number) {
      auto [next, error] = std::from_chars(p, end, coefficient);
      ok = error == std::errc();
      p = next;
      if (ok && p == end) {
        sum = sum + Dim(coefficient);
      } else {
        product = ok = ok && *p == '*';
        ++p;
      }
    }
    if (ok && product) {
      SymbolId symbol = 0;
      ok = p < end && *p == 's';
      if (ok) {
        auto [next, error] = std::from_chars(p + 1, end, symbol);
        ok = error == std::errc() && next == end;
      }
      if (ok) sum = sum + Symbol(symbol, coefficient);
    }
    if (!ok) {
      return InvalidArgument("dim ", Quote(text), ": expected a sum like 2*s0 + 16, got ",
                             Quote(piece));
    }
    if (plus == std::string_view::npos) return sum;
    rest = rest.substr(plus + 1);
  }
}

}  // namespace fusion
