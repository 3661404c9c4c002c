#include "core/codegen/generalise.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <set>

#include "core/base/text/decimal_numbers.h"
#include "core/codegen/backend.h"

namespace fusion {
namespace {

struct Token {
  std::string_view text;
  bool number = false;
};

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool InWord(char c) {
  return IsDigit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

// Splits a line into words, numbers and single characters; concatenated they are the line.
std::vector<Token> Tokens(std::string_view line) {
  std::vector<Token> out;
  for (size_t at = 0; at < line.size();) {
    size_t end = at + 1;
    const bool number = IsDigit(line[at]);
    const bool hex = number && line.substr(at, 2) == "0x";
    auto in_number = [&](size_t i) {
      const char before = line[i - 1];
      const bool exponent = hex ? before == 'p' : before == 'e';
      return InWord(line[i]) || line[i] == '.' || (exponent && (line[i] == '-' || line[i] == '+'));
    };
    while (end < line.size() && (number             ? in_number(end)
                                 : InWord(line[at]) ? InWord(line[end])
                                                    : false)) {
      ++end;
    }
    out.push_back({line.substr(at, end - at), number});
    at = end;
  }
  return out;
}

std::string_view Stripped(std::string_view line) {
  const size_t begin = line.find_first_not_of(' ');
  return begin == std::string_view::npos ? "" : line.substr(begin);
}

// The numbers as integers; nullopt if one is not an integer.
std::optional<std::vector<int64_t>> Integers(const std::vector<std::string_view>& numbers) {
  std::vector<int64_t> out;
  for (std::string_view n : numbers) {
    int64_t value = 0;
    auto [end, error] = std::from_chars(n.data(), n.data() + n.size(), value);
    if (error != std::errc() || end != n.data() + n.size()) return std::nullopt;
    out.push_back(value);
  }
  return out;
}

bool IsSingle(GeneralText::Piece::Form form) {
  return form == GeneralText::Piece::kFloat || form == GeneralText::Piece::kInverseFloat;
}
bool IsInverse(GeneralText::Piece::Form form) {
  return form == GeneralText::Piece::kInverseFloat || form == GeneralText::Piece::kInverseDouble;
}

// The value of a literal of this form for a whole number.
double ValueOf(GeneralText::Piece::Form form, double whole) {
  if (!IsInverse(form)) return whole;
  return IsSingle(form) ? static_cast<double>(1.0F / static_cast<float>(whole)) : 1 / whole;
}

// The integers whose literals of this form these are; nullopt if one is not of this form.
std::optional<std::vector<int64_t>> WholeNumbers(const std::vector<std::string_view>& literals,
                                                 GeneralText::Piece::Form form) {
  std::vector<int64_t> out;
  for (std::string_view literal : literals) {
    const bool hex = literal.substr(0, 2) == "0x";
    const bool single = literal.back() == 'f' && (!hex || literal.find('p') != literal.npos);
    if (single != IsSingle(form)) return std::nullopt;
    const double value = std::strtod(std::string(literal).c_str(), nullptr);
    const double whole = std::round(IsInverse(form) ? 1 / value : value);
    constexpr double kExact = 9007199254740992;  // 2^53
    if (!(std::abs(whole) < kExact) || whole == 0 || ValueOf(form, whole) != value) {
      return std::nullopt;
    }
    out.push_back(static_cast<int64_t>(whole));
  }
  return out;
}

absl::Status Differ(std::string_view a, std::string_view b) {
  return FailedPrecondition(
      "members differ in more than numbers: ", Quote(DecimalNumbers(Stripped(a))), " and ",
      Quote(DecimalNumbers(Stripped(b))));
}

absl::Status CheckLines(size_t a, size_t b) {
  if (a == b) return absl::OkStatus();
  return FailedPrecondition("members differ in more than numbers: one text has ", a,
                            " lines, another one ", b);
}

bool AreAlike(const Token& a, const Token& b) { return a.text == b.text || (a.number && b.number); }

}  // namespace

// Walks the texts side by side.
class GeneralText::Maker {
 public:
  Maker(const std::vector<std::vector<int64_t>>& points, const std::vector<std::string>& texts)
      : points_(points) {
    for (const std::string& text : texts) texts_.push_back(StrSplit(text, '\n'));
  }

