#include "client/export_fused.h"

#include <charconv>

#include "core/bundle/text.h"
#include "core/onnx/group_calls.h"
#include "core/onnx/reference_weights.h"

namespace fusion {
namespace {

// The model as it is sent, with the positions of nodes for names: names of clients need not tell
// nodes apart.
std::string Numbered(onnx::ModelProto bare) {
  for (int i = 0; i < bare.graph().node_size(); ++i) {
    bare.mutable_graph()->mutable_node(i)->set_name(StrCat(i));
  }
  return bare.SerializeAsString();
}

// The node that a name of Numbered, or one that import derived from it ("12/then/x"), is about; -1
// for other names.
int NodeNumber(const std::string& name, int nodes) {
  int number = -1;
  const char* end = name.data() + name.size();
  auto [stop, error] = std::from_chars(name.data(), end, number);
  const bool derived = error == std::errc() && (stop == end || *stop == '/');
  return derived && number < nodes ? number : -1;
}

// Asks once more under the names of the caller where the answer speaks of nodes.
absl::StatusOr<FusionReply> AskNumbered(const AskForPlan& ask, FusionRequest request,
                                        const onnx::ModelProto& bare) {
  request.onnx_model = Numbered(bare);
  absl::StatusOr<FusionReply> reply = ask(request);
  const absl::StatusCode code = reply.status().code();
  const bool about_nodes = code == absl::StatusCode::kInvalidArgument ||
                           code == absl::StatusCode::kUnimplemented ||
                           code == absl::StatusCode::kFailedPrecondition;
  if (!about_nodes && (!reply.ok() || reply->warnings.empty())) return reply;
  request.onnx_model = bare.SerializeAsString();
  absl::StatusOr<FusionReply> named = ask(request);
  if (!reply.ok()) return named.ok() ? reply.status() : named.status();
  if (named.ok()) reply->warnings = std::move(named->warnings);
  return reply;
}

std::vector<ModelGroup> GroupsOf(const FusionReply& reply, int nodes, std::vector<int>* group_of) {
  std::vector<ModelGroup> out;
  for (size_t g = 0; g < reply.plan.groups.size(); ++g) {
    const PlanGroup& group = reply.plan.groups[g];
    if (group.kind == GroupKind::kPrepare) continue;
    ModelGroup made{.number = static_cast<int>(g), .label = group.label};
    for (int canonical : group.nodes) {
      const std::string& name = reply.binding.nodes[static_cast<size_t>(canonical)];
      const int node = NodeNumber(name, nodes);
      if (node >= 0) made.nodes.push_back(node);
    }
    const KernelStatus& kernel = reply.kernels[static_cast<size_t>(group.kernel)];
    made.properties = {{"plan_key", reply.plan_key.ToHex()}, {"kernel_key", kernel.key.ToHex()}};
    if (kernel.state == KernelState::kReady) {
      made.properties.emplace_back("kernel_sha256", kernel.content.ToHex());
    }
    group_of->push_back(static_cast<int>(g));
    out.push_back(std::move(made));
  }
  return out;
}

Properties MetadataOf(const FusionReply& reply, const PlanOptions& options) {
  const Plan& plan = reply.plan;
  Properties out;
  auto add = [&](std::string_view name, std::string value) {
    out.emplace_back(StrCat(kGroupMetadata, name), std::move(value));
  };
  add("plan_key", reply.plan_key.ToHex());
  add("target", plan.target);
  add("isa", plan.isa);
  add("threads", StrCat(plan.threads));
  add("numerics", std::string(NumericsName(plan.numerics)));
  std::vector<std::string> dims;
  if (options.hints.batch_size > 0) dims.push_back(StrCat("batch=", options.hints.batch_size));
  for (const auto& [name, value] : options.dim_bindings) dims.push_back(StrCat(name, "=", value));
  if (!dims.empty()) add("dims", StrJoin(dims, ","));
  std::vector<std::string> kernels;
  for (const PlanLaunch& launch : plan.launches) {
    kernels.push_back(
        StrCat(launch.group, "=", plan.kernels[static_cast<size_t>(launch.kernel)].key.ToHex()));
  }
  add("kernels", StrJoin(kernels, ","));
  return out;
}

}  // namespace

absl::StatusOr<FusedExport> ExportFused(const Client& client, const FusionRequest& request,
                                        const std::string& directory, onnx::ModelProto* model) {
  auto ask = [&](const FusionRequest& asked) { return client.PlanFusion(asked); };
  return ExportFused(ask, request, directory, model);
}

absl::StatusOr<FusedExport> ExportFused(const AskForPlan& ask, const FusionRequest& request,
                                        const std::string& directory, onnx::ModelProto* model,
                                        const std::vector<std::string>& overridden) {
  if (request.allow_fused) OpenGroups(model);
  ASSIGN_OR_RETURN(onnx::ModelProto bare,
                   ReferenceWeights(*model, {.directory = directory, .overridden = overridden}));
  FusedExport out;
  ASSIGN_OR_RETURN(out.reply, AskNumbered(ask, request, bare));
  std::vector<ModelGroup> groups = GroupsOf(out.reply, model->graph().node_size(), &out.group_of);
  ASSIGN_OR_RETURN(out.written, WriteGroups(groups, MetadataOf(out.reply, request.options), model));
  return out;
}

}  // namespace fusion
