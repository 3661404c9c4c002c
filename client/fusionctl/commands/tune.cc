#include <nlohmann/json.hpp>

#include "client/fusionctl/args/arguments.h"
#include "client/fusionctl/args/user_words.h"
#include "client/fusionctl/commands/commands.h"
#include "client/fusionctl/input/model_file.h"
#include "client/fusionctl/output/print.h"
#include "client/fusionctl/output/terminal.h"
#include "client/fusionctl/output/tune_output.h"
#include "client/fusionctl/service/session.h"

namespace fusion {
namespace {

// The lowest level that searches for that long, or the highest.
int LevelFor(double seconds) {
  int level = 1;
  while (level < kMaxOptLevel && SecondsOfLevel(level) < seconds) ++level;
  return level;
}

Nanoseconds FromSeconds(double seconds) {
  return std::chrono::duration_cast<Nanoseconds>(std::chrono::duration<double>(seconds));
}

int LevelOf(const Arguments& arguments) {
  if (arguments.options.opt_level > 0) return arguments.options.opt_level;
  return arguments.seconds ? LevelFor(*arguments.seconds) : kDefaultTuneLevel;
}

}  // namespace

absl::StatusOr<ExitCode> RunTune(const Arguments& arguments, Progress* progress) {
  ASSIGN_OR_RETURN(std::unique_ptr<ModelFile> model, ModelFile::Load(arguments.model, arguments));
  PlanOptions options = arguments.options;
  options.opt_level = 0;
  const FusionRequest untuned = model->Request(arguments, options);
  options.opt_level = LevelOf(arguments);
  const FusionRequest tuned = model->Request(arguments, options);
  const bool kept = !arguments.server.empty() || !arguments.store.empty();
  return WithService(arguments, progress, [&](const Client& client) -> absl::StatusOr<ExitCode> {
    // The seconds are for measuring: what is compiled now is there then.
    RETURN_IF_ERROR(PlanWithProgress(client, untuned, progress).status());
    CallLimits limits;
    if (arguments.seconds) limits.until = Clock::Real().Now() + FromSeconds(*arguments.seconds);
    ASSIGN_OR_RETURN(FusionReply reply, PlanWithProgress(*client.Limited(limits), tuned, progress));
    ASSIGN_OR_RETURN(PlanExplanation explained,
                     client.ExplainPlan(reply.plan_key, ExplainFilter()));
    progress->Clear();
    reply.plan.search = std::move(explained.plan.search);  // with its kernels
    if (arguments.json) {
      Json json = TuneJson(reply.plan, arguments.model, kept);
      json["warnings"] = reply.warnings;
      PrintJson(Json{{"tune", std::move(json)}});
      return kExitOk;
    }
    std::string text = TuneText(reply.plan, arguments.model, kept);
    for (const std::string& warning : reply.warnings) {
      StrAppend(&text, StrCat("warning: ", InUserWords(warning, arguments), "\n"));
    }
    Print(text);
    return kExitOk;
  });
}

}  // namespace fusion
