#include "client/fusionctl/output/plan_output.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "client/fusionctl/args/arguments.h"
#include "client/fusionctl/output/print.h"
#include "client/fusionctl/output/search_output.h"
#include "client/fusionctl/output/terminal.h"
#include "core/base/text/text.h"

namespace fusion {
namespace {

using Json = nlohmann::ordered_json;

Json GroupsJson(const FusionReply& reply) {
  Json out = Json::array();
  for (const PlanGroup& group : reply.plan.groups) {
    Json json = GroupHeadJson(group);
    json["kernel"] = group.kernel;
    json["node_names"] = NodeNames(reply, group.nodes);
    out.push_back(std::move(json));
  }
  return out;
}

Json TensorsJson(const Plan& plan) {
  Json out = Json::array();
  for (const PlanTensor& t : plan.tensors) {
    out.push_back({{"type", DTypeName(t.dtype)},
                   {"dims", t.dims},
                   {"strides", t.strides},
                   {"space", SpaceName(t.space)},
                   {"index", t.index},
                   {"offset", t.offset},
                   {"bytes", t.bytes}});
  }
  return out;
}

std::string SymbolName(const Binding& binding, size_t symbol) {
  return symbol < binding.symbols.size() ? binding.symbols[symbol] : StrCat("symbol ", symbol);
}

// What sizes count symbols in.
std::vector<std::string> UnitNames(const Plan& plan, const Binding& binding) {
  std::vector<std::string> names;
  for (size_t s = 0; s < plan.symbols.size(); ++s) {
    const int64_t multiple = plan.symbols[s].multiple;
    const std::string name = SymbolName(binding, s);
    names.push_back(multiple > 1 ? StrCat("(", name, "/", multiple, ")") : name);
  }
  return names;
}

Json LaunchesJson(const std::vector<PlanLaunch>& launches) {
  Json out = Json::array();
  for (const PlanLaunch& launch : launches) {
    out.push_back(
        {{"group", launch.group}, {"kernel", launch.kernel}, {"tensors", launch.tensors}});
  }
  return out;
}

Json LoopsJson(const Plan& plan, const Binding& binding) {
  Json out = Json::array();
  for (const PlanLoop& loop : plan.loops) {
    Json carried = Json::array();
    for (const PlanLoop::Carried& c : loop.carried) {
      carried.push_back({{"before", c.before},
                         {"after", c.after},
                         {"initial", c.initial},
                         {"last", c.last},
                         {"spare", c.spare}});
    }
    Json elements = Json::array();
    for (const PlanLoop::Element& e : loop.elements) {
      elements.push_back({{"place", e.place},
                          {"whole", e.whole},
                          {"from_end", e.from_end},
                          {"written", e.written}});
    }
    out.push_back({{"first", loop.first},
                   {"launches", loop.launches},
                   {"most", loop.most},
                   {"must_end", loop.must_end},
                   {"count", loop.count},
                   {"begins", loop.begins},
                   {"goes_on", loop.goes_on},
                   {"pass", loop.pass},
                   {"passes", loop.passes},
                   {"carried", carried},
                   {"elements", elements}});
    if (loop.open_most) {
      out.back()["open_most"] = loop.open_most->ToString(UnitNames(plan, binding));
    }
  }
  return out;
}

}  // namespace

Json EstimateJson(const Estimate& e) {
  return {{"time_us", e.time_us},
          {"compute_us", e.compute_us},
          {"product_us", e.product_us},
          {"memory_us", e.memory_us},
          {"off_chip_us", e.off_chip_us},
          {"local_us", e.local_us},
          {"stall_us", e.stall_us},
          {"launch_us", e.launch_us},
          {"tiling_loss_us", e.tiling_loss_us},
          {"flops", e.flops},
          {"activation_bytes", e.activation_bytes},
          {"recompute_bytes", e.recompute_bytes},
          {"weight_bytes", e.weight_bytes},
          {"on_chip_bytes", e.on_chip_bytes},
          {"tasks", e.tasks},
          {"waves", e.waves}};
}

Json DecisionsJson(const Plan& plan) {
  auto terms = [](const std::optional<Estimate>& e) { return e ? EstimateJson(*e) : Json(); };
  Json out = Json::array();
  for (const PlanDecision& d : plan.decisions) {
    Json what_ifs = Json::array();
    for (const WhatIf& what_if : d.what_ifs) {
      what_ifs.push_back(
          {{"what", what_if.what}, {"value", what_if.value}, {"words", what_if.words}});
    }
    Json places = Json::array();
    for (const DecisionPlace& place : d.places) {
      Json where;
      if (place.first_group >= 0) where["first_group"] = place.first_group;
      if (place.second_group >= 0) where["second_group"] = place.second_group;
      where["first_nodes"] = place.first;
      where["second_nodes"] = place.second;
      if (!place.between.empty()) where["between"] = place.between;
      places.push_back(std::move(where));
    }
    out.push_back({{"subject", SubjectName(d.subject)},
                   {"verdict", VerdictName(d.verdict)},
                   {"code", d.code},
                   {"reason", d.reason},
                   {"benefit_us", d.benefit_us},
                   {"first", terms(d.first)},
                   {"second", terms(d.second)},
                   {"together", terms(d.together)},
                   {"flips", std::move(what_ifs)},
                   {"places", std::move(places)},
                   {"times", d.times}});
  }
  return out;
}

std::string_view StateName(KernelState state) {
  constexpr std::string_view kNames[] = {"pending", "ready", "failed"};
  return kNames[static_cast<size_t>(state)];
}

int64_t RunGroups(const Plan& plan) {
  return std::count_if(plan.groups.begin(), plan.groups.end(),
                       [](const PlanGroup& g) { return g.kind != GroupKind::kPrepare; });
}

std::vector<std::string> NodeNames(const FusionReply& reply, const std::vector<int>& nodes) {
  return NodeNames(reply.binding.nodes, nodes);
}

std::vector<std::string> NodeNames(const std::vector<std::string>& names,
                                   const std::vector<int>& nodes) {
  std::vector<std::string> out;
  for (int node : nodes) {
    auto at = static_cast<size_t>(node);
    if (node >= 0 && at < names.size()) out.push_back(names[at]);
  }
  return out;
}

std::string OpsText(const PlanGroup& group) {
  if (group.registered.empty()) return group.label;
  return StrCat("registered ", Quote(group.registered), ": ", group.label);
}

Json TotalsJson(const PlanTotals& totals) {
  return {{"kernels", totals.kernels},
          {"launches", totals.launches},
          {"activation_bytes", totals.activation_bytes},
          {"weight_bytes", totals.weight_bytes},
          {"estimated_us", totals.estimated_us}};
}

Json FrontierJson(const Plan& plan) {
  Json out = Json::array();
  for (const PlanPoint& point : plan.frontier) {
    out.push_back({{"name", point.name},
                   {"latency_us", point.latency_us},
                   {"peak_bytes", point.peak_bytes},
                   {"compile_s", point.compile_s},
                   {"launches", point.launches},
                   {"kernels", point.kernels},
                   {"chosen", point.chosen},
                   {"reason", point.reason}});
  }
  return out;
}

std::string FrontierText(const Plan& plan) {
  if (plan.frontier.empty()) return "";
  Table table({{"plans"},
               {"latency", Table::kRight},
               {"peak memory", Table::kRight},
               {"compile", Table::kRight},
               {"launches", Table::kRight},
               {"kernels", Table::kRight},
               {""}});
  std::string reason;
  for (const PlanPoint& point : plan.frontier) {
    table.Add({point.name, HumanMicroseconds(point.latency_us), HumanBytes(point.peak_bytes),
               HumanMilliseconds(1e3 * point.compile_s), StrCat(point.launches),
               StrCat(point.kernels), point.chosen ? "chosen" : ""});
    if (point.chosen) reason = point.reason;
  }
  return StrCat(table.ToString(), "chosen for ", reason, "\n");
}

Json SymbolsJson(const Plan& plan, const Binding& binding) {
  Json out = Json::array();
  for (size_t s = 0; s < plan.symbols.size(); ++s) {
    const DimRange& range = plan.symbols[s];
    out.push_back({{"name", s < binding.symbols.size() ? binding.symbols[s] : ""},
                   {"min", range.least},
                   {"max", range.most},
                   {"multiple", range.multiple},
                   {"likely", range.likely}});
  }
  return out;
}

Json SamplesJson(const Plan& plan) {
  Json out = Json::array();
  for (const PlanSample& sample : plan.samples) {
    out.push_back({{"values", sample.values},
                   {"family_us", sample.family_us},
                   {"exact_us", sample.exact_us}});
  }
  return out;
}

std::string LoopsText(const Plan& plan, const Binding& binding) {
  const std::vector<std::string> names = UnitNames(plan, binding);
  std::string out;
  for (const PlanLoop& loop : plan.loops) {
    const int last = loop.first + loop.launches - 1;
    const bool open = loop.count >= 0 || loop.begins >= 0;
    const std::string passes = loop.open_most ? loop.open_most->ToString(names) : StrCat(loop.most);
    StrAppend(&out,
              StrCat("loop:    ",
                     loop.launches == 1 ? StrCat("launch ", loop.first, " runs")
                                        : StrCat("launches ", loop.first, " to ", last, " run"),
                     " in ", open ? "at most " : "", passes, " passes",
                     open ? ", as a run decides; figures are of one pass" : "", "\n"));
  }
  return out;
}

std::string SharedText(const Plan& plan, const Binding& binding) {
  if (plan.shared_buffers.empty()) return "";
  const SharedBuffer& first = plan.shared_buffers[0];
  const size_t more = plan.shared_buffers.size() - 1;
  return StrCat("shared:  ", binding.outputs[static_cast<size_t>(first.output)], " in ",
                binding.inputs[static_cast<size_t>(first.input)], " with room for ", first.capacity,
                " along dim ", first.dim, more > 0 ? StrCat(", and ", more, " more") : "",
                ": a run writes new elements only\n");
}

std::string StridesText(const Plan& plan, const Binding& binding) {
  std::vector<std::string> bound;
  for (const BoundStrides& b : plan.bound_strides) {
    const auto& names = b.output ? binding.outputs : binding.inputs;
    bound.push_back(StrCat(names[static_cast<size_t>(b.position)], " ", DimsToString(b.strides)));
  }
  return bound.empty() ? "" : StrCat("strides: ", StrJoin(bound, ", "), "\n");
}

std::string OpenDimsText(const Plan& plan, const Binding& binding) {
  if (plan.symbols.empty()) return "";
  auto name = [&](size_t s) { return SymbolName(binding, s); };
  std::vector<std::string> ranges;
  for (size_t s = 0; s < plan.symbols.size(); ++s) {
    const DimRange& range = plan.symbols[s];
    ranges.push_back(StrCat(name(s), " ", range.least, "..", range.most,
                            range.multiple > 1 ? StrCat(" in steps of ", range.multiple) : ""));
  }
  std::string out = StrCat("open:    ", StrJoin(ranges, ", "), "; figures are for the largest\n");
  std::vector<std::string> losses;
  for (const PlanSample& sample : plan.samples) {
    if (!(sample.exact_us > 0)) continue;
    std::vector<std::string> values;
    for (size_t s = 0; s < sample.values.size(); ++s) {
      values.push_back(StrCat(name(s), "=", sample.values[s]));
    }
    losses.push_back(
        StrCat(StrJoin(values, " "), " ", HumanPercent(sample.family_us / sample.exact_us - 1)));
  }
  if (!losses.empty()) {
    StrAppend(&out, StrCat("loss:    against plans of these values alone, estimated: ",
                           StrJoin(losses, ", "), "\n"));
  }
  return StrCat(out, VariantsText(plan, binding));
}

std::string VariantsText(const Plan& plan, const Binding& binding) {
  std::string out;
  const std::vector<std::string> names = UnitNames(plan, binding);
  int64_t packed = plan.prepared_bytes;
  for (const PlanVariant& variant : plan.variants) {
    const int64_t own = std::max<int64_t>(variant.plan->prepared_bytes - packed, 0);
    packed += own;
    StrAppend(&out,
              StrCat("variant: where ", variant.measure.ToString(names), " <= ", variant.most,
                     ", other groups and cuts: ", Count(variant.plan->totals.kernels, "kernel"),
                     ", ", HumanBytes(own), " more of packed weights\n"));
  }
  return out;
}

Json VariantsJson(const Plan& plan, const Binding& binding) {
  Json out = Json::array();
  for (const PlanVariant& variant : plan.variants) {
    Json groups = Json::array();
    for (const PlanGroup& group : variant.plan->groups) {
      Json json = GroupHeadJson(group);
      json["kernel"] = variant.plan->kernels[static_cast<size_t>(group.kernel)].key.ToHex();
      json["bound"] = group.bound;
      json["tiles"] = group.tiles;
      groups.push_back(std::move(json));
    }
    out.push_back({{"measure", variant.measure.ToString(UnitNames(plan, binding))},
                   {"most", variant.most},
                   {"symbols", SymbolsJson(*variant.plan, binding)},
                   {"totals", TotalsJson(variant.plan->totals)},
                   {"arena_bytes", variant.plan->arena_bytes},
                   {"prepared_bytes", variant.plan->prepared_bytes},
                   {"groups", std::move(groups)}});
  }
  return out;
}

Json PlanHeadJson(const Digest& key, const Plan& plan) {
  return {{"plan_key", key.ToHex()},
          {"target", plan.target},
          {"isa", plan.isa},
          {"threads", plan.threads},
          {"fusion", FusionName(plan.fusion)},
          {"numerics", NumericsName(plan.numerics)},
          {"nodes", plan.nodes},
          {"totals", TotalsJson(plan.totals)},
          {"op_by_op", TotalsJson(plan.op_by_op)},
          {"epoch", plan.calibration.epoch},
          {"frontier", FrontierJson(plan)},
          {"search", SearchJson(plan.search)}};
}

Json GroupHeadJson(const PlanGroup& group) {
  return {{"kind", KindName(group.kind)},
          {"ops", group.label},
          {"nodes", group.nodes},
          {"estimate", EstimateJson(group.estimate)}};
}

Json KernelsJson(const FusionReply& reply) {
  Json out = Json::array();
  for (size_t i = 0; i < reply.kernels.size(); ++i) {
    const PlanKernel& kernel = reply.plan.kernels[i];
    const KernelStatus& status = reply.kernels[i];
    const CheckReport& check = status.check;
    out.push_back(
        {{"key", kernel.key.ToHex()},
         {"symbol", kernel.symbol},
         {"ops", kernel.label},
         {"isa", kernel.isa},
         {"phases", kernel.phases},
         {"state", StateName(status.state)},
         {"cached", status.cached},
         {"content_sha256", status.state == KernelState::kReady ? status.content.ToHex() : ""},
         {"bytes", status.bytes},
         {"compile_ms", status.compile_ms},
         {"verified", check.verified},
         {"unverified_reason", check.reason},
         {"max_abs", check.max_abs},
         {"max_rel", check.max_rel},
         {"checked_elements", check.elements}});
  }
  return out;
}

// The shared buffers of a plan's inputs and outputs.
Json SharedJson(const Plan& plan, const Binding& binding) {
  Json out = Json::array();
  for (const SharedBuffer& s : plan.shared_buffers) {
    out.push_back({{"input", binding.inputs[static_cast<size_t>(s.input)]},
                   {"output", binding.outputs[static_cast<size_t>(s.output)]},
                   {"dim", s.dim},
                   {"capacity", s.capacity}});
  }
  return out;
}

Json StridesJson(const Plan& plan, const Binding& binding) {
  Json out = Json::array();
  for (const BoundStrides& b : plan.bound_strides) {
    const auto& names = b.output ? binding.outputs : binding.inputs;
    out.push_back({{"tensor", names[static_cast<size_t>(b.position)]}, {"strides", b.strides}});
  }
  return out;
}

Json ReplyJson(const FusionReply& reply) {
  const Plan& plan = reply.plan;
  Json stages = Json::array();
  for (const StageTime& stage : reply.stages) {
    stages.push_back({{"stage", stage.stage}, {"ms", ToMilliseconds(stage.took)}});
  }
  Json fallbacks = Json::array();
  for (const PlanFallback& f : plan.fallbacks) {
    fallbacks.push_back({{"node", f.node},
                         {"names", NodeNames(reply, {f.node})},
                         {"reason", f.reason},
                         {"registered", f.registered}});
  }
  Json out = PlanHeadJson(reply.plan_key, plan);
  out.update(Json{{"cache", CacheOutcomeName(reply.cache)},
                  {"arena_bytes", plan.arena_bytes},
                  {"run_bytes", RunBytes(plan, plan.threads)},
                  {"prepared_bytes", plan.prepared_bytes},
                  {"inputs", reply.binding.inputs},
                  {"outputs", reply.binding.outputs},
                  {"weights", reply.binding.weights},
                  {"node_names", reply.binding.nodes},
                  {"symbols", SymbolsJson(plan, reply.binding)},
                  {"samples", SamplesJson(plan)},
                  {"variants", VariantsJson(plan, reply.binding)},
                  {"shared_buffers", SharedJson(plan, reply.binding)},
                  {"bound_strides", StridesJson(plan, reply.binding)},
                  {"groups", GroupsJson(reply)},
                  {"kernels", KernelsJson(reply)},
                  {"tensors", TensorsJson(plan)},
                  {"prepare", LaunchesJson(plan.prepare)},
                  {"launches", LaunchesJson(plan.launches)},
                  {"loops", LoopsJson(plan, reply.binding)},
                  {"fallbacks", fallbacks},
                  {"stages", stages},
                  {"warnings", reply.warnings}});
  return out;
}

std::string DescribePlan(const FusionReply& reply) {
  return StrCat("plan ", reply.plan_key.ToHex(), "\n", PlanText(reply.plan, reply.binding));
}

}  // namespace fusion
