#pragma once

#include <vector>

#include "core/graph/evaluate/evaluate_loop.h"

namespace fusion {

/// A sum of products where one written axis (`n`) moves only b, with stride 1 or at least a small
/// one, and one reduced axis (`k`, the longest) moves both. Another written axis (`m`) may move
/// only a.
struct ProductForm {
  int a = 0;
  int b = 1;
  int n = -1;
  int m = -1;
  int k = -1;
};

/// False: the body is no such sum. Internal to the evaluator, as is EvaluateProduct.
bool FindProductForm(const LoopBody& body, const std::vector<const EvaluatedValue*>& inputs,
                     ProductForm* form);

/// Computes `out->box` of such a sum, whose axes run over `ranges`. Looks at the job of its thread
/// between rows.
void EvaluateProduct(const LoopBody& body, const ProductForm& form,
                     const std::vector<const EvaluatedValue*>& inputs,
                     const std::vector<IndexRange>& ranges, int threads, EvaluatedValue* out);

}  // namespace fusion
