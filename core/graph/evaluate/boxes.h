#pragma once

#include "core/graph/evaluate/evaluate.h"
#include "core/graph/evaluate/evaluate_loop.h"

namespace fusion {

// Operations on parts of values. Internal to the evaluator.

/// True if the box holds no element.
bool IsEmptyBox(const Box& box);

/// The smallest box that contains both.
Box Around(const Box& a, const Box& b);

/// The elements of `tensor` in `box`.
EvaluatedValue LoadBox(const HostTensor& tensor, const Box& box);

/// The elements of `value` in `box`, rounded to `dtype`. value.box must contain `box`.
HostTensor StoreBox(const EvaluatedValue& value, const Box& box, DType dtype);

/// Rounds every float element to `dtype`.
void RoundAll(DType dtype, EvaluatedValue* value);

/// Concatenates two parts of one tensor along `dim`. `whole` is the box of the result.
EvaluatedValue Appended(const EvaluatedValue& first, const EvaluatedValue& second, size_t dim,
                        const Box& whole);

/// The elements of `value` in `box`, which value.box must contain.
EvaluatedValue CutBox(const EvaluatedValue& value, const Box& box);

/// A zero-filled value that covers a whole tensor of this type.
EvaluatedValue WholeValue(const TensorType& type);

}  // namespace fusion
