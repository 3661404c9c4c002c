#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/check.h"
#include "core/base/status.h"

namespace fusion {

using SymbolId = int32_t;

/// One extent: a number, or a linear expression over symbols ("s0 + 16", "2*s1"). Exporters write
/// such sums. Value type. Comparison is structural: two Dims are equal iff they are equal for every
/// binding.
class Dim {
 public:
  Dim() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): a number is a Dim
  Dim(int64_t value) : constant_(value) {}
  static Dim Symbol(SymbolId id, int64_t coefficient = 1);

  bool is_static() const { return terms_.empty(); }
  /// The number. The dim must be static.
  int64_t value() const {
    FUSION_CHECK(is_static(), "the value of a symbolic dim was asked for");
    return constant_;
  }

  struct Term {
    SymbolId symbol;
    int64_t coefficient;
    bool operator==(const Term&) const = default;
  };
  const std::vector<Term>& terms() const {
    return terms_;
  }  // by ascending symbol, no zero coefficients
  int64_t constant() const { return constant_; }

  friend Dim operator+(const Dim& a, const Dim& b);
  friend Dim operator*(const Dim& a, int64_t factor);
  friend Dim operator-(const Dim& a, const Dim& b) { return a + b * -1; }
  bool operator==(const Dim&) const = default;

  /// The value where symbol i is values[i]. InvalidArgument if `values` has no element for a
  /// symbol. Overflow is not checked.
  absl::StatusOr<int64_t> Evaluate(const std::vector<int64_t>& values) const;

  /// "128", "s0", "2*s1 + 16".
  std::string ToString() const;
  /// Inverse of ToString. InvalidArgument for other text.
  static absl::StatusOr<Dim> Parse(std::string_view text);

 private:
  int64_t constant_ = 0;
  std::vector<Term> terms_;
};

/// What a client promises about the values of a symbol. Part of the plan key.
struct SymbolDecl {
  std::string name;
  int64_t min = 1;
  int64_t max = 0;  // 0: no bound given
  int64_t multiple_of = 1;
  std::vector<int64_t> likely;  // values worth a specialised kernel, most frequent first
  bool operator==(const SymbolDecl&) const = default;
};

}  // namespace fusion
