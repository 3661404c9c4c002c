#include "core/bundle/text.h"

#include "core/base/text/probed_name.h"

namespace fusion {
namespace {

// 'weight 3 "encoder.w"'.
std::string PlaceText(const PlanTensor& t, const Binding& names) {
  auto named = [&t](const std::vector<std::string>& list) {
    auto at = static_cast<size_t>(t.index);
    return at < list.size() ? StrCat(" ", Quote(list[at])) : "";
  };
  switch (t.space) {
    case Space::kInput:
      return StrCat("input ", t.index, named(names.inputs));
    case Space::kOutput:
      return StrCat("output ", t.index, named(names.outputs));
    case Space::kWeight:
      return StrCat("weight ", t.index, named(names.weights));
    case Space::kConstant:
      return StrCat("constant ", t.index);
    case Space::kPass:
      return StrCat("place ", t.index);
    default:
      return StrCat(SpaceName(t.space), " at ", t.offset);
  }
}

std::string LaunchText(const Plan& plan, size_t number, const PlanLaunch& launch) {
  const PlanKernel& kernel = plan.kernels[static_cast<size_t>(launch.kernel)];
  return StrCat("  ", number, "  ", kernel.symbol, "(",
                StrJoin(launch.tensors, ", ", [](int t) { return StrCat("t", t); }), ")  # group ",
                launch.group, ": ", kernel.label, "\n");
}

}  // namespace

std::string LoopText(const PlanLoop& loop) {
  const int last = loop.first + loop.launches - 1;
  std::string out = loop.launches == 1 ? StrCat("launch ", loop.first, " runs in ")
                                       : StrCat("launches ", loop.first, "..", last, " run in ");
  const bool open = loop.count >= 0 || loop.begins >= 0;
  const std::string most = loop.open_most ? loop.open_most->ToString() : StrCat(loop.most);
  StrAppend(&out, StrCat(open ? "at most " : "", most, most == "1" ? " pass" : " passes"));
  if (loop.must_end) StrAppend(&out, " or fails");
  if (loop.count >= 0) StrAppend(&out, StrCat(", as many as t", loop.count, " says"));
  if (loop.goes_on >= 0) StrAppend(&out, StrCat(", as long as t", loop.goes_on, " says"));
  if (!loop.carried.empty()) {
    StrAppend(&out, StrCat("; from one to the next ",
                           StrJoin(loop.carried, ", ", [](const PlanLoop::Carried& c) {
                             return StrCat("t", c.initial, " to t", c.last);
                           })));
  }
  if (!loop.elements.empty()) {
    StrAppend(&out, StrCat("; along ", StrJoin(loop.elements, ", ", [](const PlanLoop::Element& e) {
                             return StrCat("t", e.whole, e.from_end ? " backwards" : "");
                           })));
  }
  return out;
}

std::string_view KindName(GroupKind kind) {
  constexpr std::string_view kNames[] = {"inner", "cross-operator", "pipeline", "all-in-one",
                                         "prepare"};
  return kNames[static_cast<size_t>(kind)];
}

std::string_view SpaceName(Space space) {
  constexpr std::string_view kNames[] = {"input",    "output", "weight", "constant",
                                         "prepared", "arena",  "pass"};
  return kNames[static_cast<size_t>(space)];
}

std::string_view FusionName(FusionMode fusion) {
  return fusion == FusionMode::kFused ? "fused" : "op by op";
}

std::string_view TileSearchStateName(TileSearchState state) {
  constexpr std::string_view kNames[] = {"none", "pending", "cut-short", "done"};
  return kNames[static_cast<size_t>(state)];
}

std::string_view NumericsName(Numerics numerics) {
  constexpr std::string_view kNames[] = {"fp32-accumulate", "bitwise", "fast"};
  return kNames[static_cast<size_t>(numerics)];
}

std::string TargetText(const Plan& plan) {
  std::string unit = plan.device.unit.empty() ? "thread" : plan.device.unit;
  return StrCat(
      DeviceNameText(plan.target), " (", plan.isa, ", ", plan.threads, " ", unit,
      plan.threads == 1 ? "" : "s",
      plan.calibration.epoch == 0 ? "" : StrCat(", constants of epoch ", plan.calibration.epoch),
      ")");
}

std::string PlanText(const Plan& plan, const Binding& names) {
  std::string out =
      StrCat(FusionName(plan.fusion), ", ", NumericsName(plan.numerics), ", for ", TargetText(plan),
             "\n", HumanBytes(plan.arena_bytes), " between kernels, ",
             HumanBytes(plan.prepared_bytes), " of prepared weights\n\ntensors\n");
  for (size_t i = 0; i < plan.tensors.size(); ++i) {
    const PlanTensor& t = plan.tensors[i];
    StrAppend(&out, StrCat("  t", i, "  ", DTypeName(t.dtype), DimsToString(t.dims), "  ",
                           PlaceText(t, names), "\n"));
  }
  if (!plan.prepare.empty()) out += "\nprepare, once per set of weights\n";
  for (size_t i = 0; i < plan.prepare.size(); ++i) out += LaunchText(plan, i, plan.prepare[i]);
  out += "\nlaunches, per inference\n";
  for (size_t i = 0; i < plan.launches.size(); ++i) out += LaunchText(plan, i, plan.launches[i]);
  if (!plan.loops.empty()) out += "\nloops\n";
  for (const PlanLoop& loop : plan.loops) out += StrCat("  ", LoopText(loop), "\n");
  out += "\ngroups\n";
  for (size_t g = 0; g < plan.groups.size(); ++g) {
    const PlanGroup& group = plan.groups[g];
    StrAppend(&out, StrCat("  ", g, "  ", KindName(group.kind), "  ", group.label, "\n"));
    if (!group.registered.empty()) {
      StrAppend(&out, StrCat("       registered kernel ", Quote(group.registered), "\n"));
    }
    for (int node : group.nodes) {
      auto at = static_cast<size_t>(node);
      if (node < 0 || at >= names.nodes.size()) continue;
      StrAppend(&out, StrCat("       ", Quote(names.nodes[at]), "\n"));
    }
  }
  for (const PlanVariant& variant : plan.variants) {
    StrAppend(&out, StrCat("\nvariant, where ", variant.measure.ToString(), " <= ", variant.most,
                           "\n", PlanText(*variant.plan, names)));
  }
  return out;
}

std::string_view SubjectName(DecisionSubject subject) {
  constexpr std::string_view kNames[] = {"candidate", "group", "pair", "siblings"};
  return kNames[static_cast<size_t>(subject)];
}

std::string_view VerdictName(Verdict verdict) {
  constexpr std::string_view kNames[] = {"chosen", "refused", "no-gain", "superseded", "forbidden"};
  return kNames[static_cast<size_t>(verdict)];
}

std::string DecisionsText(const Plan& plan) {
  std::string out;
  for (const PlanDecision& d : plan.decisions) {
    const DecisionPlace& place = d.places.front();
    std::string where;
    switch (d.subject) {
      case DecisionSubject::kGroup:
        where = StrCat("group ", place.first_group);
        break;
      case DecisionSubject::kPair:
        where = StrCat("groups ", place.first_group, " > ", place.second_group);
        break;
      case DecisionSubject::kSiblings:
        where = StrCat("groups ", place.first_group, " | ", place.second_group);
        break;
      case DecisionSubject::kCandidate:
        where = StrCat("[", StrJoin(place.first, ", "), "] + [", StrJoin(place.second, ", "), "]");
        break;
    }
    if (d.times > 1) StrAppend(&where, StrCat(" and ", d.times - 1, " more"));
    StrAppend(&out, StrCat("  ", where, "  ", d.code.empty() ? VerdictName(d.verdict) : d.code,
                           ": ", d.reason, "\n"));
    for (const WhatIf& what_if : d.what_ifs) StrAppend(&out, StrCat("    ", what_if.words, "\n"));
  }
  return out;
}

}  // namespace fusion
