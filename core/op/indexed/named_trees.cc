#include "core/op/indexed/named_trees.h"

#include <map>
#include <set>
#include <string>
#include <utility>

namespace fusion {
namespace {

// Numbers that are a list or, in the type of double, a tensor.
std::vector<double> NamedNumbers(const AttrMap& attrs, const std::string& name) {
  const std::string as_tensor = name + "_as_tensor";
  if (const auto* given = attrs.Find<std::shared_ptr<const HostTensor>>(as_tensor)) {
    std::vector<double> out;
    for (int64_t i = 0; i < (*given)->elements(); ++i) out.push_back((*given)->GetDouble(i));
    return out;
  }
  const auto* list = attrs.Find<std::vector<double>>(name);
  return list == nullptr ? std::vector<double>() : *list;
}

absl::StatusOr<TreeMode> NamedMode(std::string_view name) {
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
absl::StatusOr<T> NamedChoice(const AttrMap& attrs, std::string_view name,
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

constexpr std::pair<std::string_view, TreeSum> kNamedSums[] = {{"AVERAGE", TreeSum::kAverage},
                                                               {"SUM", TreeSum::kSum},
                                                               {"MIN", TreeSum::kMin},
                                                               {"MAX", TreeSum::kMax}};
constexpr std::pair<std::string_view, TreeTransform> kNamedTransforms[] = {
    {"NONE", TreeTransform::kNone},
    {"SOFTMAX", TreeTransform::kSoftmax},
    {"LOGISTIC", TreeTransform::kLogistic},
    {"SOFTMAX_ZERO", TreeTransform::kSoftmaxZero},
    {"PROBIT", TreeTransform::kProbit}};

// Nodes are named by tree and number within it.
using NamedNames = std::map<std::pair<int64_t, int64_t>, int64_t>;

absl::StatusOr<int64_t> NamedNode(const NamedNames& names, int64_t tree, int64_t id) {
  auto at = names.find({tree, id});
  if (at != names.end()) return at->second;
  return InvalidArgument("tree ", tree, " has no node ", id);
}

absl::Status AddNodes(const AttrMap& attrs, NamedNames* names, TreeEnsemble* out) {
  const std::vector<int64_t> trees = attrs.Ints("nodes_treeids");
  const std::vector<int64_t> ids = attrs.Ints("nodes_nodeids");
  const std::vector<int64_t> features = attrs.Ints("nodes_featureids");
  const std::vector<int64_t> if_true = attrs.Ints("nodes_truenodeids");
  const std::vector<int64_t> if_false = attrs.Ints("nodes_falsenodeids");
  const std::vector<int64_t> missing = attrs.Ints("nodes_missing_value_tracks_true");
  const std::vector<double> splits = NamedNumbers(attrs, "nodes_values");
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
  std::set<int64_t> seen;  // trees; their nodes may stand anywhere, the first is the root
  for (size_t i = 0; i < count; ++i) {
    if (!names->emplace(std::pair(trees[i], ids[i]), static_cast<int64_t>(i)).second) {
      return InvalidArgument("tree ", trees[i], " has two nodes ", ids[i]);
    }
    if (seen.insert(trees[i]).second) out->roots.push_back(static_cast<int64_t>(i));
  }
  for (size_t i = 0; i < count; ++i) {
    TreeNode node = {.feature = features[i], .split = splits[i]};
    ASSIGN_OR_RETURN(node.mode, NamedMode(modes[i]));
    node.nan_is_true = !missing.empty() && missing[i] != 0;
    if (node.mode != TreeMode::kLeaf) {
      ASSIGN_OR_RETURN(node.if_true, NamedNode(*names, trees[i], if_true[i]));
      ASSIGN_OR_RETURN(node.if_false, NamedNode(*names, trees[i], if_false[i]));
    }
    out->nodes.push_back(std::move(node));
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<ParamSpec> NamedTreeParams(std::string_view leaf) {
  std::vector<ParamSpec> params;
  for (const char* name :
       {"nodes_falsenodeids", "nodes_featureids", "nodes_missing_value_tracks_true",
        "nodes_nodeids", "nodes_treeids", "nodes_truenodeids"}) {
    params.push_back({.name = name, .kind = ParamSpec::kInts});
  }
  for (const char* name : {"_ids", "_nodeids", "_treeids"}) {
    params.push_back({.name = StrCat(leaf, name), .kind = ParamSpec::kInts});
  }
  for (const std::string& name : {std::string("base_values"), std::string("nodes_hitrates"),
                                  std::string("nodes_values"), StrCat(leaf, "_weights")}) {
    params.push_back({.name = name, .kind = ParamSpec::kFloats});
    params.push_back({.name = StrCat(name, "_as_tensor"), .kind = ParamSpec::kTensor});
  }
  for (const char* name : {"nodes_modes", "post_transform"}) {
    params.push_back({.name = name, .kind = ParamSpec::kString});
  }
  return params;
}

absl::StatusOr<TreeEnsemble> NamedTrees(const AttrMap& attrs, std::string_view leaf,
                                        int64_t targets) {
  TreeEnsemble out = {.targets = targets};
  NamedNames names;
  RETURN_IF_ERROR(AddNodes(attrs, &names, &out));
  const std::vector<int64_t> ids = attrs.Ints(StrCat(leaf, "_ids"));
  const std::vector<int64_t> nodes = attrs.Ints(StrCat(leaf, "_nodeids"));
  const std::vector<int64_t> trees = attrs.Ints(StrCat(leaf, "_treeids"));
  const std::vector<double> weights = NamedNumbers(attrs, StrCat(leaf, "_weights"));
  if (nodes.size() != ids.size() || trees.size() != ids.size() || weights.size() != ids.size()) {
    return InvalidArgument("the attributes ", leaf, "_* have ", ids.size(), ", ", nodes.size(),
                           ", ", trees.size(), " and ", weights.size(),
                           " entries, expected as many each");
  }
  for (size_t i = 0; i < ids.size(); ++i) {
    ASSIGN_OR_RETURN(const int64_t at, NamedNode(names, trees[i], nodes[i]));
    out.weights.push_back({at, ids[i], weights[i]});
  }
  out.base = NamedNumbers(attrs, "base_values");
  ASSIGN_OR_RETURN(out.sum, NamedChoice(attrs, "aggregate_function", kNamedSums, TreeSum::kSum));
  ASSIGN_OR_RETURN(out.transform,
                   NamedChoice(attrs, "post_transform", kNamedTransforms, TreeTransform::kNone));
  return out;
}

}  // namespace fusion
