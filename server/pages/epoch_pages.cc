#include "server/pages/epoch_pages.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "core/base/text/human_numbers.h"
#include "core/base/text/text.h"
#include "core/base/utc_time.h"

namespace fusion {
namespace {

using Kind = PageTable::Kind;

std::string WhenText(int64_t unix_ms) {
  return UtcTimeText(std::chrono::system_clock::time_point(std::chrono::milliseconds(unix_ms)));
}

std::string LnText(double ln) { return HumanPercent(std::expm1(ln)); }

Mood MoodOf(EpochState state) {
  if (state == EpochState::kActive) return Mood::kGood;
  return state == EpochState::kRolledBack ? Mood::kBad : Mood::kQuiet;
}

Markup PlanLink(const Digest& key) {
  const std::string hex = key.ToHex();
  return Link(StrCat("/plans/", hex), Words(hex.substr(0, 12)));
}

Markup ScoreTable(const Epoch& epoch) {
  PageTable table("Estimates of kernels that the constants were not fitted to",
                  {{"Constants", Kind::kName},
                   {"Median error", Kind::kNumber},
                   {"90 % are below", Kind::kSpareNumber},
                   {"Rank correlation", Kind::kSpareNumber},
                   {"Regret", Kind::kNumber}});
  auto add = [&](std::string_view name, const HeldBackScore& score) {
    table.Add({Words(name), Words(LnText(score.errors.median)), Words(LnText(score.errors.p90)),
               Words(fmt::format("{:.3f}", score.rank)),
               Words(score.choices == 0 ? "-" : LnText(score.regret))});
  };
  add("in force before", epoch.before);
  add("of this epoch", epoch.after);
  return table.Show("Nothing was compared.");
}

Markup FactorFacts(const CostFactors& f) {
  FactList facts;
  auto add = [&](std::string_view name, double factor) {
    facts.Add(name, fmt::format("{:.2f} x", factor));
  };
  for (const auto& [name, factor] : NamedFactors(f)) add(name, factor);
  for (const auto& [of, factor] : f.classes) add(StrCat(of.form, " bound by ", of.bound), factor);
  return facts.Show();
}

Markup EventTable(const Epoch& epoch) {
  PageTable table("History",
                  {{"State", Kind::kName}, {"Since", Kind::kSpareName}, {"Why", Kind::kText}});
  for (const EpochEvent& event : epoch.events) {
    table.Add({Badge(MoodOf(event.state), EpochStateName(event.state)),
               Words(WhenText(event.unix_ms)), Foreign(event.reason, 400)});
  }
  return table.Show("There is no history.");
}

Markup PlanTable(const Epoch& epoch) {
  PageTable table("Plans that it changes, estimated with its constants",
                  {{"Plan", Kind::kName},
                   {"Model", Kind::kName},
                   {"As it is", Kind::kNumber},
                   {"With the epoch", Kind::kNumber},
                   {"What became of it", Kind::kText}});
  for (const EpochPlan& plan : epoch.plans) {
    table.Add({PlanLink(plan.plan_key), Foreign(plan.model_name, 60),
               Words(HumanMicroseconds(plan.old_us)), Words(HumanMicroseconds(plan.new_us)),
               Foreign(plan.verdict, 200)});
  }
  return table.rows() == 0 ? Markup() : table.Show("");
}

Markup EpochSection(const Epoch& epoch) {
  const std::string heading = StrCat("Epoch ", epoch.number, ", ", EpochStateName(epoch.state()));
  Markup about = Words("For ") + Foreign(epoch.device.target, 80) +
                 Words(StrCat(", ", epoch.device.isa, ", ", epoch.device.threads,
                              epoch.device.threads == 1 ? " thread" : " threads"));
  if (!epoch.tenant.empty())
    about = about + Words(", plans of tenant ") + Foreign(epoch.tenant, 64);
  about = about + Words(StrCat(". Fitted to ", epoch.kernels,
                               " kernels. Measured cost / cost by "
                               "the device spec:"));
  return PageSection(heading, Paragraph(about) + FactorFacts(epoch.factors) + ScoreTable(epoch) +
                                  EventTable(epoch) + PlanTable(epoch));
}

}  // namespace

Markup EpochsContent(const EpochList& list) {
  Markup out = Paragraph(Words(
      "Constants of devices that reported latencies have corrected. Regret is how much slower "
      "the alternative is that the constants choose than the fastest one."));
  if (list.epochs.empty()) {
    out = out + Paragraph(Words("There are none: plans are made with the constants of the device "
                                "specs."));
  }
  for (size_t i = 0; i < std::min(kShownEpochs, list.epochs.size()); ++i) {
    out = out + EpochSection(list.epochs[i]);
  }
  if (list.epochs.size() > kShownEpochs) {
    out = out + Paragraph(Words(StrCat("fusionctl epochs shows ", list.epochs.size() - kShownEpochs,
                                       " older ones.")));
  }
  PageTable table("What was decided about stored plans, the newest first",
                  {{"Plan", Kind::kName},
                   {"Model", Kind::kName},
                   {"When", Kind::kSpareName},
                   {"Epoch", Kind::kSpareNumber},
                   {"Decision", Kind::kText}});
  for (size_t i = 0; i < std::min(kShownDecisions, list.decisions.size()); ++i) {
    const LearnedDecision& d = list.decisions[i];
    table.Add({PlanLink(d.plan_key), Foreign(d.model_name, 60), Words(WhenText(d.unix_ms)),
               Words(d.epoch == 0 ? "-" : StrCat(d.epoch)), Foreign(d.text, 400)});
  }
  return out + PageSection("Decisions", table.Show("There are none."));
}

}  // namespace fusion
