#pragma once

#include <optional>
#include <vector>

#include "core/op/body/loop_body.h"
#include "core/tensor/host_tensor.h"

namespace fusion {

/// Input `input` of `body` is the view `view` (LoopBody::IsView) of some base tensor. Makes `body`
/// read the base directly, with axes of it split where the view's factors ask for it; false, and
/// `body` is as it was, if no affine index says the same (a reshape across a strided slice, say),
/// so that the view must be written to memory.
///
///   body reads v[s, j], j < 768; the view is v[s, 64*h + d] = base[h, s, d]
///   -> axes j_o:12, j_i:64 and base[j_o, s, j_i]
bool ReadThroughView(const LoopBody& view, int input, LoopBody* body);

/// Input `input` of `body` holds `indices`, known integers that only choose where inputs of types
/// `inputs` are read. Returns `body` with the places written down, `input` taken out and later
/// inputs moved up; nullopt if they are no arithmetic progression or one lies outside.
///
///   y[s, c] = x[s, i[c]]; i = {0, 2, 4}, c < 3  ->  y[s, c] = x[s, 2*c]
std::optional<LoopBody> ReadAtConstant(const LoopBody& body, int input, const HostTensor& indices,
                                       const std::vector<TensorType>& inputs);

}  // namespace fusion
