// fusionctl repro: a plan as an archive, and such an archive run again.
#include "client/fusionctl/args/arguments.h"
#include "client/fusionctl/args/exit_code.h"
#include "client/fusionctl/commands/commands.h"
#include "client/fusionctl/input/model_file.h"
#include "client/fusionctl/output/plan_output.h"
#include "client/fusionctl/output/print.h"
#include "client/fusionctl/output/terminal.h"
#include "client/fusionctl/repro/repro_files.h"
#include "client/fusionctl/service/plan_subject.h"
#include "client/fusionctl/service/session.h"

namespace fusion {
namespace {

// The plan of a model, made and compiled: its key and its graph.
absl::Status PlanModel(const Arguments& arguments, const Client& client, Progress* progress,
                       Repro* out) {
  ASSIGN_OR_RETURN(std::unique_ptr<ModelFile> model, ModelFile::Load(arguments.subject, arguments));
  FusionRequest request = model->Request(arguments, arguments.options);
  request.dumps = {DumpKind::kGraph};
  ASSIGN_OR_RETURN(FusionReply reply, PlanWithProgress(client, request, progress));
  out->plan_key = reply.plan_key;
  for (const Dump& dump : reply.dumps) {
    if (dump.kind == DumpKind::kGraph) out->graph = dump.text;
  }
  return absl::OkStatus();
}

absl::StatusOr<Repro> Gather(const Arguments& arguments, const Client& client, bool is_file,
                             Progress* progress) {
  Repro repro{.program = "fusionctl " FUSION_VERSION};
  if (is_file) {
    RETURN_IF_ERROR(PlanModel(arguments, client, progress, &repro));
  } else {
    ASSIGN_OR_RETURN(repro.plan_key, FindStoredPlan(arguments.subject, client));
  }
  progress->Show("gathering");
  ASSIGN_OR_RETURN(StoredPlanTexts stored, client.GetStoredPlan(repro.plan_key));
  repro.plan = std::move(stored.plan);
  for (KeyField& field : stored.fields) {
    if (field.name != "graph") {
      repro.fields.push_back(std::move(field));
    } else if (repro.graph.empty()) {
      ASSIGN_OR_RETURN(repro.graph, WithConstants(field.value, repro.plan));
    }
  }
  for (const PlanKernel& kernel : repro.plan.kernels) {
    ASSIGN_OR_RETURN(KernelTexts texts, client.GetKernelTexts(kernel.key));
    repro.kernels.push_back(std::move(texts));
  }
  return repro;
}

}  // namespace

absl::StatusOr<ExitCode> RunRepro(const Arguments& arguments, Progress* progress) {
  if (!arguments.replay.empty()) return ReplayRepro(arguments, progress);
  ASSIGN_OR_RETURN(const bool is_file, IsFileSubject(arguments.subject, arguments.model_option));
  if (!is_file && arguments.server.empty() && arguments.store.empty()) {
    return InvalidArgument("the plan ", arguments.subject,
                           " of which service? expected --server ADDRESS or --store DIR");
  }
  return WithService(arguments, progress, [&](const Client& client) -> absl::StatusOr<ExitCode> {
    ASSIGN_OR_RETURN(const Repro repro, Gather(arguments, client, is_file, progress));
    const ReproFiles files = ToFiles(repro);
    absl::Status written = WriteReproArchive(arguments.out, files);
    if (!written.ok()) return BadInput(Annotate(written, "--out"));
    progress->Clear();
    if (arguments.json) {
      PrintJson(Json{{"plan_key", repro.plan_key.ToHex()},
                     {"out", arguments.out},
                     {"kernels", repro.kernels.size()},
                     {"files", files.size()}});
    } else {
      Print(StrCat(Bold(arguments.out), ": plan ", repro.plan_key.ToHex().substr(0, 16), ", ",
                   Count(static_cast<int64_t>(repro.kernels.size()), "kernel"),
                   ", no weights; fusionctl repro --replay ", arguments.out, " runs it\n"));
    }
    return kExitOk;
  });
}

}  // namespace fusion
