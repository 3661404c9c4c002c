#include <algorithm>
#include <map>

#include "core/op/forms.h"
#include "core/op/trees.h"

namespace fusion {

namespace {

// Numbers that are a list or, in the type of double, a tensor.
std::vector<double> OldTreeNumbers(const AttrMap& attrs, const std::string& name) {
  const std::string as_tensor = name + "_as_tensor";
  if (const auto* given = attrs.Find<std::shared_ptr<const HostTensor>>(as_tensor)) {
    std::vector<double> out;
    for (int64_t i = 0; i < (*given)->elements(); ++i) out.push_back((*given)->GetDouble(i));
    return out;
  }
  const auto* list = attrs.Find<std::vector<double>>(name);
  return list == nullptr ? std::vector<double>() : *list;
}

absl::StatusOr<TreeMode> OldTreeMode(std::string_view name) {
  constexpr std::pair<std::string_view, TreeMode> kModes[] = {
      {"BRANCH_LEQ", TreeMode::kLessOrEqual},
      {"BRANCH_LT", TreeMode::kLess},
      {"BRANCH_GTE", TreeMode::kGreaterOrEqual},
      {"BRANCH_GT", TreeMode::kGreater},
      {"BRANCH_EQ", TreeMode::kEqual},
      {"BRANCH_NEQ", TreeMode::kNotEqual},
      {"LEAF", TreeMode::kLeaf}};
  for (const auto& [known, mode] : kModes) {
    if (known == name) return mode;
  }
  return InvalidArgument("attribute \"nodes_modes\" has the entry ", QuoteShort(name),
                         ", expected BRANCH_LEQ, .. or LEAF");
}

template <typename T, size_t n>
absl::StatusOr<T> OldTreeChoice(const AttrMap& attrs, std::string_view name,
                                const std::pair<std::string_view, T> (&choices)[n], T fallback) {
  const auto* given = attrs.Find<std::string>(name);
  if (given == nullptr) return fallback;
  for (const auto& [known, value] : choices) {
    if (known == *given) return value;
  }
  return InvalidArgument("attribute ", Quote(name), " is ", QuoteShort(*given),
                         ", expected one of ",
                         StrJoin(choices, ", ", [](const auto& c) { return c.first; }));
}

constexpr std::pair<std::string_view, TreeSum> kOldTreeSums[] = {{"AVERAGE", TreeSum::kAverage},
                                                                 {"SUM", TreeSum::kSum},
                                                                 {"MIN", TreeSum::kMin},
                                                                 {"MAX", TreeSum::kMax}};
constexpr std::pair<std::string_view, TreeTransform> kOldTreeTransforms[] = {
    {"NONE", TreeTransform::kNone},
    {"SOFTMAX", TreeTransform::kSoftmax},
    {"LOGISTIC", TreeTransform::kLogistic},
    {"SOFTMAX_ZERO", TreeTransform::kSoftmaxZero},
    {"PROBIT", TreeTransform::kProbit}};

// Nodes are named by tree and number within it.
using OldTreeNames = std::map<std::pair<int64_t, int64_t>, int64_t>;

absl::StatusOr<int64_t> OldTreeNode(const OldTreeNames& names, int64_t tree, int64_t id) {
  auto at = names.find({tree, id});
  if (at != names.end()) return at->second;
  return InvalidArgument("tree ", tree, " has no node ", id);
}

absl::Status AddOldNodes(const AttrMap& attrs, OldTreeNames* names, TreeEnsemble* out) {
  const std::vector<int64_t> trees = attrs.Ints("nodes_treeids");
  const std::vector<int64_t> ids = attrs.Ints("nodes_nodeids");
  const std::vector<int64_t> features = attrs.Ints("nodes_featureids");
  const std::vector<int64_t> if_true = attrs.Ints("nodes_truenodeids");
  const std::vector<int64_t> if_false = attrs.Ints("nodes_falsenodeids");
  const std::vector<int64_t> missing = attrs.Ints("nodes_missing_value_tracks_true");
  const std::vector<double> splits = OldTreeNumbers(attrs, "nodes_values");
  const auto* text = attrs.Find<std::string>("nodes_modes");
  std::vector<std::string_view> modes;
  if (text != nullptr) modes = StrSplit(*text, ',');
  const size_t count = ids.size();
  for (size_t size : {trees.size(), features.size(), if_true.size(), if_false.size(), splits.size(),
                      modes.size(), missing.empty() ? count : missing.size()}) {
    if (size != count) {
      return InvalidArgument("the attributes nodes_* have ", count, " and ", size,
                             " entries, expected as many each");
    }
  }
  for (size_t i = 0; i < count; ++i) {
    if (!names->emplace(std::pair(trees[i], ids[i]), static_cast<int64_t>(i)).second) {
      return InvalidArgument("tree ", trees[i], " has two nodes ", ids[i]);
    }
    if (i == 0 || trees[i] != trees[i - 1]) out->roots.push_back(static_cast<int64_t>(i));
  }
  for (size_t i = 0; i < count; ++i) {
    TreeNode node = {.feature = features[i], .split = splits[i]};
    ASSIGN_OR_RETURN(node.mode, OldTreeMode(modes[i]));
    node.nan_is_true = !missing.empty() && missing[i] != 0;
    if (node.mode != TreeMode::kLeaf) {
      ASSIGN_OR_RETURN(node.if_true, OldTreeNode(*names, trees[i], if_true[i]));
      ASSIGN_OR_RETURN(node.if_false, OldTreeNode(*names, trees[i], if_false[i]));
    }
    out->nodes.push_back(std::move(node));
  }
  return absl::OkStatus();
}

absl::StatusOr<TreeEnsemble> OldTrees(const AttrMap& attrs) {
  TreeEnsemble out;
  OldTreeNames names;
  RETURN_IF_ERROR(AddOldNodes(attrs, &names, &out));
  const std::vector<int64_t> targets = attrs.Ints("target_ids");
  const std::vector<int64_t> nodes = attrs.Ints("target_nodeids");
  const std::vector<int64_t> trees = attrs.Ints("target_treeids");
  const std::vector<double> weights = OldTreeNumbers(attrs, "target_weights");
  if (nodes.size() != targets.size() || trees.size() != targets.size() ||
      weights.size() != targets.size()) {
    return InvalidArgument("the attributes target_* have ", targets.size(), ", ", nodes.size(),
                           ", ", trees.size(), " and ", weights.size(),
                           " entries, expected as many each");
  }
  for (size_t i = 0; i < targets.size(); ++i) {
    ASSIGN_OR_RETURN(const int64_t leaf, OldTreeNode(names, trees[i], nodes[i]));
    out.weights.push_back({leaf, targets[i], weights[i]});
  }
  out.targets = attrs.Int("n_targets", 1);
  out.base = OldTreeNumbers(attrs, "base_values");
  if (!out.base.empty() && static_cast<int64_t>(out.base.size()) != out.targets) {
    return InvalidArgument("attribute \"base_values\" has ", out.base.size(), " entries for ",
                           out.targets, " targets");
  }
  ASSIGN_OR_RETURN(out.sum,
                   OldTreeChoice(attrs, "aggregate_function", kOldTreeSums, TreeSum::kSum));
  ASSIGN_OR_RETURN(out.transform, OldTreeChoice(attrs, "post_transform", kOldTreeTransforms,
                                                TreeTransform::kNone));
  return out;
}

}  // namespace

/// y[row, target] = sum over all trees (or their mean, minimum, maximum) of what the leaf that the
/// features of a row lead to gives the target, plus base_values; f32
OpDef DefineMlTreeEnsembleRegressor() {
  std::vector<ParamSpec> params;
  for (const char* name : {"nodes_falsenodeids", "nodes_featureids",
                           "nodes_missing_value_tracks_true", "nodes_nodeids", "nodes_treeids",
                           "nodes_truenodeids", "target_ids", "target_nodeids", "target_treeids"}) {
    params.push_back({.name = name, .kind = ParamSpec::kInts});
  }
  for (const std::string name :
       {"base_values", "nodes_hitrates", "nodes_values", "target_weights"}) {
    params.push_back({.name = name, .kind = ParamSpec::kFloats});
    params.push_back({.name = name + "_as_tensor", .kind = ParamSpec::kTensor});
  }
  for (const char* name : {"aggregate_function", "nodes_modes", "post_transform"}) {
    params.push_back({.name = name, .kind = ParamSpec::kString});
  }
  params.push_back({.name = "n_targets", .kind = ParamSpec::kInt});
  return {.name = "ai.onnx.ml.TreeEnsembleRegressor",
          .params = std::move(params),
          .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
            ASSIGN_OR_RETURN(TreeEnsemble trees, OldTrees(d.call().attrs()));
            ASSIGN_OR_RETURN(auto y, TreeScores(d, std::move(trees)));
            return CastTo(d, y, DType::kF32);
          }};
}

}  // namespace fusion
