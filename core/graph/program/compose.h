#pragma once

#include <optional>
#include <vector>

#include "core/op/body/loop_body.h"
#include "core/tensor/host_tensor.h"

namespace fusion {

/// Input `input` of `body` is the view `view` (LoopBody::IsView) of a base tensor. Rewrites `body`
/// to read the base directly; axes are split where the view's factors require it. Returns false and
/// leaves `body` unchanged if no affine index expresses that (a reshape across a strided slice,
/// say). Then the view must be written to memory.
///
///   body reads v[s, j], j < 768; the view is v[s, 64*h + d] = base[h, s, d]
///   -> axes j_o:12, j_i:64 and base[j_o, s, j_i]
bool ReadThroughView(const LoopBody& view, int input, LoopBody* body);

/// Input `input` of `body` holds `indices`, known integers that are only used as indices of other
/// inputs. `inputs` are the types of all inputs. Returns `body` with the indices computed from the
/// axes and without that input; later inputs move up by one. nullopt if the indices are no
/// arithmetic progression or one is out of range.
///
///   y[s, c] = x[s, i[c]]; i = {0, 2, 4}, c < 3  ->  y[s, c] = x[s, 2*c]
std::optional<LoopBody> ReadAtConstant(const LoopBody& body, int input, const HostTensor& indices,
                                       const std::vector<TensorType>& inputs);

}  // namespace fusion
