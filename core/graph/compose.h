#pragma once

#include <optional>
#include <vector>

#include "core/op/loop_body.h"
#include "core/tensor/host_tensor.h"

namespace fusion {

/// Input `input` of `body` is the view `view` (LoopBody::IsView) of some base tensor. Returns
/// `body` reading the base directly, with axes of `body` split where the view's factors ask for it;
/// nullopt if no affine index says the same (a reshape across a strided slice, say), so that the
/// view must be written to memory.
///
///   body reads v[s, j], j < 768; the view is v[s, 64*h + d] = base[h, s, d]
///   -> axes j_o:12, j_i:64 and base[j_o, s, j_i]
std::optional<LoopBody> ReadThroughView(const LoopBody& body, int input, const LoopBody& view);

/// Input `input` of `body` holds `indices`, known integers that only choose where inputs of types
/// `inputs` are read. Returns `body` with the places written down, `input` taken out and later
/// inputs moved up; nullopt if they are no arithmetic progression or one lies outside.
///
///   y[s, c] = x[s, i[c]]; i = {0, 2, 4}, c < 3  ->  y[s, c] = x[s, 2*c]
std::optional<LoopBody> ReadAtConstant(const LoopBody& body, int input, const HostTensor& indices,
                                       const std::vector<TensorType>& inputs);

}  // namespace fusion
