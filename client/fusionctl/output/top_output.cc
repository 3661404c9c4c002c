#include "client/fusionctl/output/top_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "client/fusionctl/output/terminal.h"
#include "core/base/hash.h"
#include "core/base/text/text.h"
#include "core/wire/basics/scalars.h"

namespace fusion {
namespace {

using Json = nlohmann::ordered_json;
using Status = v1::GetServerStatusResponse;

// Rows of a table of methods.
constexpr size_t kMethods = 8;

// A server that has restarted counts from 0 again.
bool HasInterval(const TopView& view) {
  return view.before.has_value() && view.now.uptime_seconds() > view.before->uptime_seconds();
}

double SecondsOf(const TopView& view) {
  return view.now.uptime_seconds() - (HasInterval(view) ? view.before->uptime_seconds() : 0);
}

std::map<std::string, int64_t> CodesOf(const Status& status) {
  std::map<std::string, int64_t> out;
  for (const v1::MethodCalls& method : status.methods()) {
    for (const auto& [code, count] : method.finished()) out[code] += count;
  }
  return out;
}

const v1::MethodCalls* FindMethod(const Status& status, const std::string& name) {
  for (const v1::MethodCalls& method : status.methods()) {
    if (method.method() == name) return &method;
  }
  return nullptr;
}

int64_t Finished(const v1::MethodCalls& method) {
  int64_t out = 0;
  for (const auto& [code, count] : method.finished()) out += count;
  return out;
}

// Totals in the interval; since the start if there is none.
int64_t Since(const TopView& view, int64_t now, int64_t before) {
  return HasInterval(view) ? now - before : now;
}

double PerSecond(const TopView& view, int64_t count) {
  const double seconds = SecondsOf(view);
  return seconds > 0 ? static_cast<double>(count) / seconds : 0;
}

struct CodeRow {
  std::string code;
  double per_second = 0;
  int64_t total = 0;
};

std::vector<CodeRow> CodeRows(const TopView& view) {
  std::map<std::string, int64_t> before;
  if (HasInterval(view)) before = CodesOf(*view.before);
  std::vector<CodeRow> out;
  for (const auto& [code, count] : CodesOf(view.now)) {
    out.push_back({code, PerSecond(view, count - before[code]), count});
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const CodeRow& a, const CodeRow& b) { return a.total > b.total; });
  return out;
}

struct MethodRow {
  std::string method;
  double per_second = 0;
  double mean_us = 0;  // of those that ended in the interval; 0: none did
  int64_t total = 0;
};

std::vector<MethodRow> MethodRows(const TopView& view) {
  std::vector<MethodRow> out;
  for (const v1::MethodCalls& method : view.now.methods()) {
    const v1::MethodCalls* before =
        HasInterval(view) ? FindMethod(*view.before, method.method()) : nullptr;
    const int64_t total = Finished(method);
    const int64_t ended = total - (before == nullptr ? 0 : Finished(*before));
    const double seconds = method.seconds() - (before == nullptr ? 0 : before->seconds());
    out.push_back({method.method(), PerSecond(view, ended),
                   ended > 0 ? seconds / static_cast<double>(ended) * 1e6 : 0, total});
  }
  std::stable_sort(out.begin(), out.end(), [](const MethodRow& a, const MethodRow& b) {
    return std::pair(a.per_second, a.total) > std::pair(b.per_second, b.total);
  });
  return out;
}

// The part of PlanFusion requests whose bytes were answered before; nullopt: there were none.
std::optional<double> WarmRatio(const TopView& view) {
  const Status none;
  const Status& before = HasInterval(view) ? *view.before : none;
  const int64_t hits = Since(view, view.now.warm_hits(), before.warm_hits());
  const int64_t misses = Since(view, view.now.warm_misses(), before.warm_misses());
  if (hits + misses <= 0) return std::nullopt;
  return static_cast<double>(hits) / static_cast<double>(hits + misses);
}

std::string Headline(const TopView& view) {
  const Status& now = view.now;
  std::string out =
      Bold(StrCat("fusiond ", now.version(), " at ", view.address)) +
      StrCat(", up ", HumanAge(now.uptime_seconds()), ", ", now.ready() ? "ready" : "not ready");
  if (!view.lost.empty()) {
    StrAppend(
        &out,
        StrCat("\n", Bad(StrCat("no answer for ", HumanAge(view.lost_seconds), ": ", view.lost))));
  }
  return out + "\n";
}

std::string CallsText(const TopView& view) {
  const Status& now = view.now;
  double all = 0;
  for (const CodeRow& row : CodeRows(view)) all += row.per_second;
  int64_t refused = 0;
  for (const auto& [reason, count] : now.refused()) refused += count;
  return StrCat("calls    ", HumanRate(all), " a second, ",
                HasInterval(view) ? StrCat("over ", HumanMicroseconds(SecondsOf(view) * 1e6))
                                  : StrCat("on average over ", HumanAge(SecondsOf(view))),
                "; ", now.calls() - now.calls_queued(), " running, ", now.calls_queued(),
                " waiting, of ", now.call_limit(), "; ", HumanBytes(now.bytes()), " of ",
                HumanBytes(now.limit_bytes()), " held; ", Count(refused, "call"), " refused; ",
                Count(now.connections(), "connection"), "\n");
}

std::string PlansText(const TopView& view) {
  const Status& now = view.now;
  std::vector<std::string> parts;
  for (const char* from : {"planned", "memory", "store", "shared"}) {
    const auto found = now.plans().find(from);
    if (found != now.plans().end()) parts.push_back(StrCat(found->second, " ", from));
  }
  const std::optional<double> warm = WarmRatio(view);
  return StrCat("plans    ", StrJoin(parts, ", "), "; warm ",
                warm.has_value() ? HumanPercent(*warm) : std::string("-"), "\n");
}

std::string WorkersText(const TopView& view) {
  const v1::CompileWorkers& workers = view.now.workers();
  const int64_t before = HasInterval(view) ? view.before->workers().done() : 0;
  const int64_t bad = workers.failed() + workers.timed_out() + workers.out_of_memory() +
                      workers.crashed() + workers.rejected();
  return StrCat("compile  ", workers.running(), " of ", Count(workers.limit(), "worker"), " busy, ",
                workers.queued(), " waiting, of ", workers.queue_limit(), "; ",
                HumanRate(PerSecond(view, workers.done() - before)), " a second, ", workers.done(),
                " made, ", bad, " not; ", workers.quarantined(), " in quarantine; ",
                Count(workers.restarts(), "restart"), "\n");
}

std::string StoreText(const Status& now) {
  std::string out;
  for (const v1::StoreTier& tier : now.tiers()) {
    const bool limited = tier.limit_bytes() < INT64_MAX;
    StrAppend(&out,
              StrCat(out.empty() ? "store    " : "         ", tier.name(), ": ",
                     Count(tier.plans(), "plan"), ", ", Count(tier.kernels(), "kernel"), ", ",
                     HumanBytes(tier.bytes()),
                     limited ? StrCat(" of ", HumanBytes(tier.limit_bytes())) : "", ", ",
                     tier.evicted(), " evicted",
                     tier.writable() ? "" : StrCat("; not writable: ", tier.not_writable()), "\n"));
  }
  return out;
}

std::string CodeTable(const TopView& view) {
  Table table({{"code"}, {"a second", Table::kRight}, {"in all", Table::kRight}});
  for (const CodeRow& row : CodeRows(view)) {
    table.Add({row.code, HumanRate(row.per_second), StrCat(row.total)});
  }
  return table.ToString();
}

std::string MethodTable(const TopView& view) {
  Table table({{"method"},
               {"a second", Table::kRight},
               {"mean time", Table::kRight},
               {"in all", Table::kRight}});
  std::vector<MethodRow> rows = MethodRows(view);
  if (rows.size() > kMethods) rows.resize(kMethods);
  for (const MethodRow& row : rows) {
    table.Add({row.method, HumanRate(row.per_second),
               row.mean_us > 0 ? HumanMicroseconds(row.mean_us) : "-", StrCat(row.total)});
  }
  return table.ToString();
}

std::string KeyText(const v1::MeasuredPlan& plan) {
  absl::StatusOr<Digest> key = DigestFromWire(plan.plan_key());
  return key.ok() ? key->ToHex() : "";
}

std::string TopPlansText(const Status& now) {
  if (now.top_plans().empty()) return "no latencies of plans were reported\n";
  Table table({{"plan"},
               {"runs", Table::kRight},
               {"measured", Table::kRight},
               {"estimate", Table::kRight},
               {"measured / estimate", Table::kRight, /*spare=*/1},
               {"time in all", Table::kRight},
               {"target", Table::kLeft, /*spare=*/3},
               {"threads", Table::kRight, /*spare=*/2},
               {"model", Table::kCut}});
  for (const v1::MeasuredPlan& plan : now.top_plans()) {
    const bool known = plan.median_us() > 0;
    const bool both = known && plan.estimated_us() > 0;
    table.Add(
        {KeyText(plan).substr(0, 8), StrCat(plan.calls()),
         known ? HumanMicroseconds(plan.median_us()) : "-", HumanMicroseconds(plan.estimated_us()),
         both ? fmt::format("{:.2f} x", plan.median_us() / plan.estimated_us()) : "-",
         HumanMicroseconds(plan.median_us() * static_cast<double>(plan.calls())), plan.target(),
         StrCat(plan.threads()), plan.model_name().empty() ? "-" : plan.model_name()});
  }
  return table.ToString();
}

Json MapJson(const google::protobuf::Map<std::string, int64_t>& map) {
  const std::map<std::string, int64_t> sorted(map.begin(), map.end());
  return sorted;
}

Json WorkersJson(const v1::CompileWorkers& w) {
  return {{"limit", w.limit()},
          {"alive", w.alive()},
          {"running", w.running()},
          {"queued", w.queued()},
          {"queue_limit", w.queue_limit()},
          {"done", w.done()},
          {"failed", w.failed()},
          {"timed_out", w.timed_out()},
          {"out_of_memory", w.out_of_memory()},
          {"crashed", w.crashed()},
          {"cancelled", w.cancelled()},
          {"rejected", w.rejected()},
          {"restarts", w.restarts()},
          {"quarantined", w.quarantined()},
          {"failures", w.failures()}};
}

Json TiersJson(const Status& now) {
  Json out = Json::array();
  for (const v1::StoreTier& tier : now.tiers()) {
    out.push_back({{"name", tier.name()},
                   {"plans", tier.plans()},
                   {"kernels", tier.kernels()},
                   {"bytes", tier.bytes()},
                   {"limit_bytes", tier.limit_bytes()},
                   {"evicted", tier.evicted()},
                   {"writable", tier.writable()},
                   {"not_writable", tier.not_writable()}});
  }
  return out;
}

Json TopPlansJson(const Status& now) {
  Json out = Json::array();
  for (const v1::MeasuredPlan& plan : now.top_plans()) {
    out.push_back({{"plan_key", KeyText(plan)},
                   {"model_name", plan.model_name()},
                   {"target", plan.target()},
                   {"threads", plan.threads()},
                   {"calls", plan.calls()},
                   {"median_us", plan.median_us()},
                   {"estimated_us", plan.estimated_us()},
                   {"kernels", plan.kernels()}});
  }
  return out;
}

}  // namespace

