#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "core/pipeline/families/deciding_names.h"
#include "core/pipeline/families/family_checks.h"

namespace fusion {
namespace {

using Keeps = ShapeDecision::Keeps;

// Possible signs of a polynomial over a box of the symbols.
struct SignRange {
  bool below = false;  // it may be below 0 somewhere
  bool zero = false;
  bool above = false;
};

SignRange Join(SignRange a, const SignRange& b) {
  return {a.below || b.below, a.zero || b.zero, a.above || b.above};
}

// Interval arithmetic; bisects the box if the result is undecided. Sound but conservative: it may
// report a sign that does not occur.
SignRange SignOf(const SizeExpr& size, Units least, Units most, int depth) {
  constexpr int kMostHalvings = 12;
  const std::optional<int64_t> low = size.LowerBound(least, most);
  const std::optional<int64_t> negated = (SizeExpr() - size).LowerBound(least, most);
  if (!low || !negated) return {true, true, true};
  const int64_t high = -*negated;
  const bool settled = *low > 0 || high < 0 || (*low == 0 && high == 0) || *low == high;
  size_t longest = 0;
  for (size_t s = 1; s < least.size(); ++s) {
    if (most[s] - least[s] > most[longest] - least[longest]) longest = s;
  }
  if (settled || depth == kMostHalvings || most[longest] == least[longest]) {
    return {*low < 0, *low <= 0 && high >= 0, high > 0};
  }
  const int64_t middle = least[longest] + (most[longest] - least[longest]) / 2;
  Units first_most = most;
  first_most[longest] = middle;
  Units second_least = least;
  second_least[longest] = middle + 1;
  const SignRange first = SignOf(size, least, first_most, depth + 1);
  return Join(first, SignOf(size, second_least, most, depth + 1));
}

// Integers that are `numbers` scaled by one power of two; nullopt if there are none of moderate
// size.
std::optional<std::vector<int64_t>> Scaled(const std::vector<double>& numbers) {
  constexpr double kExact = 9007199254740992;  // 2^53
  constexpr int kMostBits = 24;
  for (int bits = 0; bits <= kMostBits; ++bits) {
    std::vector<int64_t> out;
    for (double number : numbers) {
      const double whole = std::ldexp(number, bits);
      if (!(std::fabs(whole) < kExact) || whole != std::floor(whole)) break;
      out.push_back(static_cast<int64_t>(whole));
    }
    if (out.size() == numbers.size()) return out;
  }
  return std::nullopt;
}

// True if points with equal values of the symbols in `subset` have equal numbers, and some such
// points differ in the other symbols.
bool Decide(const std::vector<size_t>& subset, const std::vector<Units>& points,
            const std::vector<double>& numbers) {
  std::map<Units, std::pair<double, size_t>> first;  // the number, and at which point
  bool met_again = subset.size() == points.front().size();
  for (size_t p = 0; p < points.size(); ++p) {
    Units key;
    for (size_t s : subset) key.push_back(points[p][s]);
    auto [it, fresh] = first.try_emplace(key, std::pair(numbers[p], p));
    if (fresh) continue;
    if (it->second.first != numbers[p]) return false;
    met_again = met_again || points[it->second.second] != points[p];
  }
  return met_again;
}

}  // namespace

std::vector<std::string> DecidingNames(const ShapeFamily& family, const std::vector<Units>& points,
                                       const std::vector<double>& numbers) {
  const size_t symbols = family.names.size();
  if (points.empty() || symbols > 8) return family.names;
  for (size_t count = 1; count < symbols; ++count) {
    for (size_t chosen = 0; chosen < size_t{1} << symbols; ++chosen) {
      std::vector<size_t> subset;
      for (size_t s = 0; s < symbols; ++s) {
        if ((chosen >> s & 1) != 0) subset.push_back(s);
      }
      if (subset.size() != count || !Decide(subset, points, numbers)) continue;
      std::vector<std::string> names;
      for (size_t s : subset) names.push_back(family.names[s]);
      return names;
    }
  }
  return family.names;
}

namespace {

// Proves that the decisions of import at some points hold for all values between them.
class DecisionProver {
 public:
  DecisionProver(const ShapeFamily& family, const std::vector<CheckedPoint>& points)
      : family_(family), points_(points) {
    // The ends of each range and their neighbours are points themselves, each with some values of
    // the other symbols only.
    constexpr int64_t kEnds = 2;
    for (const DimRange& range : family.symbols) {
      const int64_t low = range.least / range.multiple;
      const int64_t high = range.most / range.multiple;
      const bool inner = high - low >= 2 * kEnds;
      least_.push_back(low);
      most_.push_back(high);
      inner_least_.push_back(inner ? low + kEnds : low);
      inner_most_.push_back(inner ? high - kEnds : high);
    }
    for (const CheckedPoint& point : points) units_.push_back(point.units);
  }

