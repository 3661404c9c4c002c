#include "client/fusionctl/report/accuracy_output.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "client/fusionctl/output/plan_output.h"
#include "client/fusionctl/output/terminal.h"
#include "client/fusionctl/report/report_figures.h"
#include "core/base/text/probed_name.h"

namespace fusion {
namespace {

// The service names at most so many (DeviceAccuracy.machines in fusion_service.proto).
constexpr size_t kShownMachines = 64;

// Factors that are as good as 1, and machines as fast as the others.
constexpr double kNothing = 0.02;

bool IsOne(double factor) { return factor > 0 && std::abs(std::log(factor)) < kNothing; }

// |ln ratio| as a percentage: 0.69 is 100 %, off by a factor of two.
std::string ErrorText(double error) { return HumanPercent(std::expm1(error)); }

std::string ErrorsText(const DeviceAccuracy& device) {
  Table table({{"constants"},
               {"median error", Table::kRight},
               {"90 % are below", Table::kRight},
               {"timings", Table::kRight}});
  auto add = [&](const std::string& name, const ErrorSummary& errors) {
    if (errors.timings == 0) return;
    table.Add({name, ErrorText(errors.median), ErrorText(errors.p90), StrCat(errors.timings)});
  };
  add("of the spec", device.spec);
  add("fitted to other models", device.held_back);
  add("of the spec, whole runs", device.spec_plans);
  add("fitted to other models, whole runs", device.held_back_plans);
  std::string out = table.ToString();
  if (device.held_back.timings == 0) {
    out +=
        "nothing can be said about fitted constants: that takes two models that share no kernel\n";
  }
  return out;
}

std::string ConstantsText(const DeviceAccuracy& device) {
  Table table({{"cost of"}, {"measured / spec", Table::kRight}});
  int shown = 0;
  for (const FittedConstant& constant : device.constants) {
    if (IsOne(constant.factor)) continue;
    table.Add({constant.name, FactorText(constant.factor)});
    ++shown;
  }
  return shown == 0 ? "the constants of the spec fit\n" : table.ToString();
}

std::string ClassesText(const DeviceAccuracy& device) {
  Table table({{"kernels that are still off"},
               {"bound by"},
               {"measured / fitted", Table::kRight},
               {"kernels", Table::kRight},
               {"machines", Table::kRight}});
  int shown = 0;
  for (const FittedClass& of : device.classes) {
    if (IsOne(of.factor)) continue;
    table.Add({of.form, of.bound, FactorText(of.factor), StrCat(of.kernels), StrCat(of.voters)});
    ++shown;
  }
  return shown == 0 ? "" : StrCat("\n", table.ToString());
}

std::string MachinesText(const DeviceAccuracy& device) {
  Table table(
      {{"machine"}, {"tenant"}, {"time / median of all", Table::kRight}, {"GHz", Table::kRight}});
  int shown = 0;
  for (const MeasuredMachine& machine : device.machines) {
    if (IsOne(machine.factor) && machine.clock_ghz == 0) continue;
    table.Add({machine.machine.empty() ? "-" : machine.machine,
               machine.tenant.empty() ? "-" : machine.tenant, FactorText(machine.factor),
               machine.clock_ghz == 0 ? "-" : ShortNumber(machine.clock_ghz)});
    ++shown;
  }
  return shown == 0 ? "" : StrCat("\n", table.ToString());
}

std::string DeviceText(const DeviceAccuracy& device) {
  return StrCat(Bold(DeviceNameText(device.device.target)), ", ", device.device.isa, ", ",
                Count(device.device.threads, "thread"), ": ", Count(device.kernels, "kernel"),
                " of ", Count(device.models, "model"), ", ",
                device.machines.size() == kShownMachines ? "at least " : "",
                Count(static_cast<int64_t>(device.machines.size()), "machine"),
                device.complete ? "" : "; only the newest measurements are read", "\n\n",
                ErrorsText(device), "\n", ConstantsText(device), ClassesText(device),
                MachinesText(device));
}

Json ErrorsJson(const ErrorSummary& errors) {
  return {{"timings", errors.timings}, {"median", errors.median}, {"p90", errors.p90}};
}

}  // namespace

std::string AccuracyText(const std::vector<DeviceAccuracy>& devices) {
  if (devices.empty()) {
    return "no latencies of kernels were reported, or their plans are of an earlier version; "
           "fusionctl bench, fusionctl tune and the client library report them\n";
  }
  return StrJoin(devices, "\n", DeviceText);
}

Json AccuracyJson(const DeviceAccuracy& device) {
  Json constants = Json::array();
  for (const FittedConstant& constant : device.constants) {
    constants.push_back({{"name", constant.name}, {"factor", constant.factor}});
  }
  Json classes = Json::array();
  for (const FittedClass& of : device.classes) {
    classes.push_back({{"bound", of.bound},
                       {"form", of.form},
                       {"factor", of.factor},
                       {"kernels", of.kernels},
                       {"voters", of.voters}});
  }
  Json machines = Json::array();
  for (const MeasuredMachine& machine : device.machines) {
    machines.push_back({{"machine", machine.machine},
                        {"tenant", machine.tenant},
                        {"factor", machine.factor},
                        {"clock_ghz", machine.clock_ghz}});
  }
  return {{"target", device.device.target},
          {"isa", device.device.isa},
          {"threads", device.device.threads},
          {"timings", device.timings},
          {"kernels", device.kernels},
          {"models", device.models},
          {"truncated", !device.complete},
          {"spec", ErrorsJson(device.spec)},
          {"held_back", ErrorsJson(device.held_back)},
          {"spec_plans", ErrorsJson(device.spec_plans)},
          {"held_back_plans", ErrorsJson(device.held_back_plans)},
          {"constants", constants},
          {"classes", classes},
          {"machines", machines}};
}

}  // namespace fusion
