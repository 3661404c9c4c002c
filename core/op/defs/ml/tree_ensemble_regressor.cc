#include "core/op/forms.h"
#include "core/op/indexed/named_trees.h"

namespace fusion {

/// y[row, target] = sum over all trees (or their mean, minimum, maximum) of what the leaf that the
/// features of a row lead to gives the target, plus base_values; f32
OpDef DefineMlTreeEnsembleRegressor() {
  std::vector<ParamSpec> params = NamedTreeParams("target");
  params.push_back({.name = "aggregate_function", .kind = ParamSpec::kString});
  params.push_back({.name = "n_targets", .kind = ParamSpec::kInt});
  return {.name = "ai.onnx.ml.TreeEnsembleRegressor",
          .params = std::move(params),
          .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
            const AttrMap& attrs = d.call().attrs();
            const int64_t targets = attrs.Int("n_targets", 1);
            ASSIGN_OR_RETURN(TreeEnsemble trees, NamedTrees(attrs, "target", targets));
            if (!trees.base.empty() && static_cast<int64_t>(trees.base.size()) != targets) {
              return InvalidArgument("attribute \"base_values\" has ", trees.base.size(),
                                     " entries for ", targets, " targets");
            }
            ASSIGN_OR_RETURN(auto y, TreeScores(d, std::move(trees)));
            return CastTo(d, y, DType::kF32);
          }};
}

}  // namespace fusion
