#include <filesystem>
#include <nlohmann/json.hpp>

#include "client/export_fused.h"
#include "client/fusionctl/args/arguments.h"
#include "client/fusionctl/args/exit_code.h"
#include "client/fusionctl/args/user_words.h"
#include "client/fusionctl/commands/commands.h"
#include "client/fusionctl/input/fixed_inputs.h"
#include "client/fusionctl/input/model_file.h"
#include "client/fusionctl/input/overridden.h"
#include "client/fusionctl/output/plan_output.h"
#include "client/fusionctl/output/print.h"
#include "client/fusionctl/output/terminal.h"
#include "client/fusionctl/service/session.h"
#include "core/base/files/file.h"
#include "core/export/rebase_external_data.h"
#include "core/onnx/model_io.h"

namespace fusion {
namespace {

/// The outcome for the groups of a plan.
struct Tally {
  int64_t whole = 0;
  int64_t cut = 0;      // several nodes
  int64_t partly = 0;   // one node, without some of what the group computes
  int64_t nothing = 0;  // no node: nodes of other groups compute its results
};

Tally TallyOf(const WrittenModel& written) {
  Tally out;
  for (const WrittenGroup& group : written.groups) {
    if (group.whole()) {
      ++out.whole;
    } else if (group.functions.empty()) {
      ++out.nothing;
    } else {
      ++(group.functions.size() > 1 ? out.cut : out.partly);
    }
  }
  return out;
}

// Replaces a file atomically: it may be the model that was read.
absl::Status Write(const onnx::ModelProto& model, const std::string& path) {
  absl::StatusOr<TempDir> beside = TempDir::Create(ModelDirectory(path), ".fusionctl-");
  if (!beside.ok()) return BadInput(Annotate(beside.status(), "--out"));
  const std::string part = StrCat(beside->path(), "/model.onnx");
  absl::Status written = SaveModel(model, part);
  std::error_code error;
  if (written.ok()) std::filesystem::rename(part, path, error);
  if (error) written = FailedPrecondition("model file ", Quote(path), ": ", error.message());
  return written.ok() ? written : BadInput(Annotate(written, "--out"));
}

Json ExportJson(const Arguments& arguments, const FusedExport& exported) {
  Json groups = Json::array();
  for (size_t i = 0; i < exported.written.groups.size(); ++i) {
    const WrittenGroup& group = exported.written.groups[i];
    const PlanGroup& planned =
        exported.reply.plan.groups[static_cast<size_t>(exported.group_of[i])];
    groups.push_back(
        {{"group", exported.group_of[i]},
         {"kernel_key",
          exported.reply.plan.kernels[static_cast<size_t>(planned.kernel)].key.ToHex()},
         {"functions", group.functions},
         {"nodes", group.nodes},
         {"left_out", group.left_out},
         {"whole", group.whole()}});
  }
  Json out = PlanHeadJson(exported.reply.plan_key, exported.reply.plan);
  out["out"] = arguments.out;
  out["groups"] = std::move(groups);
  out["whole"] = TallyOf(exported.written).whole;
  out["plain_nodes"] = exported.written.plain_nodes;
  out["warnings"] = exported.reply.warnings;
  return out;
}

std::string ExportText(const Arguments& arguments, const FusedExport& exported) {
  Table table({{"group", Table::kRight},
               {"kernel"},
               {"nodes", Table::kRight},
               {"left out", Table::kRight},
               {"written as", Table::kCut}});
  for (size_t i = 0; i < exported.written.groups.size(); ++i) {
    const WrittenGroup& group = exported.written.groups[i];
    const PlanGroup& planned =
        exported.reply.plan.groups[static_cast<size_t>(exported.group_of[i])];
    const Digest& key = exported.reply.plan.kernels[static_cast<size_t>(planned.kernel)].key;
    table.Add({StrCat(exported.group_of[i]), key.ToHex().substr(0, 8), StrCat(group.nodes),
               group.left_out == 0 ? "-" : StrCat(group.left_out),
               group.functions.empty() ? "nothing: its nodes are of later groups"
                                       : StrJoin(group.functions, " ")});
  }
  const Tally tally = TallyOf(exported.written);
  std::string out = StrCat(Bold(arguments.out), ": ", tally.whole, " of ",
                           Count(static_cast<int64_t>(exported.written.groups.size()), "group"),
                           " are one node each");
  if (tally.cut > 0) StrAppend(&out, StrCat(", ", tally.cut, " several"));
  if (tally.partly > 0)
    StrAppend(&out, StrCat(", ", tally.partly, " one without some of its nodes"));
  if (tally.nothing > 0) StrAppend(&out, StrCat(", ", tally.nothing, " none"));
  StrAppend(&out,
            StrCat("; ", Count(exported.written.plain_nodes, "other node"), "\n\n",
                   table.ToString(), "\nplan: ", exported.reply.plan_key.ToHex().substr(0, 16),
                   ", for ", TargetText(exported.reply.plan), "\n"));
  for (const std::string& warning : exported.reply.warnings) {
    StrAppend(&out, StrCat("warning: ", InUserWords(warning, arguments), "\n"));
  }
  return out;
}

}  // namespace

absl::StatusOr<ExitCode> RunExport(const Arguments& arguments, Progress* progress) {
  absl::StatusOr<onnx::ModelProto> model = LoadModel(arguments.model);
  if (!model.ok()) return BadInput(model.status());
  RETURN_IF_ERROR(FixInputs(arguments.fixed, &*model));
  ASSIGN_OR_RETURN(const std::set<std::string> as_inputs,
                   OverriddenInitializers(*model, arguments));
  const std::string directory = ModelDirectory(arguments.out);
  // Checked first. From here on, paths of external data are relative to the new file.
  absl::Status rebased =
      RebaseExternalData(ModelDirectory(arguments.model), arguments.out, &*model);
  if (!rebased.ok()) return BadInput(Annotate(rebased, "--out"));
  return WithService(arguments, progress, [&](const Client& client) -> absl::StatusOr<ExitCode> {
    FusionRequest request = RequestFor(arguments, arguments.options);
    request.mode = arguments.compile ? PlanMode::kCompile : PlanMode::kPlanOnly;
    auto ask = [&](const FusionRequest& asked) {
      return PlanWithProgress(client, asked, progress);
    };
    ASSIGN_OR_RETURN(FusedExport exported, ExportFused(ask, request, directory, &*model,
                                                       {as_inputs.begin(), as_inputs.end()}));
    progress->Show("writing");
    RETURN_IF_ERROR(Write(*model, arguments.out));
    progress->Clear();
    if (arguments.json) {
      PrintJson(ExportJson(arguments, exported));
    } else {
      Print(ExportText(arguments, exported));
    }
    return kExitOk;
  });
}

}  // namespace fusion
