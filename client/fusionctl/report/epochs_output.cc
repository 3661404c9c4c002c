#include "client/fusionctl/report/epochs_output.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

#include "client/fusionctl/output/plan_output.h"
#include "client/fusionctl/output/terminal.h"
#include "client/fusionctl/report/report_figures.h"
#include "core/base/utc_time.h"

namespace fusion {
namespace {

using std::chrono::system_clock;

std::string TimeText(int64_t unix_ms) {
  return UtcTimeText(system_clock::time_point(std::chrono::milliseconds(unix_ms)));
}

std::string LnText(double ln) { return HumanPercent(std::expm1(ln)); }

// "12 % -> 8 %".
template <typename Shown>
std::string Change(double before, double after, Shown shown) {
  return StrCat(shown(before), " -> ", shown(after));
}

std::string EvidenceText(const Epoch& epoch) {
  const HeldBackScore& a = epoch.before;
  const HeldBackScore& b = epoch.after;
  std::string out = StrCat("  on kernels that it was not fitted to: median error ",
                           Change(a.errors.median, b.errors.median, LnText), ", 90 % are below ",
                           Change(a.errors.p90, b.errors.p90, LnText), "\n  rank correlation ",
                           Change(a.rank, b.rank, ShortNumber));
  if (b.choices > 0) {
    StrAppend(&out, StrCat(", regret of ", Count(b.choices, "choice"), " ",
                           Change(a.regret, b.regret, LnText)));
  }
  return out + "\n";
}

std::string EpochText(const Epoch& epoch) {
  std::string out = StrCat(
      Bold(StrCat("epoch ", epoch.number)), ": ", EpochStateName(epoch.state()), ", for ",
      epoch.device.target, ", ", epoch.device.isa, ", ", Count(epoch.device.threads, "thread"),
      epoch.tenant.empty() ? "" : StrCat(", plans of tenant ", epoch.tenant), ", fitted to ",
      Count(epoch.kernels, "kernel"), "\n", EvidenceText(epoch), "  measured / spec: ",
      StrJoin(NamedFactors(epoch.factors), ", ",
              [](const auto& named) { return StrCat(named.first, " ", FactorText(named.second)); }),
      "\n");
  if (!epoch.factors.classes.empty()) {
    StrAppend(&out, StrCat("  what these leave: ",
                           StrJoin(epoch.factors.classes, ", ",
                                   [](const auto& entry) {
                                     const auto& [of, factor] = entry;
                                     return StrCat(of.form, " bound by ", of.bound, " ",
                                                   FactorText(factor));
                                   }),
                           "\n"));
  }
  for (const EpochEvent& event : epoch.events) {
    StrAppend(&out, StrCat("  ", TimeText(event.unix_ms), " ", EpochStateName(event.state), ": ",
                           event.reason, "\n"));
  }
  if (epoch.plans.empty()) return out;
  Table table({{"  plan"},
               {"as it is", Table::kRight},
               {"with the epoch", Table::kRight},
               {"model"},
               {"", Table::kCut}});
  for (const EpochPlan& plan : epoch.plans) {
    table.Add({StrCat("  ", plan.plan_key.ToHex().substr(0, 8)), HumanMicroseconds(plan.old_us),
               HumanMicroseconds(plan.new_us), plan.model_name.empty() ? "-" : plan.model_name,
               plan.verdict});
  }
  return out + table.ToString();
}

Json ScoreJson(const HeldBackScore& score) {
  return {{"timings", score.errors.timings}, {"median", score.errors.median},
          {"p90", score.errors.p90},         {"choices", score.choices},
          {"regret", score.regret},          {"rank_correlation", score.rank}};
}

Json EpochJson(const Epoch& epoch) {
  Json constants = Json::array();
  for (const auto& [name, factor] : NamedFactors(epoch.factors)) {
    constants.push_back({{"name", name}, {"factor", factor}});
  }
  Json classes = Json::array();
  for (const auto& [of, factor] : epoch.factors.classes) {
    classes.push_back({{"bound", of.bound}, {"form", of.form}, {"factor", factor}});
  }
  Json events = Json::array();
  for (const EpochEvent& event : epoch.events) {
    events.push_back({{"unix_ms", event.unix_ms},
                      {"state", EpochStateName(event.state)},
                      {"reason", event.reason}});
  }
  Json plans = Json::array();
  for (const EpochPlan& plan : epoch.plans) {
    plans.push_back({{"plan_key", plan.plan_key.ToHex()},
                     {"model", plan.model_name},
                     {"old_us", plan.old_us},
                     {"new_us", plan.new_us},
                     {"verdict", plan.verdict}});
  }
  return {{"number", epoch.number},
          {"state", EpochStateName(epoch.state())},
          {"tenant", epoch.tenant},
          {"target", epoch.device.target},
          {"isa", epoch.device.isa},
          {"threads", epoch.device.threads},
          {"kernels", epoch.kernels},
          {"timings", epoch.timings},
          {"constants", constants},
          {"classes", classes},
          {"before", ScoreJson(epoch.before)},
          {"after", ScoreJson(epoch.after)},
          {"events", events},
          {"plans", plans}};
}

}  // namespace

std::string EpochsText(const EpochList& list, size_t most) {
  std::string out;
  const size_t epochs = std::min(most, list.epochs.size());
  if (epochs == 0) {
    out =
        "no epochs: plans are made with the constants of the device specs. A service that learns "
        "makes one once reports of latencies show constants that predict better.\n";
  }
  for (size_t i = 0; i < epochs; ++i) {
    StrAppend(&out, StrCat(i == 0 ? "" : "\n", EpochText(list.epochs[i])));
  }
  if (list.epochs.size() > epochs) {
    StrAppend(&out, StrCat("\nand ", list.epochs.size() - epochs, " older ones (--limit)\n"));
  }
  const size_t decisions = std::min(most, list.decisions.size());
  if (decisions > 0) StrAppend(&out, "\ndecisions about plans, the newest first\n");
  for (size_t i = 0; i < decisions; ++i) {
    const LearnedDecision& d = list.decisions[i];
    StrAppend(&out, StrCat("  ", TimeText(d.unix_ms), " plan ", d.plan_key.ToHex().substr(0, 8),
                           d.model_name.empty() ? "" : StrCat(" of ", d.model_name),
                           d.epoch == 0 ? "" : StrCat(", epoch ", d.epoch), ": ", d.text, "\n"));
  }
  return out;
}

Json EpochsJson(const EpochList& list, size_t most) {
  Json epochs = Json::array();
  for (size_t i = 0; i < std::min(most, list.epochs.size()); ++i) {
    epochs.push_back(EpochJson(list.epochs[i]));
  }
  Json decisions = Json::array();
  for (size_t i = 0; i < std::min(most, list.decisions.size()); ++i) {
    const LearnedDecision& d = list.decisions[i];
    decisions.push_back({{"unix_ms", d.unix_ms},
                         {"epoch", d.epoch},
                         {"tenant", d.tenant},
                         {"plan_key", d.plan_key.ToHex()},
                         {"model", d.model_name},
                         {"text", d.text}});
  }
  return {{"epochs", epochs}, {"decisions", decisions}};
}

}  // namespace fusion
