#include <algorithm>
#include <nlohmann/json.hpp>

#include "client/fusionctl/args/arguments.h"
#include "client/fusionctl/args/exit_code.h"
#include "client/fusionctl/args/user_words.h"
#include "client/fusionctl/commands/commands.h"
#include "client/fusionctl/input/model_file.h"
#include "client/fusionctl/output/plan_output.h"
#include "client/fusionctl/output/print.h"
#include "client/fusionctl/output/search_output.h"
#include "client/fusionctl/output/terminal.h"
#include "client/fusionctl/service/session.h"
#include "core/base/files/file.h"
#include "core/base/text/probed_name.h"
#include "core/wire/options/plan_lock.h"

namespace fusion {
namespace {

std::string Saved(double part, double whole) {
  return whole > 0 ? HumanPercent(1 - part / whole) : "";
}

// `tiles`: also the tiling of each kernel.
std::string GroupTable(const FusionReply& reply, bool node_names, bool tiles) {
  const Plan& plan = reply.plan;
  std::vector<Table::Column> columns = {{"group", Table::kRight},
                                        {"kernel"},
                                        {"phases", Table::kRight, /*spare=*/4},
                                        {"nodes", Table::kRight},
                                        {"work", Table::kRight, /*spare=*/3},
                                        {"traffic", Table::kRight},
                                        {"weights", Table::kRight, /*spare=*/1},
                                        {"time", Table::kRight},
                                        {"bound by", Table::kLeft, /*spare=*/2}};
  if (tiles) columns.push_back({"tiles", Table::kCut});
  columns.push_back({"ops", Table::kCut});
  Table table(columns);
  for (size_t g = 0; g < plan.groups.size(); ++g) {
    const PlanGroup& group = plan.groups[g];
    if (group.kind == GroupKind::kPrepare) continue;
    const Estimate& e = group.estimate;
    const PlanKernel& kernel = plan.kernels[static_cast<size_t>(group.kernel)];
    std::vector<std::string> row = {StrCat(g),
                                    kernel.key.ToHex().substr(0, 8),
                                    StrCat(kernel.phases),
                                    StrCat(group.nodes.size()),
                                    e.flops > 0 ? HumanFlops(e.flops) : "-",
                                    HumanBytes(e.activation_bytes + e.recompute_bytes),
                                    HumanBytes(e.weight_bytes),
                                    HumanMicroseconds(e.time_us),
                                    group.bound};
    if (tiles) row.push_back(group.tiles);
    row.push_back(OpsText(group));
    table.Add(std::move(row));
    if (!node_names) continue;
    for (const std::string& name : NodeNames(reply, group.nodes)) {
      std::vector<std::string> under(columns.size());
      under.back() = StrCat("  ", Quote(name));
      table.Add(std::move(under));
    }
  }
  return table.ToString();
}

std::string TotalsTable(const Plan& plan) {
  Table table({{""},
               {"kernels", Table::kRight},
               {"launches", Table::kRight},
               {"traffic", Table::kRight},
               {"weights", Table::kRight},
               {"estimate", Table::kRight}});
  auto row = [&table](std::string_view name, const PlanTotals& t) {
    table.Add({std::string(name), StrCat(t.kernels), StrCat(t.launches),
               HumanBytes(t.activation_bytes), HumanBytes(t.weight_bytes),
               HumanMicroseconds(t.estimated_us)});
  };
  row(plan.fusion == FusionMode::kFused ? "fused" : "this plan", plan.totals);
  row("op by op", plan.op_by_op);
  auto saved = [](auto part, auto whole) {
    return Saved(static_cast<double>(part), static_cast<double>(whole));
  };
  const PlanTotals& a = plan.totals;
  const PlanTotals& b = plan.op_by_op;
  table.Add({"saved", saved(a.kernels, b.kernels), saved(a.launches, b.launches),
             saved(a.activation_bytes, b.activation_bytes), saved(a.weight_bytes, b.weight_bytes),
             saved(a.estimated_us, b.estimated_us)});
  return table.ToString();
}

std::string KernelLine(const FusionReply& reply, bool compile) {
  auto count = [&reply](auto predicate) {
    return std::count_if(reply.kernels.begin(), reply.kernels.end(), predicate);
  };
  int64_t ready = count([](const auto& k) { return k.state == KernelState::kReady; });
  if (!compile && ready == 0) {
    return StrCat(reply.kernels.size(), " different ones, as estimates: nothing is compiled");
  }
  int64_t verified = count([](const auto& k) { return k.check.verified; });
  int64_t cached = count([](const auto& k) { return k.cached; });
  return StrCat(Count(static_cast<int64_t>(reply.kernels.size()), "shared object"), ": ", ready,
                " ready, ", verified, " verified, ", cached, " found in the cache");
}

// "GPU with 132 SMs: a block has 227.00 KiB of shared; l2 40.00 MiB, memory 64.00 GiB".
std::string DeviceLine(const Plan& plan) {
  const PlanDevice& device = plan.device;
  std::string out = StrCat(device.kind, " with ", Count(plan.threads, device.unit),
                           device.explicit_memory ? ": a block has " : ": a block stays within ",
                           HumanBytes(device.on_chip_bytes), " of ", device.on_chip_level);
  std::string_view separator = "; ";
  for (const PlanLevel& level : device.levels) {
    if (!level.shared || level.bytes == 0) continue;
    StrAppend(&out, StrCat(separator, level.name, " ", HumanBytes(level.usable_bytes)));
    separator = ", ";
  }
  return out;
}

// Stages that take at least 1 % of the time; --json has all.
std::string StageLine(const FusionReply& reply) {
  double total = 0;
  for (const auto& stage : reply.stages) total += ToMilliseconds(stage.took);
  std::string out = StrCat(HumanMilliseconds(total), " on the server:");
  double rest = 0;
  for (const auto& stage : reply.stages) {
    if (ToMilliseconds(stage.took) * 100 < total) {
      rest += ToMilliseconds(stage.took);
    } else {
      StrAppend(&out,
                StrCat(" ", stage.stage, " ", HumanMilliseconds(ToMilliseconds(stage.took)), ","));
    }
  }
  return StrCat(out, " rest ", HumanMilliseconds(rest));
}

std::string PlanText(const Arguments& arguments, const FusionReply& reply) {
  const Plan& plan = reply.plan;
  std::string out = StrCat(
      Bold(arguments.model), ": ", Count(plan.nodes, "node"), " in ",
      Count(RunGroups(plan), "group"), ", ", Count(plan.totals.kernels, "kernel"), ", ",
      Count(static_cast<int64_t>(plan.fallbacks.size()), "fallback"), ", for ", TargetText(plan),
      "\n\n", GroupTable(reply, arguments.node_names, !arguments.target.empty()), "\n",
      TotalsTable(plan), "\n", FrontierText(plan), plan.frontier.empty() ? "" : "\n");
  if (!plan.prepare.empty()) {
    out += StrCat("prepare: ",
                  plan.prepare.size() == 1 ? "1 launch" : StrCat(plan.prepare.size(), " launches"),
                  ", ", HumanBytes(plan.prepared_bytes),
                  " of packed weights, once per set of weights\n");
  }
  out += StrCat("memory:  ", HumanBytes(plan.arena_bytes), " between kernels, ",
                HumanBytes(RunBytes(plan, plan.threads)), " with what threads work in\n");
  out += LoopsText(plan, reply.binding);
  out += OpenDimsText(plan, reply.binding);
  out += SharedText(plan, reply.binding);
  out += StridesText(plan, reply.binding);
  out += StrCat("kernels: ", KernelLine(reply, arguments.compile), "\n");
  out += SearchLine(plan.search);
  out += StrCat("device:  ", DeviceLine(plan), "\n");
  out += StrCat("plan:    ", reply.plan_key.ToHex().substr(0, 16), ", ",
                reply.cache == CacheOutcome::kMiss ? "planned by this request"
                                                   : StrCat("from ", CacheOutcomeName(reply.cache)),
                "\n");
  out += StrCat("time:    ", StageLine(reply), "\n");
  for (const PlanFallback& f : plan.fallbacks) {
    const std::string node =
        f.node == kNoVariant ? "" : StrCat(StrJoin(NodeNames(reply, {f.node}), "", Quote), ": ");
    out += StrCat("fallback: ", node, f.reason, "\n");
  }
  for (const std::string& warning : reply.warnings) {
    out += StrCat("warning: ", InUserWords(warning, arguments), "\n");
  }
  return out;
}

// Which spec's constants were measured, and when; null: none.
Json MeasuredJson(std::string_view target) {
  const std::optional<ProbedName> probed = ParseProbedName(target);
  if (!probed) return {};
  return {{"spec", probed->spec}, {"date", probed->date}, {"digest", probed->digest}};
}

// Notes about the plan, and the limits under which it was made.
Json PlanJson(const FusionReply& reply) {
  Json json = ReplyJson(reply);
  const PlanDevice& device = reply.plan.device;
  Json levels = Json::array();
  for (const PlanLevel& level : device.levels) {
    levels.push_back({{"name", level.name},
                      {"shared", level.shared},
                      {"bytes", level.bytes},
                      {"usable_bytes", level.usable_bytes},
                      {"bytes_per_s", level.total_bytes_per_s}});
  }
  json["device"] = {{"kind", device.kind},
                    {"unit", device.unit},
                    {"units", reply.plan.threads},
                    {"explicit_memory", device.explicit_memory},
                    {"on_chip_level", device.on_chip_level},
                    {"on_chip_bytes", device.on_chip_bytes},
                    {"measured", MeasuredJson(reply.plan.target)},
                    {"levels", std::move(levels)}};
  for (size_t g = 0; g < reply.plan.groups.size(); ++g) {
    const PlanGroup& group = reply.plan.groups[g];
    Json& out = json["groups"][g];
    out["bound"] = group.bound;
    out["tiles"] = group.tiles;
    out["structure"] = group.structure;
    out["registered"] = group.registered;
  }
  return json;
}

// `file` empty: nothing.
absl::Status WriteLock(const std::string& file, const FusionReply& reply) {
  if (file.empty()) return absl::OkStatus();
  if (reply.lock == nullptr) {
    return Unavailable("--write-lock: this service is older than locks; it sent none");
  }
  absl::Status written = WriteFile(file, LockToText(*reply.lock), FileRights::kUmask);
  return written.ok() ? written : BadInput(Annotate(written, "--write-lock"));
}

}  // namespace

absl::StatusOr<ExitCode> RunPlan(const Arguments& arguments, Progress* progress) {
  ASSIGN_OR_RETURN(std::unique_ptr<ModelFile> model, ModelFile::Load(arguments.model, arguments));
  return WithService(arguments, progress, [&](const Client& client) -> absl::StatusOr<ExitCode> {
    FusionRequest request = model->Request(arguments, arguments.options);
    request.mode = arguments.compile ? PlanMode::kCompile : PlanMode::kPlanOnly;
    if (!arguments.write_lock.empty()) request.dumps.push_back(DumpKind::kLock);
    ASSIGN_OR_RETURN(FusionReply reply, PlanWithProgress(client, request, progress));
    progress->Clear();
    RETURN_IF_ERROR(WriteLock(arguments.write_lock, reply));
    if (arguments.json) {
      PrintJson(PlanJson(reply));
    } else {
      Print(PlanText(arguments, reply));
    }
    return kExitOk;
  });
}

}  // namespace fusion
