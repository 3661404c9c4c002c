#include "core/pipeline/requests/callers_words.h"

#include <string_view>

#include "absl/strings/cord.h"
#include "core/plan/planner.h"

namespace fusion {
namespace {

// Replaces the planner's canonical positions in an error by the caller's node names.
absl::Status NameFailedNodes(const absl::Status& status, const std::vector<std::string>& names) {
  constexpr std::string_view kNameless = "node \"\"";
  absl::optional<absl::Cord> payload = status.GetPayload(kFailedNode);
  if (!payload.has_value()) return status;
  std::string positions(*payload);
  std::string_view rest = Message(status);
  std::string message;
  for (std::string_view position : StrSplit(positions, ' ')) {
    size_t at = rest.find(kNameless);
    auto node = static_cast<size_t>(std::stoll(std::string(position)));
    if (at == std::string_view::npos || node >= names.size()) break;
    message += StrCat(rest.substr(0, at), "node ", QuoteShort(names[node]));
    rest.remove_prefix(at + kNameless.size());
  }
  return absl::Status(status.code(), StrCat(message, rest));
}

// Names the request's rules that an error is about. If it is about rules of the service only (they
// precede the request's), the error becomes Internal: the request is not at fault.
void BlameRules(const absl::Status& failed, const Rules& rules, const Rules& of_request,
                absl::Status* named) {
  absl::optional<absl::Cord> payload = failed.GetPayload(kFailedRules);
  if (!payload.has_value()) return;
  const size_t own = rules.size() - of_request.size();
  std::vector<std::string> names;
  const std::string positions(*payload);
  for (std::string_view position : StrSplit(positions, ' ')) {
    auto rule = static_cast<size_t>(std::stoll(std::string(position)));
    if (rule >= own) names.push_back(rules[rule].name);
  }
  if (names.empty()) {
    *named = Internal("a rule of this service (--rules-file): ", Message(*named));
  } else {
    named->SetPayload(kBlamedRules, absl::Cord(StrJoin(names, " ")));
  }
}

}  // namespace

absl::Status InCallersWords(const absl::Status& failed, const std::vector<std::string>& nodes,
                            const Rules& rules, const Rules& of_request) {
  absl::Status named = NameFailedNodes(failed, nodes);
  BlameRules(failed, rules, of_request, &named);
  return named;
}

}  // namespace fusion
