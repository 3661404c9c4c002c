#include "core/pipeline/families/family_points.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "core/base/contains.h"

namespace fusion {
namespace {

// More than terms of a size, so that each is found and checked.
constexpr size_t kMembers = 7;
// Below this, products of small primes and constants of a model are easily equal.
constexpr int64_t kSmallestPrime = 11;
// Ranges from this length on have enough primes in their upper half for every symbol.
constexpr int64_t kLongRange = 256;
constexpr int64_t kSeveralValues = 8;
// The factor of elements from which a variant for few elements is worth trying.
constexpr int64_t kManyTimes = 16;

bool IsPrime(int64_t n) {
  for (int64_t d = 2; d * d <= n; ++d) {
    if (n % d == 0) return false;
  }
  return n > 1;
}

// A dim of 0 has nothing to compute, and a kernel that is tiled for a dim of 1 alone does not loop
// over it.
int64_t SmallestOf(const DimRange& s) {
  return std::max<int64_t>(std::min<int64_t>(2, s.most / s.multiple), s.least / s.multiple);
}

int64_t MiddleOfRange(const DimRange& s) { return MiddleOf(SmallestOf(s), s.most / s.multiple); }

}  // namespace

int64_t MiddleOf(int64_t least, int64_t most) {
  const double product =
      static_cast<double>(std::max<int64_t>(least, 1)) * static_cast<double>(most);
  return std::clamp(static_cast<int64_t>(std::sqrt(product)), least, most);
}

namespace {

// Symbols by largest value, in groups whose ranges overlap: within a group any symbol may be the
// longer one.
std::vector<std::vector<size_t>> Overlapping(const std::vector<DimRange>& symbols) {
  std::vector<size_t> order(symbols.size());
  std::iota(order.begin(), order.end(), size_t{0});
  auto least = [&](size_t s) { return symbols[s].least / symbols[s].multiple; };
  auto most = [&](size_t s) { return symbols[s].most / symbols[s].multiple; };
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::pair(most(a), least(a)) < std::pair(most(b), least(b));
  });
  std::vector<std::vector<size_t>> groups;
  for (size_t s : order) {
    if (groups.empty() || least(s) >= most(groups.back().back())) groups.emplace_back();
    groups.back().push_back(s);
  }
  return groups;
}

// Rotates values within a group: at point i symbol k gets the value of symbol i + k. So no symbol
// is longer than another one at every point.
void TakeTurns(const std::vector<size_t>& group, std::vector<Units>* points) {
  for (size_t i = 0; i < points->size(); ++i) {
    Units& point = (*points)[i];
    const Units before = point;
    for (size_t k = 0; k < group.size(); ++k) {
      point[group[k]] = before[group[(k + i) % group.size()]];
    }
  }
}

}  // namespace

std::vector<Inside> MemberPlaces(const std::vector<DimRange>& symbols) {
  const Inside none(symbols.size(), false);
  std::vector<Inside> out = {none};
  auto add = [&](const Inside& inside) {
    if (!Contains(out, inside)) out.push_back(inside);
  };
  auto is_short = [&](size_t s) { return symbols[s].most / symbols[s].multiple < kLongRange; };
  Inside several = none;
  Inside all = none;
  for (size_t s = 0; s < symbols.size(); ++s) {
    all[s] = is_short(s);
    several[s] = is_short(s) && symbols[s].most / symbols[s].multiple >= kSeveralValues;
  }
  add(several);
  for (size_t s = 0; s < symbols.size(); ++s) {
    Inside one = none;
    one[s] = is_short(s);
    add(one);
  }
  add(all);
  return out;
}

std::vector<Units> MemberPoints(const std::vector<DimRange>& symbols, const Inside& inside) {
  std::vector<Units> points(kMembers, Units(symbols.size(), 0));
  std::set<int64_t> taken;
  auto most_of = [&](size_t s) { return symbols[s].most / symbols[s].multiple; };
  auto is_long = [&](size_t s) { return most_of(s) >= kLongRange; };
  auto is_inside = [&](size_t s) { return !is_long(s) && inside[s]; };
  for (const std::vector<size_t>& group : Overlapping(symbols)) {
    std::vector<size_t> beyond;
    std::map<int64_t, std::vector<size_t>> long_ones;  // by largest value
    for (size_t s : group) {
      if (is_long(s)) long_ones[most_of(s)].push_back(s);
      if (!is_long(s) && !is_inside(s)) beyond.push_back(s);
    }
    int64_t after = kSmallestPrime;
    for (size_t s : beyond) after = std::max(after, most_of(s) + 1);
    for (size_t s : group) {
      const int64_t most = most_of(s);
      int64_t next = is_long(s) ? most : after;
      for (size_t i = 0; i < points.size(); ++i) {
        if (is_inside(s)) {
          // The value of each symbol changes from point to point while its range has further
          // values.
          const auto step = static_cast<int64_t>(i + s * 2);
          points[i][s] = most - step % (most - SmallestOf(symbols[s]) + 1);
          continue;
        }
        if (is_long(s)) --next;
        while (!IsPrime(next) || taken.contains(next)) next += is_long(s) ? -1 : 1;
        taken.insert(next);
        points[i][s] = next;
      }
    }
    TakeTurns(beyond, &points);
    for (const auto& [most, same] : long_ones) TakeTurns(same, &points);
  }
  return points;
}

