#include "client/fusionctl/service/plan_keys.h"

#include <algorithm>
#include <cctype>

namespace fusion {
namespace {

constexpr size_t kKeyDigits = 64;
// Maximum number of matching plans named in an error.
constexpr size_t kNamed = 4;

}  // namespace

bool LooksLikeKey(std::string_view word) {
  return word.size() >= kMinKeyDigits && word.size() <= kKeyDigits &&
         word.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos;
}

absl::StatusOr<Digest> FindPlan(std::string_view word, const std::vector<PlanSummary>& plans) {
  std::string digits(word);
  for (char& c : digits) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  std::vector<Digest> found;
  for (const PlanSummary& plan : plans) {
    if (plan.plan_key.ToHex().starts_with(digits)) found.push_back(plan.plan_key);
  }
  if (found.empty()) return NotFound("no stored plan has a key that begins with ", digits);
  if (found.size() == 1) return found[0];
  size_t named = std::min(found.size(), kNamed);
  std::string names;
  for (size_t i = 0; i < named; ++i) StrAppend(&names, StrCat(i > 0 ? ", " : "", found[i].ToHex()));
  return InvalidArgument(found.size(), " plans have keys that begin with ", digits, ": ", names,
                         named < found.size() ? ", ..." : "");
}

size_t UniqueDigits(const std::vector<PlanSummary>& plans) {
  std::vector<std::string> keys;
  for (const PlanSummary& plan : plans) keys.push_back(plan.plan_key.ToHex());
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  size_t digits = kMinKeyDigits;
  for (size_t i = 1; i < keys.size(); ++i) {
    auto [a, b] = std::mismatch(keys[i].begin(), keys[i].end(), keys[i - 1].begin());
    digits = std::max(digits, static_cast<size_t>(a - keys[i].begin()) + 1);
  }
  return digits;
}

}  // namespace fusion
