#include <cmath>

#include "core/op/forms.h"
#include "core/op/indexed/trees.h"

namespace fusion {

namespace {

using TreeTensor = std::shared_ptr<const HostTensor>;

absl::Status CheckTreeCount(std::string_view name, size_t count, size_t expected) {
  if (count == expected) return absl::OkStatus();
  return InvalidArgument("attribute ", Quote(name), " has ", count, " entries, expected ",
                         expected);
}

absl::StatusOr<std::vector<double>> TreeNumbers(const AttrMap& attrs, std::string_view name) {
  const auto* given = attrs.Find<TreeTensor>(name);
  if (given == nullptr) return std::vector<double>();
  std::vector<double> out;
  for (int64_t i = 0; i < (*given)->elements(); ++i) out.push_back((*given)->GetDouble(i));
  return out;
}

// The members of each node that asks for one, in the order of the nodes, each list ended by NaN.
absl::Status SetTreeMembers(const std::vector<double>& values, std::vector<TreeNode>* nodes) {
  size_t at = 0;
  for (size_t i = 0; i < nodes->size(); ++i) {
    TreeNode& node = (*nodes)[i];
    if (node.mode != TreeMode::kMember) continue;
    while (at < values.size() && !std::isnan(values[at])) node.members.push_back(values[at++]);
    if (at == values.size()) {
      return InvalidArgument("attribute \"membership_values\" has no members for node ", i,
                             " that end with NaN");
    }
    ++at;
  }
  return absl::OkStatus();
}

absl::StatusOr<TreeEnsemble> NewTrees(const AttrMap& attrs) {
  TreeEnsemble out;
  const std::vector<int64_t> features = attrs.Ints("nodes_featureids");
  const size_t inner = features.size();
  ASSIGN_OR_RETURN(const std::vector<double> modes, TreeNumbers(attrs, "nodes_modes"));
  ASSIGN_OR_RETURN(const std::vector<double> splits, TreeNumbers(attrs, "nodes_splits"));
  ASSIGN_OR_RETURN(const std::vector<double> weights, TreeNumbers(attrs, "leaf_weights"));
  RETURN_IF_ERROR(CheckTreeCount("nodes_modes", modes.size(), inner));
  RETURN_IF_ERROR(CheckTreeCount("nodes_splits", splits.size(), inner));
  const std::vector<int64_t> targets = attrs.Ints("leaf_targetids");
  RETURN_IF_ERROR(CheckTreeCount("leaf_weights", weights.size(), targets.size()));
  std::vector<int64_t> lists[4];
  const char* names[4] = {"nodes_truenodeids", "nodes_trueleafs", "nodes_falsenodeids",
                          "nodes_falseleafs"};
  for (int i = 0; i < 4; ++i) {
    lists[i] = attrs.Ints(names[i]);
    RETURN_IF_ERROR(CheckTreeCount(names[i], lists[i].size(), inner));
  }
  const std::vector<int64_t> missing = attrs.Ints("nodes_missing_value_tracks_true");
  if (!missing.empty()) {
    RETURN_IF_ERROR(CheckTreeCount("nodes_missing_value_tracks_true", missing.size(), inner));
  }
  // Leaves stand behind the other nodes.
  const auto first_leaf = static_cast<int64_t>(inner);
  const auto leaves = static_cast<int64_t>(targets.size());
  auto child = [&](size_t node, int side) -> absl::StatusOr<int64_t> {
    const int64_t id = lists[side][node];
    const bool leaf = lists[side + 1][node] != 0;
    const int64_t count = leaf ? leaves : first_leaf;
    if (id < 0 || id >= count) {
      return InvalidArgument("attribute ", Quote(names[side]), " has the entry ", id, " of ", count,
                             leaf ? " leaves" : " nodes");
    }
    return leaf ? first_leaf + id : id;
  };
  out.nodes.resize(inner + targets.size());
  for (size_t i = 0; i < inner; ++i) {
    if (!(modes[i] >= 0 && modes[i] <= static_cast<double>(TreeMode::kMember))) {
      return InvalidArgument("attribute \"nodes_modes\" has the entry ", modes[i],
                             ", expected 0..6");
    }
    TreeNode& node = out.nodes[i];
    node.mode = static_cast<TreeMode>(static_cast<int>(modes[i]));
    node.feature = features[i];
    node.split = splits[i];
    node.nan_is_true = !missing.empty() && missing[i] != 0;
    ASSIGN_OR_RETURN(node.if_true, child(i, 0));
    ASSIGN_OR_RETURN(node.if_false, child(i, 2));
  }
  ASSIGN_OR_RETURN(const std::vector<double> members, TreeNumbers(attrs, "membership_values"));
  RETURN_IF_ERROR(SetTreeMembers(members, &out.nodes));
  for (int64_t i = 0; i < leaves; ++i) {
    const auto at = static_cast<size_t>(i);
    out.weights.push_back({first_leaf + i, targets[at], weights[at]});
  }
  for (int64_t root : attrs.Ints("tree_roots")) {
    if (root < 0 || root >= first_leaf) {
      return InvalidArgument("attribute \"tree_roots\" has the entry ", root, " of ", first_leaf,
                             " nodes");
    }
    out.roots.push_back(root);
  }
  return out;
}

}  // namespace

/// y[row, target] = sum over all trees (or their mean, minimum, maximum) of what the leaf that the
/// features of a row lead to gives the target
OpDef DefineMlTreeEnsemble() {
  std::vector<ParamSpec> params;
  for (const char* name :
       {"leaf_targetids", "nodes_falseleafs", "nodes_falsenodeids", "nodes_featureids",
        "nodes_trueleafs", "nodes_truenodeids", "tree_roots"}) {
    params.push_back({.name = name, .kind = ParamSpec::kInts, .required = true});
  }
  params.push_back({.name = "nodes_missing_value_tracks_true", .kind = ParamSpec::kInts});
  for (const char* name : {"leaf_weights", "nodes_modes", "nodes_splits"}) {
    params.push_back({.name = name, .kind = ParamSpec::kTensor, .required = true});
  }
  for (const char* name : {"membership_values", "nodes_hitrates"}) {
    params.push_back({.name = name, .kind = ParamSpec::kTensor});
  }
  for (const char* name : {"aggregate_function", "n_targets", "post_transform"}) {
    params.push_back({.name = name, .kind = ParamSpec::kInt});
  }
  return {.name = "ai.onnx.ml.TreeEnsemble",
          .params = std::move(params),
          .min_opset = 5,
          .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
            const AttrMap& attrs = d.call().attrs();
            RETURN_IF_ERROR(CheckFloat(d.call(), 0));
            ASSIGN_OR_RETURN(TreeEnsemble trees, NewTrees(attrs));
            trees.targets = attrs.Int("n_targets", 1);
            const int64_t sum = attrs.Int("aggregate_function", 1);
            const int64_t transform = attrs.Int("post_transform", 0);
            if (sum < 0 || sum > 3 || transform < 0 || transform > 4) {
              return InvalidArgument(R"(attributes "aggregate_function" and "post_transform" are )",
                                     sum, " and ", transform, ", expected 0..3 and 0..4");
            }
            trees.sum = static_cast<TreeSum>(sum);
            trees.transform = static_cast<TreeTransform>(transform);
            ASSIGN_OR_RETURN(auto y, TreeScores(d, std::move(trees)));
            return CastTo(d, y, d.call().dtype(0));
          }};
}

}  // namespace fusion