  absl::StatusOr<GeneralText> Run(size_t* line) {
    const size_t count = texts_[0].size();
    *line = CommonLines();
    for (const auto& lines : texts_) RETURN_IF_ERROR(CheckLines(count, lines.size()));
    for (size_t i = 0; i < count; ++i) {
      *line = i;
      RETURN_IF_ERROR(AddLine(i));
    }
    return std::move(out_);
  }

 private:
  // Number of leading lines that begin alike in all texts.
  size_t CommonLines() const {
    constexpr size_t kHead = 12;  // a value and its operator
    size_t common = 0;
    auto same = [&](const auto& lines) {
      return common < lines.size() &&
             lines[common].substr(0, kHead) == texts_[0][common].substr(0, kHead);
    };
    while (common < texts_[0].size() && std::all_of(texts_.begin(), texts_.end(), same)) ++common;
    return common;
  }

  absl::Status AddLine(size_t i) {
    out_.lines_.emplace_back();
    const bool equal = std::all_of(texts_.begin(), texts_.end(),
                                   [&](const auto& lines) { return lines[i] == texts_[0][i]; });
    if (equal) {
      AddText(texts_[0][i]);
      return absl::OkStatus();
    }
    std::vector<std::vector<Token>> tokens;
    for (const auto& lines : texts_) tokens.push_back(Tokens(lines[i]));
    for (size_t text = 0; text < tokens.size(); ++text) {
      if (tokens[text].size() != tokens[0].size()) return Differ(texts_[0][i], texts_[text][i]);
    }
    for (size_t t = 0; t < tokens[0].size(); ++t) {
      const Token& first = tokens[0][t];
      std::vector<std::string_view> numbers;
      bool differ = false;
      for (size_t text = 0; text < tokens.size(); ++text) {
        const Token& token = tokens[text][t];
        if (!AreAlike(token, first)) return Differ(texts_[0][i], texts_[text][i]);
        differ = differ || token.text != first.text;
        numbers.push_back(token.text);
      }
      if (!differ) {
        AddText(first.text);
      } else if (!AddSize(numbers)) {
        return FailedPrecondition("no polynomial of the symbols is ", StrJoin(numbers, ", "),
                                  " in ", Quote(std::string(Stripped(texts_[0][i]))));
      }
    }
    return absl::OkStatus();
  }

  void AddText(std::string_view text) {
    Line& line = out_.lines_.back();
    if (line.empty() || line.back().form != Piece::kText) line.emplace_back();
    line.back().text += text;
  }

  bool AddSize(const std::vector<std::string_view>& numbers) {
    if (Add(Integers(numbers), Piece::kWhole)) return true;
    for (Piece::Form form :
         {Piece::kFloat, Piece::kDouble, Piece::kInverseFloat, Piece::kInverseDouble}) {
      if (Add(WholeNumbers(numbers, form), form)) return true;
    }
    return false;
  }

  bool Add(const std::optional<std::vector<int64_t>>& values, Piece::Form form) {
    if (!values.has_value()) return false;
    auto [it, fresh] = positions_.try_emplace(*values, -1);
    if (fresh) {
      if (std::optional<SizeExpr> size = FitSize(points_, *values)) {
        it->second = static_cast<int>(out_.sizes_.size());
        out_.sizes_.push_back(*std::move(size));
      }
    }
    if (it->second >= 0) out_.lines_.back().push_back({form, "", it->second});
    return it->second >= 0;
  }

  const std::vector<std::vector<int64_t>>& points_;
  std::vector<std::vector<std::string_view>> texts_;  // their lines
  std::map<std::vector<int64_t>, int> positions_;     // in sizes_, by values; -1: no polynomial
  GeneralText out_;
};

absl::StatusOr<GeneralText> GeneralText::Of(const std::vector<std::vector<int64_t>>& points,
                                            const std::vector<std::string>& texts, size_t* line) {
  FUSION_CHECK(!texts.empty() && points.size() == texts.size(), "one point a text");
  size_t at = 0;
  return Maker(points, texts).Run(line == nullptr ? &at : line);
}

absl::StatusOr<std::string> GeneralText::At(const std::vector<int64_t>& values) const {
  std::vector<int64_t> sizes;
  for (const SizeExpr& size : sizes_) {
    std::optional<int64_t> value = size.Evaluate(values);
    if (!value.has_value()) {
      return absl::OutOfRangeError(StrCat("a size of ", size.ToString(), " is too large"));
    }
    sizes.push_back(*value);
  }
  return StrJoin(lines_, "\n", [&](const Line& line) {
    std::string out;
    for (const Piece& piece : line) {
      if (piece.form == Piece::kText) {
        out += piece.text;
        continue;
      }
      const int64_t value = sizes[static_cast<size_t>(piece.size)];
      if (piece.form != Piece::kWhole) {
        out += HexDouble(ValueOf(piece.form, static_cast<double>(value)));
      } else if (value < 0 && out.ends_with('-')) {
        // The minus sign of a negative number is part of the text.
        out.pop_back();
        out += StrCat(-value);
      } else {
        out += StrCat(value);
      }
    }
    return out;
  });
}

namespace {

// Assembles a source from its last line to its first, so that at the kSizesLine of a function the
// sizes which the function uses are known.
class SourceWriter {
 public:
  explicit SourceWriter(const GeneralText& general) : general_(general) {}

