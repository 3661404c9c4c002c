#include "server/pages/overview_page.h"

#include <algorithm>

#include "core/base/text/human_numbers.h"
#include "core/base/text/text.h"
#include "core/base/utc_time.h"
#include "server/observe/status_of.h"

namespace fusion {
namespace {

using Kind = PageTable::Kind;

// Rows of a list of kernels in quarantine.
constexpr size_t kQuarantineRows = 100;
// Rows of a list of tenants.
constexpr size_t kTenantRows = 64;

double SecondsSince(const ServerStatus& status, const std::optional<EarlierCounts>& before) {
  return ToMilliseconds(status.uptime - (before ? before->uptime : Nanoseconds(0))) / 1e3;
}

int64_t Sum(const std::map<std::string, int64_t>& counts) {
  int64_t out = 0;
  for (const auto& [name, count] : counts) out += count;
  return out;
}

double Part(int64_t of, int64_t whole) {
  return whole > 0 ? static_cast<double>(of) / static_cast<double>(whole) : 0;
}

Markup Limited(int64_t of, int64_t limit) {
  return Bar(Part(of, limit), StrCat(of, " of ", limit));
}

Markup LimitedBytes(int64_t of, int64_t limit) {
  if (limit == INT64_MAX) return Words(HumanBytes(of));
  return Bar(Part(of, limit), StrCat(HumanBytes(of), " of ", HumanBytes(limit)));
}

Markup Figures(const ServerStatus& status, const ServerSnapshot& now,
               const std::optional<EarlierCounts>& before) {
  const double seconds = SecondsSince(status, before);
  const int64_t finished = Sum(FinishedCalls(status));
  int64_t earlier = 0;
  if (before) {
    for (const auto& [method, codes] : before->finished) earlier += Sum(codes);
  }
  FigureList out;
  out.Add("State", status.ready ? Badge(Mood::kGood, "ready") : Badge(Mood::kBad, "not ready"),
          Words(StrCat("up ", HumanAge(ToMilliseconds(status.uptime) / 1e3))));
  const double rate = seconds > 0 ? static_cast<double>(finished - earlier) / seconds : 0;
  out.Add("Calls a second", Words(HumanRate(rate)),
          Words(StrCat(before ? "over the last " : "on average over ", HumanAge(seconds), "; ",
                       finished, " in all")));
  const int64_t asked = status.warm_hits + status.warm_misses;
  out.Add("Warm requests",
          Words(asked > 0 ? HumanPercent(Part(status.warm_hits, asked)) : std::string("-")),
          Words(StrCat("answered from memory by their bytes, of ", asked)));
  out.Add("Calls under way", Words(StrCat(status.calls)),
          Words(StrCat(status.calls_queued, " waiting; at most ", status.call_limit)));
  out.Add("Compile workers", Words(StrCat(now.workers.running, " of ", now.worker_limit)),
          Words(StrCat("busy; ", Count(now.workers.queued, "kernel"), " waiting")));
  const StoreStats* last = status.tiers.empty() ? nullptr : &status.tiers.back();
  if (last != nullptr) {
    out.Add("Plans stored", Words(StrCat(last->plans)),
            Words(StrCat(Count(last->kernels, "kernel"), ", ", HumanBytes(last->bytes))) +
                (last->writable ? Markup() : Badge(Mood::kBad, "not writable")));
  }
  return out.Show();
}

Markup CallTable(const ServerStatus& status, const std::optional<EarlierCounts>& before) {
  PageTable table("Calls that ended, by method and code", {{"Method", Kind::kName},
                                                           {"Code", Kind::kName},
                                                           {"A second", Kind::kNumber},
                                                           {"In all", Kind::kNumber},
                                                           {"Mean time", Kind::kSpareNumber}});
  const double seconds = SecondsSince(status, before);
  for (const MethodCounts& method : status.methods) {
    const int64_t all = Sum(method.finished);
    for (const auto& [code, count] : method.finished) {
      int64_t earlier = 0;
      if (before) {
        const auto of = before->finished.find(method.method);
        const auto found =
            of == before->finished.end() ? CodeCounts::const_iterator{} : of->second.find(code);
        if (of != before->finished.end() && found != of->second.end()) earlier = found->second;
      }
      const double rate = seconds > 0 ? static_cast<double>(count - earlier) / seconds : 0;
      table.Add({Words(method.method), Badge(code == "OK" ? Mood::kGood : Mood::kBad, code),
                 Words(HumanRate(rate)), Words(StrCat(count)),
                 Words(all > 0 ? HumanMicroseconds(method.seconds / static_cast<double>(all) * 1e6)
                               : std::string("-"))});
    }
  }
  return table.Show("No call has ended yet.");
}

Markup CacheTable(const ServerStatus& status) {
  PageTable table("Plans answered, by where they came from",
                  {{"From", Kind::kName}, {"Plans", Kind::kNumber}, {"Share", Kind::kName}});
  const int64_t all = Sum(status.plans);
  for (const auto& [from, count] : status.plans) {
    const double part = Part(count, all);
    table.Add({Words(from), Words(StrCat(count)), Bar(part, HumanPercent(part))});
  }
  return table.Show("No plan was answered yet.");
}

Markup StoreTable(const ServerStatus& status) {
  PageTable table("Tiers of the store, nearest first", {{"Tier", Kind::kName},
                                                        {"State", Kind::kName},
                                                        {"Plans", Kind::kNumber},
                                                        {"Kernels", Kind::kSpareNumber},
                                                        {"Bytes", Kind::kText},
                                                        {"Pinned plans", Kind::kSpareNumber},
                                                        {"Evicted", Kind::kSpareNumber},
                                                        {"Damaged", Kind::kSpareNumber}});
  for (const StoreStats& tier : status.tiers) {
    table.Add({Words(TierName(tier.tier)),
               tier.writable
                   ? Badge(Mood::kGood, "writable")
                   : Badge(Mood::kBad, "not writable") + Words(" ") + Foreign(tier.not_writable),
               Words(StrCat(tier.plans)), Words(StrCat(tier.kernels)),
               LimitedBytes(tier.bytes, tier.limit_bytes), Words(StrCat(tier.pinned_plans)),
               Words(StrCat(tier.evicted)), Words(StrCat(tier.dropped))});
  }
  return table.Show("There is no store.");
}

Markup TopTable(const ServerStatus& status) {
  PageTable table("Plans whose runs took most time, of those with the latest reports",
                  {{"Plan", Kind::kName},
                   {"Model", Kind::kName},
                   {"Runs", Kind::kSpareNumber},
                   {"Measured", Kind::kNumber},
                   {"Estimate", Kind::kSpareNumber},
                   {"Of estimate", Kind::kNumber},
                   {"Time in all", Kind::kSpareNumber},
                   {"Target", Kind::kSpareName}});
  for (const PlanUse& plan : status.top_plans) {
    const std::string key = plan.plan_key.ToHex();
    const bool known = plan.median_us > 0;
    table.Add({Link(StrCat("/plans/", key), Words(key.substr(0, 8))), Foreign(plan.model_name, 48),
               Words(StrCat(plan.calls)),
               Words(known ? HumanMicroseconds(plan.median_us) : std::string("-")),
               Words(HumanMicroseconds(plan.estimated_us)),
               RatioMark(plan.median_us, plan.estimated_us),
               Words(HumanMicroseconds(plan.TotalUs())),
               Words(StrCat(plan.target, ", ", Count(plan.threads, "thread")))});
  }
  return table.Show(
      "No latencies were reported. The client library reports them, and so does fusionctl bench.");
}

Markup RefusedTable(const ServerStatus& status) {
  PageTable table("Calls refused, by reason", {{"Reason", Kind::kName}, {"Calls", Kind::kNumber}});
  for (const auto& [reason, count] : status.refused) {
    if (count > 0) table.Add({Words(reason), Words(StrCat(count))});
  }
  return table.Show("No call was refused.");
}

Markup TenantTable(const ServerSnapshot& now) {
  std::vector<std::pair<std::string, int64_t>> rows(now.tenant_bytes.begin(),
                                                    now.tenant_bytes.end());
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  PageTable table("Bytes that running calls hold, by tenant",
                  {{"Tenant", Kind::kName}, {"Bytes", Kind::kNumber}});
  for (size_t i = 0; i < std::min(rows.size(), kTenantRows); ++i) {
    table.Add({Foreign(rows[i].first, 64), Words(HumanBytes(rows[i].second))});
  }
  return table.Show("No call runs.");
}

Markup LimitTable(const ServerStatus& status, const ServerSnapshot& now) {
  PageTable table("What is in use, and the limit",
                  {{"Of", Kind::kName}, {"In use", Kind::kText}, {"Option", Kind::kSpareName}});
  table.Add({Words("Calls, running and waiting"), Limited(status.calls, status.call_limit),
             Words("--request-threads, --request-queue")});
  table.Add({Words("Calls that stream their answers"), Limited(now.streams, now.stream_limit),
             Words("--max-streams")});
  table.Add({Words("Bytes of calls under way"), LimitedBytes(status.bytes, status.limit_bytes),
             Words("--max-inflight-bytes")});
  table.Add({Words("Memory of planning"),
             LimitedBytes(now.planning_bytes, now.planning_limit_bytes),
             Words("three quarters of --max-inflight-bytes")});
  table.Add({Words("Kernels that wait for a worker"),
             Limited(now.workers.queued, now.compile_queue_limit), Words("--compile-queue")});
  table.Add({Words("Connections"), Limited(status.connections, status.connection_limit),
             Words("--max-connections")});
  for (const auto& [kind, bytes] : now.recent_bytes) {
    table.Add({Words(StrCat("Memory of recent ", kind)),
               LimitedBytes(bytes, now.recent_limit_bytes), Words("an eighth of --memory-limit")});
  }
  return table.Show("");
}

Markup QuarantineTable(const std::vector<Quarantine::Entry>& entries) {
  PageTable table("Kernels in quarantine: two workers died over each",
                  {{"Kernel", Kind::kName}, {"Since", Kind::kName}, {"Reason", Kind::kText}});
  for (size_t i = 0; i < std::min(entries.size(), kQuarantineRows); ++i) {
    const Quarantine::Entry& entry = entries[i];
    const std::string key = entry.key.ToHex();
    table.Add({Link(StrCat("/compile_log/", key), Words(key.substr(0, 8))),
               Words(UtcTimeText(std::chrono::system_clock::time_point(
                   std::chrono::milliseconds(entry.since_unix_ms)))),
               Foreign(entry.reason)});
  }
  const Markup shown = table.Show("No kernel is in quarantine.");
  if (entries.size() <= kQuarantineRows) return shown;
  return shown + Paragraph(Words(StrCat("And ", entries.size() - kQuarantineRows,
                                        " more; /statusz has them all.")));
}

Markup RegisteredTable(const std::vector<RegisteredCapability>& kernels) {
  PageTable table("Registered kernels", {{"Name", Kind::kName},
                                         {"State", Kind::kName},
                                         {"Pattern", Kind::kName},
                                         {"Reason", Kind::kSpareName}});
  for (const RegisteredCapability& kernel : kernels) {
    const Mood mood = kernel.state == RegisteredState::kQuarantined ? Mood::kBad
                      : kernel.state == RegisteredState::kReady     ? Mood::kGood
                                                                    : Mood::kQuiet;
    table.Add({Foreign(kernel.name, 64), Badge(mood, RegisteredStateName(kernel.state)),
               Foreign(kernel.pattern), Foreign(kernel.reason)});
  }
  return table.Show("No kernel is registered (--kernels).");
}

Markup OutcomeTable(const ServerSnapshot& now) {
  const WorkerPoolStats& stats = now.workers;
  PageTable table("Kernels given to the workers, by how that ended",
                  {{"End", Kind::kName}, {"Kernels", Kind::kNumber}});
  auto add = [&](std::string_view end, int64_t count) {
    table.Add({Words(end), Words(StrCat(count))});
  };
  add("made and checked", stats.done);
  add("did not compile, or failed the check", stats.failed);
  add("took too long", stats.timed_out);
  add("needed too much memory", stats.out_of_memory);
  add("two workers died", stats.crashed);
  add("cancelled: nobody waited any more", stats.cancelled);
  add("refused: the queue was full", stats.rejected);
  return table.Show("");
}

}  // namespace

EarlierCounts CountsOf(const ServerStatus& status) {
  EarlierCounts out{.uptime = status.uptime, .finished = {}};
  for (const MethodCounts& method : status.methods) out.finished[method.method] = method.finished;
  return out;
}

Markup OverviewContent(const ServerStatus& status, const ServerSnapshot& now,
                       const std::optional<EarlierCounts>& before) {
  return Figures(status, now, before) + PageSection("Calls", CallTable(status, before)) +
         PageSection("Plans that take most time", TopTable(status)) +
         PageSection("Cache", CacheTable(status)) + PageSection("Store", StoreTable(status));
}

Markup QueueContent(const ServerStatus& status, const ServerSnapshot& now) {
  FactList facts;
  facts.Add("Requests that wait for equal work", StrCat(now.flights_waiting));
  facts.Add("Requests that found equal work under way", StrCat(now.flights_shared));
  facts.Add("Builds ended because nobody waited", StrCat(now.builds_abandoned));
  facts.Add("Plannings ended for lack of memory", StrCat(now.plannings_ended));
  facts.Add("Connections refused", StrCat(now.connections_refused));
  facts.Add("Connections closed by limits", StrCat(now.connections_closed));
  return PageSection("Limits", LimitTable(status, now)) +
         PageSection("Refusals", RefusedTable(status)) + PageSection("Tenants", TenantTable(now)) +
         PageSection("Since the start", facts.Show());
}

Markup WorkersContent(const ServerSnapshot& now, std::string_view compiler, std::string_view isas) {
  const WorkerPoolStats& stats = now.workers;
  FactList facts;
  facts.Add("Busy", Limited(stats.running, now.worker_limit));
  facts.Add("Alive", StrCat(stats.workers));
  facts.Add("Started again", StrCat(stats.restarts));
  facts.Add("Waiting kernels", Limited(stats.queued, now.compile_queue_limit));
  facts.Add("Kernels not tried again for a while", StrCat(now.failures));
  facts.Add("Sandbox", Words(now.sandbox.empty() ? "-" : now.sandbox));
  facts.Add("Compiler", Foreign(compiler));
  facts.Add("Instruction sets it compiles for", Words(isas));
  FactList searches;
  searches.Add("Searches for tiles", StrCat(now.searches.searches));
  searches.Add("Tilings timed", StrCat(now.searches.measured));
  searches.Add("Times reused", StrCat(now.searches.recalled));
  searches.Add("Kernels with other tiles than the model's", StrCat(now.searches.changed));
  searches.Add("Searches cut short", StrCat(now.searches.cut_short));
  return PageSection("Workers", facts.Show()) + PageSection("Kernels", OutcomeTable(now)) +
         PageSection("Quarantine", QuarantineTable(now.quarantine)) +
         PageSection("Registered kernels", RegisteredTable(now.registered)) +
         PageSection("Timed tiles", searches.Show());
}

}  // namespace fusion
