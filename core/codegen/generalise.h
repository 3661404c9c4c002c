#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/tensor/size_expr.h"

namespace fusion {

/// One text for all members of a family. Their texts differ in numbers only, and each number is a
/// polynomial of the symbols (FitSize), a literal of such a number, or a literal of its reciprocal.
class GeneralText {
 public:
  /// Merges texts. `points[i]`: the values of the symbols in `texts[i]`; at least one, and equally
  /// many of both. FailedPrecondition, quoting the lines, if the texts differ in more than such
  /// numbers; `*line` (may be null) is then the number of the first such line, from 0. Pure.
  static absl::StatusOr<GeneralText> Of(const std::vector<std::vector<int64_t>>& points,
                                        const std::vector<std::string>& texts,
                                        size_t* line = nullptr);

  /// True if all texts are equal.
  bool IsStatic() const { return sizes_.empty(); }
  /// The text for these values of the symbols. OutOfRange if a number in it exceeds 2^62.
  absl::StatusOr<std::string> At(const std::vector<int64_t>& values) const;

  struct Piece {
    enum Form : uint8_t { kText, kWhole, kFloat, kDouble, kInverseFloat, kInverseDouble };
    Form form = kText;
    std::string text;  // kText
    int size = -1;     // others: position in sizes()
  };
  using Line = std::vector<Piece>;
  const std::vector<Line>& lines() const { return lines_; }
  /// The numbers that differ between members, each once.
  const std::vector<SizeExpr>& sizes() const { return sizes_; }

 private:
  class Maker;
  std::vector<Line> lines_;
  std::vector<SizeExpr> sizes_;
};

/// One source for all members of a family.
struct GeneralSource {
  std::string text;
  /// The run-time dims that the kernel must be called with, in order (FusionKernelArgs::dims).
  std::vector<SizeExpr> sizes;
  /// Conditions: in every member the first of each pair is at most the second. Do not use the
  /// source for other values of the symbols.
  std::vector<std::pair<SizeExpr, SizeExpr>> needs;
};

/// Merges sources that Backend::EmitMember made, as GeneralText::Of does; same errors. Pure.
absl::StatusOr<GeneralSource> GeneraliseSource(const std::vector<std::vector<int64_t>>& points,
                                               const std::vector<std::string>& texts);

}  // namespace fusion
