#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/tensor/size_expr.h"

namespace fusion {

/// Texts of the members of a family as one: they are equal but for numbers, and each number is a
/// polynomial of the symbols (FitSize), or a literal of such a number, or of its reciprocal.
class GeneralText {
 public:
  /// `points`: the values of the symbols, by text; at least one. FailedPrecondition, with the
  /// lines, if the texts differ in more than such numbers; `line` (may be null) is then the number
  /// of the first that does, from 0 on. Pure.
  static absl::StatusOr<GeneralText> Of(const std::vector<std::vector<int64_t>>& points,
                                        const std::vector<std::string>& texts,
                                        size_t* line = nullptr);

  /// True if the texts are equal.
  bool IsStatic() const { return sizes_.empty(); }
  /// The text of the member where the symbols have these values. OutOfRange if a number of it is
  /// beyond 2^62.
  absl::StatusOr<std::string> At(const std::vector<int64_t>& values) const;

  struct Piece {
    enum Form : uint8_t { kText, kWhole, kFloat, kDouble, kInverseFloat, kInverseDouble };
    Form form = kText;
    std::string text;  // kText
    int size = -1;     // others: position in sizes()
  };
  using Line = std::vector<Piece>;
  const std::vector<Line>& lines() const { return lines_; }
  /// Every number that differs, once.
  const std::vector<SizeExpr>& sizes() const { return sizes_; }

 private:
  class Maker;
  std::vector<Line> lines_;
  std::vector<SizeExpr> sizes_;
};

/// One source for all members of a family.
struct GeneralSource {
  std::string text;
  /// Element i of the dims that the kernel is called with.
  std::vector<SizeExpr> sizes;
  /// Pairs of which the first one must be at most the second one in every member.
  std::vector<std::pair<SizeExpr, SizeExpr>> needs;
};

/// The source of which each text, the source of one member (Backend::EmitMember), is a case. Fails
/// as GeneralText::Of does. Pure.
absl::StatusOr<GeneralSource> GeneraliseSource(const std::vector<std::vector<int64_t>>& points,
                                               const std::vector<std::string>& texts);

}  // namespace fusion
