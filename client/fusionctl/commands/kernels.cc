#include <nlohmann/json.hpp>

#include "client/fusionctl/args/arguments.h"
#include "client/fusionctl/commands/commands.h"
#include "client/fusionctl/input/model_file.h"
#include "client/fusionctl/output/plan_output.h"
#include "client/fusionctl/output/print.h"
#include "client/fusionctl/output/terminal.h"
#include "client/fusionctl/service/session.h"

namespace fusion {

absl::StatusOr<ExitCode> RunKernels(const Arguments& arguments, Progress* progress) {
  ASSIGN_OR_RETURN(std::unique_ptr<ModelFile> model, ModelFile::Load(arguments.model, arguments));
  return WithService(arguments, progress, [&](const Client& client) -> absl::StatusOr<ExitCode> {
    ASSIGN_OR_RETURN(
        FusionReply reply,
        PlanWithProgress(client, model->Request(arguments, arguments.options), progress));
    progress->Clear();
    if (arguments.json) {
      PrintJson(Json{{"kernels", KernelsJson(reply)}});
      return kExitOk;
    }
    Table table({{"kernel"},
                 {"isa", Table::kLeft, /*spare=*/2},
                 {"phases", Table::kRight, /*spare=*/4},
                 {"state"},
                 {"size", Table::kRight},
                 {"compiled in", Table::kRight, /*spare=*/3},
                 {"max|a-b|/max|b|", Table::kRight},
                 {"compared", Table::kRight, /*spare=*/1},
                 {"ops", Table::kCut}});
    for (size_t i = 0; i < reply.kernels.size(); ++i) {
      const PlanKernel& kernel = reply.plan.kernels[i];
      const KernelStatus& status = reply.kernels[i];
      const CheckReport& check = status.check;
      table.Add({kernel.key.ToHex().substr(0, 16), kernel.isa, StrCat(kernel.phases),
                 std::string(StateName(status.state)), HumanBytes(status.bytes),
                 HumanMilliseconds(status.compile_ms),
                 check.verified ? ShortNumber(check.max_rel) : "unverified", StrCat(check.elements),
                 kernel.label});
    }
    Print(table.ToString());
    return kExitOk;
  });
}

}  // namespace fusion
