#pragma once

#include <onnx/onnx_pb.h>

#include <functional>
#include <string>
#include <vector>

#include "client/client.h"
#include "core/export/write_groups.h"

namespace fusion {

/// A plan, and the model with its groups as nodes.
struct FusedExport {
  FusionReply reply;
  WrittenModel written;
  std::vector<int> group_of;  // of each entry of written.groups: position in reply.plan.groups
};

/// Asks a service for a plan.
using AskForPlan = std::function<absl::StatusOr<FusionReply>(const FusionRequest&)>;

/// Plans `model` and writes the groups that run at every inference into it: see WriteGroups. Any
/// runtime can run the model then.
///
///   ASSIGN_OR_RETURN(onnx::ModelProto model, LoadModel("bert.onnx"));
///   FusionRequest request{.target = DetectTarget()};
///   ASSIGN_OR_RETURN(FusedExport out, ExportFused(*client, request, ".", &model));
///   RETURN_IF_ERROR(RebaseExternalData(".", "out/bert.onnx", &model));
///   RETURN_IF_ERROR(SaveModel(model, "out/bert.onnx"));
///
/// Nodes of groups have the attributes "plan_key", "kernel_key" and, where they are compiled,
/// "kernel_sha256", the digest of the kernel's bytes; all in hex. The model's metadata has
/// "fusiond.plan_key", what the plan is for ("fusiond.target", "fusiond.isa", "fusiond.threads",
/// "fusiond.numerics"), the dims it holds for ("fusiond.dims"; the model itself takes all dims) and
/// the key of every launch's kernel by its group ("fusiond.kernels").
///
/// `request.onnx_model` is not looked at. `directory`: where external data files of the model lie;
/// only constants that planning looks at are read. A model whose groups are nodes already is opened
/// first if `request.allow_fused`. On errors, which are those of Client::PlanFusion,
/// ReferenceWeights and WriteGroups, `model` is what it was, or that opened.
absl::StatusOr<FusedExport> ExportFused(const Client& client, const FusionRequest& request,
                                        const std::string& directory, onnx::ModelProto* model);
/// The same for callers that ask in their own way. `ask` may be called twice. `overridden`: as in
/// ReferenceOptions; the file keeps these initialisers.
absl::StatusOr<FusedExport> ExportFused(const AskForPlan& ask, const FusionRequest& request,
                                        const std::string& directory, onnx::ModelProto* model,
                                        const std::vector<std::string>& overridden = {});

}  // namespace fusion
