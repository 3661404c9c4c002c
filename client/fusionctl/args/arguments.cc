#include "client/fusionctl/args/arguments.h"

#include <CLI/CLI.hpp>
#include <sstream>

#include "client/fusionctl/args/help.h"
#include "client/fusionctl/args/option_words.h"
#include "core/base/text/text.h"

namespace fusion {
namespace {

// Checks the options of store: each is valid for some of its actions only.
std::string StoreContradiction(const Arguments& a) {
  const bool invalidates = a.action == StoreAction::kInvalidate;
  const bool pins = a.action == StoreAction::kPin || a.action == StoreAction::kUnpin;
  const bool exports = a.action == StoreAction::kExport;
  const bool imports = a.action == StoreAction::kImport;
  if (pins && a.plan_keys.empty()) return "pin and unpin: which plans? expected keys";
  if (!a.plan_keys.empty() && !pins && !invalidates && !exports) {
    return "plans are for pin, unpin, invalidate and export";
  }
  if (!invalidates && (!a.kernel_keys.empty() || a.all || !a.reason.empty())) {
    return "--kernel, --all and --reason are for invalidate";
  }
  if (invalidates && a.all != (a.plan_keys.empty() && a.kernel_keys.empty())) {
    return a.all ? "--all excludes keys" : "invalidate: what? expected keys, --kernel or --all";
  }
  if (exports != !a.out.empty()) {
    return exports ? "export: expected --out FILE" : "--out is for export";
  }
  if (imports != !a.from.empty()) {
    return imports ? "import: expected --from FILE" : "--from is for import";
  }
  if (!imports && !a.import_keys.empty()) return "--import-key is for import";
  if (!exports && !a.signing_key.empty()) return "--signing-key is for export";
  return "";
}

// Checks that concern several options.
std::string Contradiction(const Arguments& a) {
  bool drawn = a.what == ShowWhat::kGraph || a.what == ShowWhat::kSmg || a.what == ShowWhat::kPlan;
  if (a.command == CommandKind::kShow && a.format == ShowFormat::kDot && !drawn) {
    return "--format dot is for graph, smg and plan";
  }
  if (a.command == CommandKind::kExport && !a.fused) {
    return "export writes fused models only: expected --fused";
  }
  const bool looks = a.compare || !a.dump_tensors.empty();
  if (!a.tensors.empty() && !looks) return "--tensor is for --compare and --dump-tensors";
  if ((a.atol || a.rtol) && a.command == CommandKind::kRun && !a.compare) {
    return "--atol and --rtol are for --compare";
  }
  const bool cached = !a.cache.empty() || a.user_cache;
  if (a.server.find(',') != std::string::npos && !cached && !a.fallback) {
    return "--server: several addresses are for run with --cache, --user-cache or --fallback; "
           "expected one";
  }
  if (a.prefer_cache && !cached) return "--prefer-cache is for --cache DIR and --user-cache";
  if ((cached || a.fallback) && (looks || a.steps > 0 || a.per_kernel || !a.trace.empty())) {
    return "--cache, --user-cache and --fallback are for outputs; expected no --compare, "
           "--dump-tensors, --steps, --kernels or --trace beside them";
  }
  if (a.command == CommandKind::kBench && a.model.empty() && !a.suite) {
    return "which model? expected MODEL or --suite";
  }
  if (a.command == CommandKind::kRepro && a.replay.empty() &&
      (a.subject.empty() || a.out.empty())) {
    return "expected a PLAN and --out FILE, or --replay FILE";
  }
  bool stored = a.command == CommandKind::kReport || a.command == CommandKind::kList ||
                a.command == CommandKind::kStore || a.command == CommandKind::kEpochs;
  if (stored && a.server.empty() && a.store.empty()) {
    return "the plans of which service? expected --server ADDRESS or --store DIR";
  }
  if (a.command == CommandKind::kTop && a.server.empty()) {
    return "which service? expected --server ADDRESS";
  }
  if (a.command == CommandKind::kReport && a.subject.empty() && !a.model_option.empty()) {
    return StrCat(a.model_option, " says how a model is planned; none is given");
  }
  if (a.command == CommandKind::kStore) return StoreContradiction(a);
  return "";
}

}  // namespace

ParsedArguments ParseArguments(int argc, const char* const* argv) {
  ParsedArguments out;
  std::unique_ptr<CLI::App> app = MakeCommandLine(&out.arguments);
  if (argc > 1 && IsCommand(*app, argv[1])) out.command = argv[1];
  try {
    app->parse(argc, argv);
  } catch (const CLI::ParseError& error) {  // the library has no other way to say it
    std::ostringstream text, ignored;
    bool asked = app->exit(error, text, ignored) == 0;
    out.exit_code = asked ? kExitOk : kExitUsage;
    out.text = asked ? text.str() : UnknownWord(*app, argc, argv);
    if (out.text.empty()) out.text = error.what();
    return out;
  }
  Arguments& a = out.arguments;
  if (a.command == CommandKind::kShow && a.json) a.format = ShowFormat::kJson;
  if (a.command == CommandKind::kShow && a.format == ShowFormat::kJson) a.json = true;
  out.text = Contradiction(a);
  if (!out.text.empty()) out.exit_code = kExitUsage;
  return out;
}

}  // namespace fusion
