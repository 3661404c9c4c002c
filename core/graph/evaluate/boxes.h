#pragma once

#include "core/graph/evaluate/evaluate.h"
#include "core/graph/evaluate/evaluate_loop.h"

namespace fusion {

// Parts of values, as the evaluator holds them. Internal to it.

/// Whether it holds no element.
bool IsEmptyBox(const Box& box);

/// The smallest box around both.
Box Around(const Box& a, const Box& b);

/// The elements of `tensor` in `box`.
EvaluatedValue LoadBox(const HostTensor& tensor, const Box& box);

/// The elements of `value` in `box`, as a tensor of `dtype`.
HostTensor StoreBox(const EvaluatedValue& value, const Box& box, DType dtype);

/// Rounds every element to what `dtype` holds.
void RoundAll(DType dtype, EvaluatedValue* value);

/// Parts of one tensor, the second behind the first along `dim`.
EvaluatedValue Appended(const EvaluatedValue& first, const EvaluatedValue& second, size_t dim,
                        const Box& whole);

/// The part of a value that `box` holds of it; the box lies within its own.
EvaluatedValue CutBox(const EvaluatedValue& value, const Box& box);

/// A value of all elements of the type, zeros.
EvaluatedValue WholeValue(const TensorType& type);

}  // namespace fusion