  absl::Status Run() {
    const ShapeTrace& first = points_.front().trace;
    for (const CheckedPoint& point : points_) {
      if (point.trace.size() == first.size()) continue;
      return Refused(first, point.trace);
    }
    for (size_t n = 0; n < first.size(); ++n) RETURN_IF_ERROR(CheckNode(n));
    return absl::OkStatus();
  }

 private:
  absl::Status Refused(const ShapeTrace& a, const ShapeTrace& b) const {
    size_t n = 0;
    while (n < a.size() && n < b.size() && a[n].node == b[n].node && a[n].op == b[n].op) ++n;
    const ShapeTrace& longer = n < a.size() ? a : b;
    return RefusedNode(longer[std::min(n, longer.size() - 1)], family_.names);
  }

  absl::Status RefusedNode(const NodeDecisions& node, const std::vector<std::string>& names) const {
    return FailedPrecondition(
        DescribeNode(node.node, node.op), ": the value of dim ", StrJoin(names, ", "),
        " decides what it gives, and that is not proven to stay the same for ",
        ShownRanges(family_), "; ", WayOut(names));
  }

  absl::Status CheckNode(size_t n) {
    const NodeDecisions& first = points_.front().trace[n];
    for (const CheckedPoint& point : points_) {
      const NodeDecisions& other = point.trace[n];
      if (other.node != first.node || other.op != first.op ||
          other.decisions.size() != first.decisions.size()) {
        return RefusedNode(first, family_.names);
      }
    }
    for (size_t d = 0; d < first.decisions.size(); ++d) {
      std::vector<double> numbers;
      for (const CheckedPoint& point : points_) {
        numbers.push_back(point.trace[n].decisions[d].number);
      }
      if (Holds(first.decisions[d].keeps, numbers)) continue;
      return RefusedNode(first, DecidingNames(family_, units_, numbers));
    }
    return absl::OkStatus();
  }

  bool Holds(Keeps keeps, const std::vector<double>& numbers) {
    const double first = numbers.front();
    const bool constant = std::all_of(numbers.begin(), numbers.end(), [&](double n) {
      return n == first || (std::isnan(n) && std::isnan(first));
    });
    if (constant) return true;
    if (keeps == Keeps::kNumber) return false;
    Job::Step();
    auto [known, fresh] = known_.try_emplace({keeps, numbers}, false);
    if (fresh) known->second = Proven(keeps, numbers);
    return known->second;
  }

  bool Proven(Keeps keeps, const std::vector<double>& numbers) const {
    const std::optional<std::vector<int64_t>> whole = Scaled(numbers);
    if (!whole.has_value()) return false;
    const std::optional<SizeExpr> form = FitSize(units_, *whole);
    if (!form.has_value()) return false;
    if (keeps == Keeps::kForm) return true;
    std::set<int> symbols;
    for (const SizeExpr::Term& term : form->terms()) {
      symbols.insert(term.symbols.begin(), term.symbols.end());
    }
    const bool alone = symbols.size() <= 1;
    const SignRange sign =
        SignOf(*form, alone ? inner_least_ : least_, alone ? inner_most_ : most_, 0);
    switch (keeps) {
      case Keeps::kNegative:
        return !sign.below || (!sign.zero && !sign.above);
      case Keeps::kOrder:
        return !sign.below || !sign.above;
      case Keeps::kZero:
        return !sign.zero || (!sign.below && !sign.above);
      default:
        return false;
    }
  }

  const ShapeFamily& family_;
  const std::vector<CheckedPoint>& points_;
  std::vector<Units> units_;
  Units least_;
  Units most_;
  Units inner_least_;  // between the ends
  Units inner_most_;
  std::map<std::pair<Keeps, std::vector<double>>, bool> known_;
};

}  // namespace

absl::Status CheckDecisions(const ShapeFamily& family, const std::vector<CheckedPoint>& points) {
  return DecisionProver(family, points).Run();
}

}  // namespace fusion
