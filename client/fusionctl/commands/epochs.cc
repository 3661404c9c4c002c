#include <nlohmann/json.hpp>

#include "client/admin_client.h"
#include "client/fusionctl/args/arguments.h"
#include "client/fusionctl/commands/commands.h"
#include "client/fusionctl/output/print.h"
#include "client/fusionctl/output/terminal.h"
#include "client/fusionctl/report/epochs_output.h"
#include "client/fusionctl/service/session.h"

namespace fusion {
namespace {

constexpr int kShownEpochs = 10;

// What --train or --roll-back brought about, a line each.
absl::StatusOr<std::vector<std::string>> Steer(const Arguments& arguments, const Client& client) {
  const AdminClient admin(client);
  v1::SteerEpochsResponse response;
  if (arguments.train) {
    ASSIGN_OR_RETURN(response, admin.TrainEpochs(arguments.reason));
  } else if (arguments.roll_back > 0) {
    ASSIGN_OR_RETURN(response, admin.RollBackEpoch(arguments.roll_back, arguments.reason));
  }
  return std::vector<std::string>(response.outcomes().begin(), response.outcomes().end());
}

}  // namespace

absl::StatusOr<ExitCode> RunEpochs(const Arguments& arguments, Progress* progress) {
  return WithService(arguments, progress, [&](const Client& client) -> absl::StatusOr<ExitCode> {
    ASSIGN_OR_RETURN(const std::vector<std::string> outcomes, Steer(arguments, client));
    ASSIGN_OR_RETURN(const EpochList list, client.ListEpochs());
    progress->Clear();
    const auto most = static_cast<size_t>(arguments.limit > 0 ? arguments.limit : kShownEpochs);
    if (arguments.json) {
      Json json = EpochsJson(list, most);
      json["outcomes"] = outcomes;
      PrintJson(json);
      return kExitOk;
    }
    std::string text;
    for (const std::string& outcome : outcomes) StrAppend(&text, StrCat(outcome, "\n"));
    Print(StrCat(text, text.empty() ? "" : "\n", EpochsText(list, most)));
    return kExitOk;
  });
}

}  // namespace fusion