namespace {

// Combinations of values up to which all are compared.
constexpr int64_t kFewValues = 16;
// Values of each symbol that are compared between the ends of its range and their neighbours.
constexpr int kBetween = 8;

// The ends of a range, their neighbours, then values between: half of them evenly, half with equal
// ratios, since small values differ more.
std::vector<int64_t> ValuesToCheck(const DimRange& s) {
  const int64_t least = s.least / s.multiple;
  const int64_t most = s.most / s.multiple;
  std::vector<int64_t> out;
  auto add = [&](int64_t value) {
    value = std::clamp(value, least, most);
    if (std::find(out.begin(), out.end(), value) == out.end()) out.push_back(value);
  };
  for (int64_t value : {least, least + 1, most - 1, most}) add(value);
  const double first = static_cast<double>(std::max<int64_t>(least, 1));
  const double ratio = static_cast<double>(most) / first;
  for (int i = 1; i <= kBetween / 2; ++i) {
    const double part = static_cast<double>(i) / (kBetween / 2 + 1);
    add(least + static_cast<int64_t>(part * static_cast<double>(most - least)));
    add(static_cast<int64_t>(first * std::pow(ratio, part)));
  }
  // If rounding made values coincide, take the next ones.
  for (int64_t value = least + 2; out.size() < 4 + kBetween && value < most; ++value) add(value);
  return out;
}

}  // namespace

std::vector<Units> Corners(const std::vector<DimRange>& symbols) {
  const size_t count = symbols.size();
  Units least;
  Units most;
  for (const DimRange& s : symbols) {
    least.push_back(s.least / s.multiple);
    most.push_back(s.most / s.multiple);
  }
  std::set<Units> out;
  auto add = [&](auto is_most) {
    Units corner;
    for (size_t s = 0; s < count; ++s) corner.push_back(is_most(s) ? most[s] : least[s]);
    out.insert(std::move(corner));
  };
  constexpr size_t kAllCorners = 4;
  for (size_t chosen = 0; count <= kAllCorners && chosen < size_t{1} << count; ++chosen) {
    add([&](size_t s) { return (chosen >> s & 1) != 0; });
  }
  for (size_t one = 0; one < count; ++one) {
    add([&](size_t s) { return s == one; });
    add([&](size_t s) { return s != one; });
  }
  return {out.begin(), out.end()};
}

CheckPointList CheckPoints(const std::vector<DimRange>& symbols) {
  CheckPointList out;
  int64_t combinations = 1;
  for (const DimRange& s : symbols) {
    const int64_t values = (s.most - s.least) / s.multiple + 1;
    combinations = std::min(combinations, kFewValues + 1) * std::min(values, kFewValues + 1);
  }
  out.exhaustive = combinations <= kFewValues;
  if (out.exhaustive) {
    for (int64_t number = 0; number < combinations; ++number) {
      Units point;
      int64_t rest = number;
      for (const DimRange& s : symbols) {
        const int64_t values = (s.most - s.least) / s.multiple + 1;
        point.push_back(s.least / s.multiple + rest % values);
        rest /= values;
      }
      out.units.push_back(std::move(point));
    }
    return out;
  }
  std::vector<std::vector<int64_t>> values;
  size_t longest = 0;
  for (const DimRange& s : symbols) {
    values.push_back(ValuesToCheck(s));
    longest = std::max(longest, values.back().size());
  }
  std::set<Units> points;
  // Each turn shifts the list of symbol s by another part: each end then meets several values of
  // the other symbols.
  const size_t turns = symbols.size() == 1 ? 1 : 3;
  for (size_t turn = 0; turn < turns; ++turn) {
    for (size_t i = 0; i < longest; ++i) {
      Units point;
      for (size_t s = 0; s < symbols.size(); ++s) {
        const size_t count = values[s].size();
        point.push_back(values[s][(i + turn * s * std::max<size_t>(count / turns, 1)) % count]);
      }
      points.insert(std::move(point));
    }
  }
  for (Units& corner : Corners(symbols)) points.insert(std::move(corner));
  out.units.assign(points.begin(), points.end());
  return out;
}

Units FewPoint(const std::vector<DimRange>& symbols) {
  Units few;
  for (const DimRange& s : symbols) few.push_back(MiddleOf(SmallestOf(s), MiddleOfRange(s)));
  return few;
}

std::vector<Units> SamplePoints(const std::vector<DimRange>& symbols) {
  Units smallest;
  Units middle;
  Units likely;
  for (const DimRange& s : symbols) {
    smallest.push_back(SmallestOf(s));
    middle.push_back(MiddleOfRange(s));
    likely.push_back(s.likely > 0 ? s.likely / s.multiple : s.most / s.multiple);
  }
  const std::set<Units> points = {smallest, FewPoint(symbols), middle, likely};
  return {points.begin(), points.end()};
}

std::vector<DimRange> FewRanges(const std::vector<DimRange>& symbols) {
  std::vector<DimRange> out = symbols;
  double times = 1;
  for (DimRange& range : out) {
    const double own =
        static_cast<double>(range.most) / static_cast<double>(SmallestOf(range) * range.multiple);
    times *= own;
    if (own >= static_cast<double>(kManyTimes)) range.most = MiddleOfRange(range) * range.multiple;
    if (range.likely > range.most) range.likely = 0;
  }
  return times >= static_cast<double>(kManyTimes) ? out : std::vector<DimRange>();
}

}  // namespace fusion
