#include "core/op/forms.h"

namespace fusion {

/// y = 1 at the first maximum of x along `axis`, else 0
OpDef DefineHardmax() {
  return {.name = "Hardmax",
          .params = SoftmaxParams(),
          .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
            const OpCall& call = d.call();
            ASSIGN_OR_RETURN(std::vector<int64_t> axes, SoftmaxAxes(call));
            if (axes.empty()) return InvalidArgument("no axis to look for a maximum along");
            if (!call.shape(0).is_static()) {
              return Unimplemented("input 0 ", call.in(0).ToString(), " has symbolic dims");
            }
            // Several axes, of old opsets, are the last ones: seen as one.
            const Dims dims = call.shape(0).ToDims();
            const auto axis = static_cast<size_t>(axes[0]);
            Dims flat(dims.begin(), dims.begin() + static_cast<int64_t>(axis));
            int64_t depth = 1;
            for (int64_t a : axes) depth *= dims[static_cast<size_t>(a)];
            flat.push_back(depth);
            if (axes.size() == 1) flat.insert(flat.end(), dims.begin() + axes[0] + 1, dims.end());
            AttrMap reshape = {{"shape", flat}, {"allowzero", int64_t{1}}};
            ASSIGN_OR_RETURN(auto x, d.Apply("Reshape", {d.in(0)}, std::move(reshape)));
            ASSIGN_OR_RETURN(auto first,
                             d.Apply("ArgMax", {x}, {{"axis", axes[0]}, {"keepdims", int64_t{0}}}));
            ASSIGN_OR_RETURN(auto hit,
                             d.Apply("MatchIndex", {first}, {{"axis", axes[0]}, {"depth", depth}}));
            ASSIGN_OR_RETURN(auto y, CastTo(d, hit, call.dtype(0)));
            return d.Apply("Reshape", {y}, {{"shape", dims}, {"allowzero", int64_t{1}}});
          },
          .normalise = NormaliseSoftmax};
}

}  // namespace fusion
