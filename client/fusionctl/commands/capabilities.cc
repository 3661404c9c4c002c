#include <nlohmann/json.hpp>

#include "client/fusionctl/args/arguments.h"
#include "client/fusionctl/commands/commands.h"
#include "client/fusionctl/output/plan_output.h"
#include "client/fusionctl/output/print.h"
#include "client/fusionctl/output/terminal.h"
#include "client/fusionctl/service/session.h"

namespace fusion {
namespace {

// The opsets, as "7-21"; empty for an operator of this project.
std::string Opsets(const OpCapability& op) {
  if (op.max_opset == 0) return "";
  return StrCat(op.min_opset, "-", op.max_opset);
}

Json CapabilitiesJson(const Capabilities& c) {
  Json devices = Json::array();
  for (const DeviceCapability& d : c.devices) {
    devices.push_back(
        {{"name", d.name}, {"description", d.description}, {"backend", d.backend}, {"isa", d.isa}});
  }
  Json ops = Json::array();
  for (const OpCapability& op : c.ops) {
    ops.push_back({{"name", op.name}, {"min_opset", op.min_opset}, {"max_opset", op.max_opset}});
  }
  Json limits = Json::array();
  for (const ServiceLimit& l : c.limits) {
    limits.push_back(
        {{"name", l.name}, {"value", l.value}, {"unit", l.unit}, {"option", l.option}});
  }
  Json registered = Json::array();
  for (const RegisteredCapability& kernel : c.registered) {
    registered.push_back({{"name", kernel.name},
                          {"pattern", kernel.pattern},
                          {"source_sha256", kernel.source.ToHex()},
                          {"force", kernel.force},
                          {"state", RegisteredStateName(kernel.state)},
                          {"reason", kernel.reason}});
  }
  return {{"version", c.version},
          {"plan_version", c.plan_version},
          {"kernel_abi_version", c.kernel_abi_version},
          {"compiler", c.compiler},
          {"workers", c.workers},
          {"sandbox", c.sandbox},
          {"durable_store", c.durable_store},
          {"authentication", c.authentication},
          {"tenant", c.tenant},
          {"roles", c.roles},
          {"signing_keys", c.signing_keys},
          {"devices", devices},
          {"ops", ops},
          {"limits", limits},
          {"registered_kernels", registered}};
}

std::string OpsText(const Capabilities& c) {
  Table table({{"operator"}, {"opsets", Table::kRight}});
  for (const OpCapability& op : c.ops) table.Add({op.name, Opsets(op)});
  return table.ToString();
}

std::string DevicesText(const Capabilities& c) {
  Table table({{"device"}, {"isa"}, {"kernels"}, {"description", Table::kCut}});
  for (const DeviceCapability& d : c.devices) {
    table.Add({d.name, d.isa.empty() ? "-" : d.isa, d.backend.empty() ? "plans only" : d.backend,
               d.description});
  }
  return table.ToString();
}

// Empty if there are none.
std::string RegisteredText(const Capabilities& c) {
  if (c.registered.empty()) return "";
  Table table({{"registered kernel"}, {"source"}, {"state"}, {"used"}, {"pattern", Table::kCut}});
  std::string reasons;
  for (const RegisteredCapability& kernel : c.registered) {
    table.Add({kernel.name, kernel.source.ToHex().substr(0, 8),
               std::string(RegisteredStateName(kernel.state)),
               kernel.force ? "always" : "where faster", kernel.pattern});
    if (!kernel.reason.empty()) {
      reasons += StrCat("registered kernel ", Quote(kernel.name), ": ", kernel.reason, "\n");
    }
  }
  return StrCat(table.ToString(), reasons, "\n");
}

std::string LimitsText(const Capabilities& c) {
  Table table({{"limit"}, {"at most", Table::kRight}, {"set by"}});
  for (const ServiceLimit& l : c.limits) {
    table.Add({l.name, l.unit == "bytes" ? HumanBytes(l.value) : StrCat(l.value, " ", l.unit),
               l.option.empty() ? "fixed" : l.option});
  }
  return table.ToString();
}

// Lines about access, each after a line end. Empty: an older server does not report it.
std::string AccessText(const Capabilities& c) {
  if (c.authentication.empty()) return "";
  return StrCat("\naccess:    ", c.authentication == "none" ? "everybody" : c.authentication,
                "; you are tenant ", QuoteShort(c.tenant), ", for ", StrJoin(c.roles, ", "),
                "\nsigned:    ",
                c.signing_keys.empty() ? "no" : StrCat("with ", StrJoin(c.signing_keys, ", ")));
}

std::string CapabilitiesText(const std::string& address, const Capabilities& c) {
  return StrCat(
      "fusiond ", c.version, " at ", address,
      "\ncompiler:  ", c.compiler.empty() ? "none, nothing can be compiled" : c.compiler,
      "\nworkers:   ", c.workers, ", ", c.sandbox.empty() ? "not isolated" : c.sandbox,
      "\nstore:     ", c.durable_store ? "plans and kernels survive a restart" : "in memory only",
      AccessText(c), "\noperators: ", c.ops.size(), ", fusionctl capabilities --ops lists them\n\n",
      DevicesText(c), "\n", RegisteredText(c), LimitsText(c));
}

}  // namespace

absl::StatusOr<ExitCode> RunCapabilities(const Arguments& arguments, Progress* progress) {
  return WithService(arguments, progress, [&](const Client& client) -> absl::StatusOr<ExitCode> {
    ASSIGN_OR_RETURN(Capabilities capabilities, client.GetCapabilities());
    progress->Clear();
    if (arguments.json) {
      PrintJson(CapabilitiesJson(capabilities));
    } else {
      Print(arguments.ops ? OpsText(capabilities)
                          : CapabilitiesText(client.address(), capabilities));
    }
    return kExitOk;
  });
}

}  // namespace fusion
