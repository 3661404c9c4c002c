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

int LevelOf(const Arguments& arguments) {
  if (arguments.options.opt_level > 0) return arguments.options.opt_level;
  return arguments.seconds ? LevelFor(*arguments.seconds) : kDefaultTuneLevel;
}

// Plans without a limit; the time is for measuring: what is planned and compiled now is there then.
absl::Status Prepare(const Client& client, const FusionRequest& untuned, FusionRequest tuned,
                     Progress* progress) {
  RETURN_IF_ERROR(PlanWithProgress(client, untuned, progress).status());
  tuned.mode = PlanMode::kPlanOnly;
  return PlanWithProgress(client, tuned, progress).status();
}

// Adds the kernels of the search, which a plan travels without. Returns false if the service does
// not keep the plan.
absl::StatusOr<bool> AddSearch(const Client& client, FusionReply* reply) {
  absl::StatusOr<PlanExplanation> explained = client.ExplainPlan(reply->plan_key, ExplainFilter());
  if (absl::IsNotFound(explained.status())) return false;
  RETURN_IF_ERROR(explained.status());
  if (explained->plan.groups.size() != reply->plan.groups.size()) {
    return DataLoss("the explanation is of another plan than the answer");
  }
  reply->plan.search = std::move(explained->plan.search);
  return true;
}

}  // namespace

absl::StatusOr<ExitCode> RunTune(const Arguments& arguments, Progress* progress) {
  ASSIGN_OR_RETURN(std::unique_ptr<ModelFile> model, ModelFile::Load(arguments.model, arguments));
  PlanOptions options = arguments.options;
  options.opt_level = 0;
  const FusionRequest untuned = model->Request(arguments, options);
  options.opt_level = LevelOf(arguments);
  const FusionRequest tuned = model->Request(arguments, options);
  const bool lasts = !arguments.server.empty() || !arguments.store.empty();
  if (!lasts) PrintWarning("nothing is kept: expected --server ADDRESS or --store DIR");
  return WithService(arguments, progress, [&](const Client& client) -> absl::StatusOr<ExitCode> {
    RETURN_IF_ERROR(Prepare(client, untuned, tuned, progress));
    CallLimits limits;
    // The level has a limit of its own, at which a search is done.
    if (arguments.seconds && *arguments.seconds < SecondsOfLevel(options.opt_level)) {
      limits.until = Clock::Real().Now() + FromSeconds(*arguments.seconds);
    }
    ASSIGN_OR_RETURN(FusionReply reply, PlanWithProgress(*client.Limited(limits), tuned, progress));
    ASSIGN_OR_RETURN(const bool known, AddSearch(client, &reply));
    progress->Clear();
    const bool kept = known && lasts;
    if (arguments.json) {
      Json json = TuneJson(reply.plan, arguments.model, kept);
      json["plan_key"] = reply.plan_key.ToHex();
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