  GeneralSource Run() {
    for (size_t i = general_.lines().size(); i-- > 0;) {
      const GeneralText::Line& line = general_.lines()[i];
      const std::string_view head = line.empty() ? "" : Stripped(line[0].text);
      if (head == kSizesLine) {
        Declare(line[0].text.substr(0, line[0].text.size() - head.size()));
      } else if (head.substr(0, kNeedsLine.size()) == kNeedsLine) {
        Need(line);
      } else {
        lines_.push_back(StrJoin(line, "", [&](const auto& piece) { return Code(piece); }));
      }
    }
    std::reverse(lines_.begin(), lines_.end());
    std::string text = StrJoin(lines_, "\n");
    const size_t count = text.find(kSizesCount);
    if (count != std::string::npos) {
      text.replace(count, kSizesCount.size(), StrCat(out_.sizes.size()));
    }
    out_.text = std::move(text);
    return std::move(out_);
  }

 private:
  void Declare(const std::string& indent) {
    for (auto it = used_.rbegin(); it != used_.rend(); ++it) {
      lines_.push_back(StrCat(indent, "const i64 size", *it, " = dims[", *it, "];  // ",
                              out_.sizes[static_cast<size_t>(*it)].ToString()));
    }
    used_.clear();
  }

  // "// needs <a> <= <b>", either of which may be a plain number.
  void Need(const GeneralText::Line& line) {
    std::vector<SizeExpr> sides;
    for (const GeneralText::Piece& piece : line) {
      if (piece.form == GeneralText::Piece::kWhole) {
        sides.push_back(general_.sizes()[static_cast<size_t>(piece.size)]);
        continue;
      }
      for (const Token& token : Tokens(piece.text)) {
        if (!token.number) continue;
        std::optional<std::vector<int64_t>> number = Integers({token.text});
        if (number.has_value()) sides.emplace_back((*number)[0]);
      }
    }
    FUSION_CHECK(sides.size() == 2, "a need compares two numbers");
    out_.needs.emplace_back(std::move(sides[0]), std::move(sides[1]));
  }

  std::string Code(const GeneralText::Piece& piece) {
    if (piece.form == GeneralText::Piece::kText) return piece.text;
    // Numbered in order of use; sizes that only needs use get no number.
    auto [it, fresh] = position_.try_emplace(piece.size, static_cast<int>(out_.sizes.size()));
    if (fresh) out_.sizes.push_back(general_.sizes()[static_cast<size_t>(piece.size)]);
    used_.insert(it->second);
    const std::string name = StrCat("size", it->second);
    if (piece.form == GeneralText::Piece::kWhole) return name;
    const std::string_view type = IsSingle(piece.form) ? "float" : "double";
    return StrCat("((", type, ")", IsInverse(piece.form) ? StrCat("1 / (", type, ")") : "", name,
                  ")");
  }

  const GeneralText& general_;
  GeneralSource out_;
  std::vector<std::string> lines_;  // backwards
  std::map<int, int> position_;     // of sizes of general_ in out_.sizes
  std::set<int> used_;
};

}  // namespace

absl::StatusOr<GeneralSource> GeneraliseSource(const std::vector<std::vector<int64_t>>& points,
                                               const std::vector<std::string>& texts) {
  ASSIGN_OR_RETURN(GeneralText general, GeneralText::Of(points, texts));
  return SourceWriter(general).Run();
}

}  // namespace fusion
