#include "core/probe/probe.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "client/detect_target.h"
#include "client/fusionctl/args/arguments.h"
#include "client/fusionctl/args/exit_code.h"
#include "client/fusionctl/commands/commands.h"
#include "client/fusionctl/output/plan_output.h"
#include "client/fusionctl/output/print.h"
#include "client/fusionctl/output/terminal.h"
#include "core/base/files/file.h"
#include "core/device/device_spec.h"
#include "core/device/measured_file.h"

namespace fusion {
namespace {

// "117 Gflop/s", "1.52 us".
std::string ValueText(double value, const std::string& unit) {
  if (unit == "s") {
    return value < 1e-6 ? StrCat(ShortNumber(value * 1e9), " ns") : HumanMicroseconds(value * 1e6);
  }
  return StrCat(ShortNumber(value * 1e-9), " G", unit);
}

// The spec that a plan for this machine has without measured constants.
absl::StatusOr<DeviceSpec> SpecHere(const ProbeResult& result) {
  ASSIGN_OR_RETURN(std::vector<DeviceSpec> specs, BuiltInSpecs());
  Target target = DetectTarget(result.constants.threads);
  target.isa = result.constants.isa;
  return ResolveTarget(specs, target, nullptr);
}

Json ProbeJson(const ProbeResult& result, const DeviceSpec& spec, const std::string& file) {
  Json constants = Json::array();
  for (const ProbedConstant& constant : result.details) {
    const std::optional<double> planned = ConstantOf(spec, constant.name);
    constants.push_back({{"name", constant.name},
                         {"unit", constant.unit},
                         {"value", constant.value},
                         {"low", constant.low},
                         {"high", constant.high},
                         {"bursts", constant.bursts},
                         {"spec", planned ? Json(*planned) : Json()},
                         {"ratio", planned ? Json(constant.value / *planned) : Json()}});
  }
  return {{"isa", result.constants.isa},
          {"threads", result.constants.threads},
          {"date", result.constants.date},
          {"source", result.constants.source},
          {"seconds", result.seconds},
          {"spec", spec.name},
          {"file", file.empty() ? Json() : Json(file)},
          {"constants", std::move(constants)},
          {"warnings", result.warnings}};
}

std::string ProbeText(const ProbeResult& result, const DeviceSpec& spec, const std::string& file) {
  Table table({{"constant"},
               {"measured", Table::kRight},
               {"80 % of the bursts", Table::kRight, /*spare=*/1},
               {"in the spec", Table::kRight},
               {"measured / spec", Table::kRight}});
  for (const ProbedConstant& c : result.details) {
    const std::optional<double> planned = ConstantOf(spec, c.name);
    table.Add({c.name, ValueText(c.value, c.unit),
               StrCat(ValueText(c.low, c.unit), " .. ", ValueText(c.high, c.unit)),
               planned ? ValueText(*planned, c.unit) : "-",
               planned ? ShortNumber(c.value / *planned) : "-"});
  }
  std::string out = StrCat(Bold(DeviceName()), ", ", result.constants.isa, ", ",
                           Count(result.constants.threads, "thread"), ", measured for ",
                           ShortNumber(result.seconds), " s; the spec is ", spec.name, "\n\n",
                           table.ToString(), "\n");
  for (const std::string& warning : result.warnings) {
    StrAppend(&out, StrCat("warning: ", warning, "\n"));
  }
  StrAppend(&out, file.empty()
                      ? std::string("fusionctl probe --out FILE writes the constants to a file for "
                                    "--device-constants\n")
                      : StrCat("written to ", file, ", for --device-constants\n"));
  return out;
}

}  // namespace

absl::StatusOr<ExitCode> RunProbe(const Arguments& arguments, Progress* progress) {
  ProbeOptions options{.threads = arguments.threads, .program = "fusionctl probe " FUSION_VERSION};
  if (arguments.seconds) options.seconds = *arguments.seconds;
  if (!arguments.isa.empty()) {
    ASSIGN_OR_RETURN(options.isa, ParseIsa(arguments.isa));
  }
  progress->Show(StrCat("measuring for ", ShortNumber(options.seconds), " s"));
  absl::StatusOr<ProbeResult> result = Probe(options);
  progress->Clear();
  if (absl::IsFailedPrecondition(result.status())) return BadInput(result.status());
  RETURN_IF_ERROR(result.status());
  ASSIGN_OR_RETURN(const DeviceSpec spec, SpecHere(*result));
  if (!arguments.out.empty()) {
    const absl::Status written =
        WriteFile(arguments.out, MeasuredFileText(result->constants), FileRights::kUmask);
    if (!written.ok()) return BadInput(Annotate(written, "--out"));
  }
  if (arguments.json) {
    PrintJson(Json{{"probe", ProbeJson(*result, spec, arguments.out)}});
  } else {
    Print(ProbeText(*result, spec, arguments.out));
  }
  return kExitOk;
}

}  // namespace fusion
