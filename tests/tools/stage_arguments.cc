#include "tests/tools/stage_arguments.h"

#include "core/base/files/file.h"
#include "core/bundle/text.h"
#include "core/plan/rules/rule_match.h"
#include "core/wire/options/rules.h"

namespace fusion {

void AddStageArguments(CLI::App* app, StageArguments* arguments) {
  app->add_option("--device", arguments->device, "a built-in device spec, or a JSON file")
      ->capture_default_str();
  app->add_option("--threads", arguments->threads, "threads of the target")
      ->check(CLI::Range(1, kMaxTargetThreads))
      ->capture_default_str();
  app->add_option("--l1-bytes", arguments->l1_bytes, "cache of the target; 0: as in the spec");
  app->add_option("--l2-bytes", arguments->l2_bytes, "likewise");
  app->add_option("--l3-bytes", arguments->l3_bytes, "likewise");
  std::map<std::string, FusionMode> modes = {{"fused", FusionMode::kFused},
                                             {"op-by-op", FusionMode::kOpByOp}};
  app->add_option("--fusion", arguments->plan.fusion, "fused or op-by-op")
      ->transform(CLI::Transformer(modes))
      ->option_text("WORD");
  std::map<std::string, Numerics> contracts;
  for (Numerics n : {Numerics::kFp32Accumulate, Numerics::kBitwise, Numerics::kFast}) {
    contracts[std::string(NumericsName(n))] = n;
  }
  app->add_option("--numerics", arguments->plan.numerics, "fp32-accumulate, bitwise or fast")
      ->transform(CLI::Transformer(contracts))
      ->option_text("WORD");
  Hints& hints = arguments->plan.hints;
  app->add_option("--memory-pressure", hints.memory_pressure, "0 to 1")
      ->check(CLI::Range(0.0, 1.0));
  app->add_option("--compute-pressure", hints.compute_pressure, "0 to 1")
      ->check(CLI::Range(0.0, 1.0));
  app->add_flag("--low-latency", hints.low_latency, "launches of a layer may become phases of one");
  app->add_option("--rules", arguments->rules, "fusion.v1.FusionRules in protobuf's text format");
}

absl::StatusOr<StageOptions> Resolve(const StageArguments& arguments) {
  std::vector<DeviceSpec> specs;
  Target target{.name = arguments.device,
                .l1_bytes = arguments.l1_bytes,
                .l2_bytes = arguments.l2_bytes,
                .l3_bytes = arguments.l3_bytes,
                .threads = arguments.threads};
  if (arguments.device.ends_with(".json")) {
    ASSIGN_OR_RETURN(std::string json, ReadFile(arguments.device, int64_t{1} << 20));
    ASSIGN_OR_RETURN(DeviceSpec spec, ParseDeviceSpec(json, arguments.device));
    target.name = spec.name;
    specs.push_back(std::move(spec));
  } else {
    ASSIGN_OR_RETURN(specs, BuiltInSpecs());
  }
  StageOptions options{.plan = arguments.plan};
  if (!arguments.rules.empty()) {
    ASSIGN_OR_RETURN(options.plan.rules, ReadRulesFile(arguments.rules, CheckRuleOps));
  }
  ASSIGN_OR_RETURN(options.device, ResolveTarget(specs, target, nullptr));
  return options;
}

}  // namespace fusion