std::string TopText(const TopView& view) {
  return StrCat(Headline(view), "\n", CallsText(view), PlansText(view), WorkersText(view),
                StoreText(view.now), "\n", CodeTable(view), "\n", MethodTable(view), "\n",
                TopPlansText(view.now));
}

Json TopJson(const TopView& view) {
  const Status& now = view.now;
  Json codes = Json::object();
  for (const CodeRow& row : CodeRows(view)) {
    codes[row.code] = {{"per_second", row.per_second}, {"total", row.total}};
  }
  Json methods = Json::object();
  for (const MethodRow& row : MethodRows(view)) {
    methods[row.method] = {
        {"per_second", row.per_second}, {"mean_us", row.mean_us}, {"total", row.total}};
  }
  const std::optional<double> warm = WarmRatio(view);
  return {{"address", view.address},
          {"version", now.version()},
          {"uptime_seconds", now.uptime_seconds()},
          {"ready", now.ready()},
          {"unix_ms", now.unix_ms()},
          {"rates_over_seconds", SecondsOf(view)},
          {"codes", codes},
          {"methods", methods},
          {"plans", MapJson(now.plans())},
          {"warm_ratio", warm.has_value() ? Json(*warm) : Json(nullptr)},
          {"calls", now.calls()},
          {"call_limit", now.call_limit()},
          {"calls_queued", now.calls_queued()},
          {"bytes", now.bytes()},
          {"limit_bytes", now.limit_bytes()},
          {"refused", MapJson(now.refused())},
          {"connections", now.connections()},
          {"connection_limit", now.connection_limit()},
          {"workers", WorkersJson(now.workers())},
          {"tiers", TiersJson(now)},
          {"measured_plans", now.measured_plans()},
          {"top_plans", TopPlansJson(now)}};
}

}  // namespace fusion
