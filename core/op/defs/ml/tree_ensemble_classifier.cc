#include <algorithm>

#include "core/op/forms.h"
#include "core/op/indexed/named_trees.h"

namespace fusion {

namespace {

// Of two classes, trees may speak of one: its score and what is left for the other.
absl::Status OneScoreForBoth(const TreeEnsemble& trees) {
  const bool same = std::all_of(trees.base.begin(), trees.base.end(),
                                [&](double b) { return b == trees.base[0]; });
  if (!same) {
    return Unimplemented("attribute \"base_values\" differs for two classes of one score");
  }
  const bool negative = std::any_of(trees.weights.begin(), trees.weights.end(),
                                    [](const TreeWeight& w) { return w.weight < 0; });
  if (!negative || trees.transform != TreeTransform::kNone) return absl::OkStatus();
  return Unimplemented(
      "one score with negative weights for two classes, and no post_transform: "
      "ONNX's reference and ONNX Runtime mean different things");
}

absl::StatusOr<Decomposition::Value> BothScores(Decomposition& d, Decomposition::Value y,
                                                TreeTransform transform) {
  const DType type = d.type(y).dtype;
  const bool shares = transform == TreeTransform::kNone || transform == TreeTransform::kProbit;
  ASSIGN_OR_RETURN(auto other, d.Apply("Sub", {d.Scalar(type, shares ? 1 : 0), y}));
  return d.Apply("Concat", {other, y}, {{"axis", int64_t{1}}});
}

absl::StatusOr<Decomposition::Value> Classified(Decomposition& d) {
  const AttrMap& attrs = d.call().attrs();
  if (attrs.Has("classlabels_strings")) {
    return Unimplemented(
        "attribute \"classlabels_strings\" names classes by strings; supported: "
        "classlabels_int64s");
  }
  const std::vector<int64_t> labels = attrs.Ints("classlabels_int64s");
  if (labels.size() < 2) {
    return Unimplemented("attribute \"classlabels_int64s\" has ", labels.size(),
                         " entries; supported: at least 2");
  }
  const auto classes = static_cast<int64_t>(labels.size());
  ASSIGN_OR_RETURN(TreeEnsemble trees, NamedTrees(attrs, "class", classes));
  const TreeTransform transform = trees.transform;
  const bool one = classes == 2 && !trees.weights.empty() &&
                   std::all_of(trees.weights.begin(), trees.weights.end(),
                               [&](const auto& w) { return w.target == trees.weights[0].target; });
  if (one) {
    RETURN_IF_ERROR(OneScoreForBoth(trees));
    trees.targets = 1;
    for (TreeWeight& weight : trees.weights) weight.target = 0;
    if (!trees.base.empty()) trees.base.resize(1);
  }
  if (!trees.base.empty() && static_cast<int64_t>(trees.base.size()) != trees.targets) {
    return InvalidArgument("attribute \"base_values\" has ", trees.base.size(), " entries for ",
                           classes, " classes");
  }
  trees.transform = TreeTransform::kNone;
  ASSIGN_OR_RETURN(auto scores, TreeScores(d, std::move(trees)));
  if (one) {
    ASSIGN_OR_RETURN(scores, BothScores(d, scores, transform));
  }
  ASSIGN_OR_RETURN(scores, TransformedScores(d, scores, transform));
  ASSIGN_OR_RETURN(scores, CastTo(d, scores, DType::kF32));
  if (d.call().outputs() > 1) d.SetOutput(1, scores);
  ASSIGN_OR_RETURN(auto best,
                   d.Apply("ArgMax", {scores}, {{"axis", int64_t{1}}, {"keepdims", int64_t{0}}}));
  HostTensor names(DType::kI64, {classes});
  for (int64_t i = 0; i < classes; ++i) names.SetInt(i, labels[static_cast<size_t>(i)]);
  return d.Apply("Gather", {d.Constant(std::move(names)), best}, {{"axis", int64_t{0}}});
}

}  // namespace

/// The class of each row, and the scores of all: sums over all trees of what the leaf that the
/// features of a row lead to gives a class, plus base_values, as post_transform says. Of two
/// classes trees may speak of one, s: the other one has 1 - s or, where the scores are transformed,
/// -s.
OpDef DefineMlTreeEnsembleClassifier() {
  std::vector<ParamSpec> params = NamedTreeParams("class");
  params.push_back({.name = "classlabels_int64s", .kind = ParamSpec::kInts});
  params.push_back({.name = "classlabels_strings", .kind = ParamSpec::kString});
  return {.name = "ai.onnx.ml.TreeEnsembleClassifier",
          .params = std::move(params),
          .max_outputs = 2,
          .decompose = Classified};
}

}  // namespace fusion
