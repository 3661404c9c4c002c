#include "core/pipeline/requests/miss.h"

#include <algorithm>
#include <map>
#include <optional>

#include "core/base/hash.h"
#include "core/base/key_field.h"
#include "core/base/text/decimal_numbers.h"
#include "core/base/text/text.h"

namespace fusion {
namespace {

constexpr Nanoseconds kMostTime = std::chrono::milliseconds(200);
constexpr size_t kPage = 16;
// What is shown of one side of a difference.
constexpr size_t kShownBytes = 240;

using Fields = std::vector<std::pair<std::string, std::string>>;

std::vector<std::string_view> Pieces(std::string_view text) {
  const bool lines = text.find('\n') != std::string_view::npos;
  return StrSplit(text, lines ? '\n' : ' ');
}

std::map<std::string_view, int64_t> CountsOf(const std::vector<std::string_view>& pieces) {
  std::map<std::string_view, int64_t> counts;
  for (std::string_view piece : pieces) ++counts[piece];
  return counts;
}

std::string Shown(std::string_view text) {
  const bool shortened = text.size() > kShownBytes;
  return StrCat(DecimalNumbers(text.substr(0, kShownBytes)), shortened ? "..." : "");
}

// The fields of both keys in order: those of `asked`, then those that only `stored` has.
struct Pair {
  std::string name;
  std::string asked;
  std::string stored;
};
std::vector<Pair> DifferingFields(const Fields& asked, const Fields& stored) {
  std::vector<Pair> out;
  std::map<std::string_view, std::string_view> other;
  for (const auto& [name, value] : stored) other.emplace(name, value);
  for (const auto& [name, value] : asked) {
    auto it = other.find(name);
    const std::string_view theirs = it == other.end() ? std::string_view() : it->second;
    if (it == other.end() || theirs != value) out.push_back({name, value, std::string(theirs)});
    if (it != other.end()) other.erase(it);
  }
  for (const auto& [name, value] : other) {
    out.push_back({std::string(name), "", std::string(value)});
  }
  return out;
}

double DistanceOf(const std::vector<Pair>& differing) {
  double distance = 0;
  for (const Pair& field : differing) distance += 1 + Unlikeness(field.asked, field.stored);
  return distance;
}

std::string SummaryOf(const MissExplanation& miss) {
  if (!miss.nearest.has_value()) return "no other plan is stored";
  if (miss.differences.empty()) return "an equal plan is stored";
  const bool other_graph = std::any_of(miss.differences.begin(), miss.differences.end(),
                                       [](const KeyDifference& d) { return d.field == "graph"; });
  std::string fields =
      StrJoin(miss.differences, ", ", [](const KeyDifference& d) { return std::string(d.field); });
  return StrCat(other_graph ? "the nearest stored plan is of another graph"
                            : "a plan of the same graph is stored",
                "; it differs in ", fields);
}

}  // namespace

double Unlikeness(std::string_view a, std::string_view b) {
  if (a == b) return 0;
  const std::vector<std::string_view> pieces_a = Pieces(a);
  const std::vector<std::string_view> pieces_b = Pieces(b);
  const std::map<std::string_view, int64_t> counts_b = CountsOf(pieces_b);
  int64_t common = 0;
  for (const auto& [piece, count] : CountsOf(pieces_a)) {
    auto it = counts_b.find(piece);
    if (it != counts_b.end()) common += std::min(count, it->second);
  }
  const auto all = static_cast<double>(std::max(pieces_a.size(), pieces_b.size()));
  return 1 - static_cast<double>(common) / all;
}

KeyDifference DescribeDifference(std::string_view field, std::string_view asked,
                                 std::string_view stored) {
  KeyDifference out{std::string(field), Shown(asked), Shown(stored)};
  if (asked.size() <= kShownBytes && stored.size() <= kShownBytes) return out;
  const std::vector<std::string_view> ours = Pieces(asked);
  const std::vector<std::string_view> theirs = Pieces(stored);
  const size_t both = std::min(ours.size(), theirs.size());
  size_t first = both;
  size_t differ = std::max(ours.size(), theirs.size()) - both;
  for (size_t i = both; i-- > 0;) {
    if (ours[i] == theirs[i]) continue;
    first = i;
    ++differ;
  }
  auto line = [&](const std::vector<std::string_view>& pieces) {
    return StrCat("[", first + 1, " of ", pieces.size(), ", ", differ, " differ] ",
                  first < pieces.size() ? Shown(pieces[first]) : std::string("(nothing)"));
  };
  out.asked = line(ours);
  out.stored = line(theirs);
  return out;
}

MissExplanation ExplainMiss(std::string_view full_key, Store& store, const CancelToken& cancel,
                            const Clock& clock) {
  MissExplanation out;
  const std::optional<Fields> asked = FieldHasher::Fields(full_key);
  const Digest own = Sha256(full_key);
  const Nanoseconds end = clock.Now() + kMostTime;
  double nearest = 0;
  std::vector<Pair> differing;
  std::optional<PlanPlace> after;
  // With tenants, the key contains the tenant: plans of other tenants are skipped.
  PlanFilter own_tenant;
  const std::string_view tenant = TenantOfKey(full_key);
  if (!tenant.empty()) own_tenant.tenant = tenant;
  while (asked.has_value() && static_cast<size_t>(out.compared) < kComparedPlans) {
    const PlanPage page = store.ListPlansOf(own_tenant, after, kPage);
    for (const PlanSummary& summary : page.plans) {
      if (clock.Now() >= end || !cancel.Check().ok()) break;
      if (summary.plan_key == own) continue;
      const std::shared_ptr<const StoredPlan> plan = store.PeekPlan(summary.plan_key);
      if (plan == nullptr) continue;
      if (TenantOfKey(plan->full_key) != tenant) continue;
      const std::optional<Fields> stored = FieldHasher::Fields(plan->full_key);
      if (!stored.has_value()) continue;
      ++out.compared;
      std::vector<Pair> pairs = DifferingFields(*asked, *stored);
      const double distance = DistanceOf(pairs);
      if (out.nearest.has_value() && distance >= nearest) continue;
      nearest = distance;
      out.nearest = summary.plan_key;
      differing = std::move(pairs);
    }
    after = page.last;
    if (!after.has_value() || clock.Now() >= end || !cancel.Check().ok()) break;
  }
  for (const Pair& field : differing) {
    out.differences.push_back(DescribeDifference(field.name, field.asked, field.stored));
  }
  out.summary = SummaryOf(out);
  return out;
}

}  // namespace fusion
