#pragma once

#include <onnx/onnx_pb.h>

#include <functional>
#include <string>
#include <vector>

#include "client/client.h"
#include "core/export/write_groups.h"

namespace fusion {

/// A plan, and the model with the plan's groups as nodes.
struct FusedExport {
  FusionReply reply;
  WrittenModel written;
  std::vector<int> group_of;  // of each entry of written.groups: position in reply.plan.groups
};

/// Requests a plan from a service.
using AskForPlan = std::function<absl::StatusOr<FusionReply>(const FusionRequest&)>;

/// Plans `model` and rewrites it: each group that runs at every inference becomes a node (see
/// WriteGroups). Any ONNX runtime can then run the model.
///
///   ASSIGN_OR_RETURN(onnx::ModelProto model, LoadModel("bert.onnx"));
///   FusionRequest request{.target = DetectTarget()};
///   ASSIGN_OR_RETURN(FusedExport out, ExportFused(*client, request, ".", &model));
///   RETURN_IF_ERROR(RebaseExternalData(".", "out/bert.onnx", &model));
///   RETURN_IF_ERROR(SaveModel(model, "out/bert.onnx"));
///
/// Group nodes have the attributes "plan_key", "kernel_key" and, if compiled, "kernel_sha256" (the
/// digest of the kernel's bytes), all in hex. The model's metadata has "fusiond.plan_key", the
/// conditions of the plan ("fusiond.target", "fusiond.isa", "fusiond.threads", "fusiond.numerics"),
/// the dims that it is for ("fusiond.dims"; the model itself accepts all dims) and the kernel key
/// of every launch by group ("fusiond.kernels").
///
/// `request.onnx_model` is ignored. `directory`: of the model's external data files; only constants
/// that planning needs are read. If `request.allow_fused`, a model whose groups are already nodes
/// is first expanded. Errors: those of Client::PlanFusion, ReferenceWeights and WriteGroups;
/// `model` is then unchanged, or expanded.
absl::StatusOr<FusedExport> ExportFused(const Client& client, const FusionRequest& request,
                                        const std::string& directory, onnx::ModelProto* model);
/// The same with a custom request function. `ask` may be called twice. `overridden`: as in
/// ReferenceOptions; the file keeps these initialisers.
absl::StatusOr<FusedExport> ExportFused(const AskForPlan& ask, const FusionRequest& request,
                                        const std::string& directory, onnx::ModelProto* model,
                                        const std::vector<std::string>& overridden = {});

}  // namespace fusion
