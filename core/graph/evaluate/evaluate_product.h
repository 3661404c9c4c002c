#pragma once

#include <vector>

#include "core/graph/evaluate/evaluate_loop.h"

namespace fusion {

/// A sum of products of inputs `a` and `b` in a form for a fast loop. Written axis `n` moves only
/// b, with stride 1 or a small stride. Reduced axis `k` (the longest) moves both. Written axis `m`,
/// if there is one, moves only a. -1: no such axis.
struct ProductForm {
  int a = 0;
  int b = 1;
  int n = -1;
  int m = -1;
  int k = -1;
};

/// False if the body has no such form. Internal to the evaluator, like EvaluateProduct.
bool FindProductForm(const LoopBody& body, const std::vector<const EvaluatedValue*>& inputs,
                     ProductForm* form);

/// Computes `out->box` of such a sum; axis i runs over ranges[i]. Checks the thread's job for
/// cancellation between rows.
void EvaluateProduct(const LoopBody& body, const ProductForm& form,
                     const std::vector<const EvaluatedValue*>& inputs,
                     const std::vector<IndexRange>& ranges, int threads, EvaluatedValue* out);

}  // namespace fusion
