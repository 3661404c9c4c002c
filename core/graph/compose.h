#pragma once

#include <optional>

#include "core/op/loop_body.h"

namespace fusion {

/// Input `input` of `body` is the view `view` (LoopBody::IsView) of some base tensor. Returns
/// `body` reading the base directly, with axes of `body` split where the view's factors ask for it;
/// nullopt if no affine index says the same (a reshape across a strided slice, say), so that the
/// view must be written to memory.
///
///   body reads v[s, j], j < 768; the view is v[s, 64*h + d] = base[h, s, d]
///   -> axes j_o:12, j_i:64 and base[j_o, s, j_i]
std::optional<LoopBody> ReadThroughView(const LoopBody& body, int input, const LoopBody& view);

}  // namespace fusion
