// LedgerContent of plan_pages.h.
#include <algorithm>
#include <cmath>

#include "core/base/text/human_numbers.h"
#include "core/base/text/text.h"
#include "core/bundle/explanation.h"
#include "core/bundle/text.h"
#include "server/pages/plan_pages.h"

namespace fusion {
namespace {

using Kind = PageTable::Kind;

constexpr size_t kReasonCharacters = 400;

std::string GainText(double us) {
  return StrCat(us < 0 ? "-" : "", HumanMicroseconds(std::abs(us)));
}

// "3 > 4 and 11 more": the first place of an entry.
std::string PlaceWords(const PlanDecision& d) {
  if (d.places.empty()) return "-";
  const DecisionPlace& place = d.places.front();
  std::string out = StrCat(place.first_group);
  if (d.subject == DecisionSubject::kPair) StrAppend(&out, StrCat(" > ", place.second_group));
  if (d.subject == DecisionSubject::kSiblings) StrAppend(&out, StrCat(" | ", place.second_group));
  if (d.times > 1) StrAppend(&out, StrCat(" and ", d.times - 1, " more"));
  return out;
}

Markup WhyMarkup(const PlanDecision& d) {
  Markup out = Foreign(d.reason, kReasonCharacters);
  if (!d.what_ifs.empty()) {
    out = out + Markup{"<br/>"} + Foreign(d.what_ifs.front().words, kReasonCharacters);
  }
  return out;
}

Markup LedgerTable(const Plan& plan, DecisionSubject subject, std::string caption,
                   std::string_view nothing) {
  const bool groups = subject == DecisionSubject::kGroup;
  PageTable table(std::move(caption), {{groups ? "Group" : "Groups", Kind::kName},
                                       {"Verdict", Kind::kName},
                                       {"Apart", Kind::kNumber},
                                       {"One kernel", Kind::kNumber},
                                       {"Gain", Kind::kNumber},
                                       {"Reason, and what would change it", Kind::kText}});
  size_t all = 0;
  for (const PlanDecision& d : plan.decisions) {
    if (d.subject != subject || ++all > kLedgerRows) continue;
    const double apart = (d.first ? d.first->time_us : 0) + (d.second ? d.second->time_us : 0);
    const Mood mood = d.verdict == Verdict::kChosen ? Mood::kGood : Mood::kQuiet;
    table.Add({Words(PlaceWords(d)),
               Badge(mood, d.code.empty() ? VerdictName(d.verdict) : std::string_view(d.code)),
               Words(d.first || d.second ? HumanMicroseconds(apart) : std::string("-")),
               Words(d.together ? HumanMicroseconds(d.together->time_us) : std::string("-")),
               Words(d.together ? GainText(d.benefit_us) : std::string("-")), WhyMarkup(d)});
  }
  const Markup shown = table.Show(nothing);
  if (all <= kLedgerRows) return shown;
  return shown + Paragraph(Words(StrCat("The first ", kLedgerRows, " of ", all,
                                        " entries; fusionctl explain shows all.")));
}

Markup CodeList(const Plan& plan) {
  const absl::StatusOr<PlanExplanation> explanation = Explain(plan, {});
  if (!explanation.ok() || explanation->codes.empty()) return {};
  FactList out;
  for (const RefusalMeaning& code : explanation->codes) out.Add(code.code, code.meaning);
  return Paragraph(Words("The words of verdicts:")) + out.Show();
}

}  // namespace

Markup LedgerContent(const Plan& plan) {
  return LedgerTable(plan, DecisionSubject::kGroup, "Why each group is one kernel",
                     "The plan has no entries about groups.") +
         LedgerTable(plan, DecisionSubject::kPair,
                     "Why groups that read from each other are two kernels",
                     "No group reads from another one.") +
         LedgerTable(plan, DecisionSubject::kSiblings,
                     "Why groups that read the same are two kernels",
                     "No two groups read the same, or that is not a reason to join them.") +
         CodeList(plan) +
         Paragraph(Words(StrCat("The search weighed ", Count(plan.candidates, "candidate"), ".")));
}

}  // namespace fusion
