#include "core/graph/evaluate/boxes.h"

#include <algorithm>
#include <map>
#include <optional>

#include "core/graph/evaluate/evaluate.h"
#include "core/graph/evaluate/evaluate_loop.h"

namespace fusion {
namespace {

// Calls visit(source offset, target offset, run length) for the rows of `box` inside a row-major
// tensor of `extents`, and of a row-major tensor of the box's own extents.
template <typename Visit>
void ForRows(const Box& box, const Dims& extents, Visit visit) {
  Dims shape = box.Extents();
  int64_t elements = NumElements(shape);
  if (elements == 0) return;
  Dims strides = RowMajorStrides(extents);
  int64_t row = shape.empty() ? 1 : shape.back();
  Dims at = box.begin;
  for (int64_t done = 0; done < elements; done += row) {
    int64_t offset = 0;
    for (size_t d = 0; d < at.size(); ++d) offset += at[d] * strides[d];
    visit(offset, done, row);
    for (size_t d = at.size(); d-- > 0;) {
      if (d + 1 == at.size()) continue;
      if (++at[d] < box.end[d]) break;
      at[d] = box.begin[d];
    }
  }
}

}  // namespace

bool IsEmptyBox(const Box& box) {
  for (size_t d = 0; d < box.begin.size(); ++d) {
    if (box.begin[d] >= box.end[d]) return true;
  }
  return false;
}

Box Around(const Box& a, const Box& b) {
  if (IsEmptyBox(a)) return b;
  if (IsEmptyBox(b)) return a;
  Box out = a;
  for (size_t d = 0; d < a.begin.size(); ++d) {
    out.begin[d] = std::min(a.begin[d], b.begin[d]);
    out.end[d] = std::max(a.end[d], b.end[d]);
  }
  return out;
}

EvaluatedValue LoadBox(const HostTensor& tensor, const Box& box) {
  EvaluatedValue out;
  out.dtype = tensor.dtype();
  out.box = box;
  auto elements = static_cast<size_t>(NumElements(box.Extents()));
  bool real = IsFloat(tensor.dtype());
  if (real) {
    out.reals.resize(elements);
  } else {
    out.integers.resize(elements);
  }
  const bool f32 = tensor.dtype() == DType::kF32;
  ForRows(box, tensor.dims(), [&](int64_t from, int64_t to, int64_t n) {
    if (f32) {
      const float* src = tensor.data<float>().data() + from;
      double* dst = out.reals.data() + to;
      for (int64_t i = 0; i < n; ++i) dst[i] = static_cast<double>(src[i]);
      return;
    }
    for (int64_t i = 0; i < n; ++i) {
      if (real) {
        out.reals[static_cast<size_t>(to + i)] = tensor.GetDouble(from + i);
      } else {
        out.integers[static_cast<size_t>(to + i)] = tensor.GetInt(from + i);
      }
    }
  });
  return out;
}

HostTensor StoreBox(const EvaluatedValue& value, const Box& box, DType dtype) {
  HostTensor out(dtype, box.Extents());
  Box local = box;
  for (size_t d = 0; d < box.begin.size(); ++d) {
    local.begin[d] -= value.box.begin[d];
    local.end[d] -= value.box.begin[d];
  }
  ForRows(local, value.box.Extents(), [&](int64_t from, int64_t to, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      if (IsFloat(dtype)) {
        out.SetDouble(to + i, value.reals[static_cast<size_t>(from + i)]);
      } else {
        out.SetInt(to + i, value.integers[static_cast<size_t>(from + i)]);
      }
    }
  });
  return out;
}

void RoundAll(DType dtype, EvaluatedValue* value) {
  if (dtype == DType::kF64) return;
  for (double& v : value->reals) v = RoundTo(dtype, v);
}

EvaluatedValue Appended(const EvaluatedValue& first, const EvaluatedValue& second, size_t dim,
                        const Box& whole) {
  EvaluatedValue out{.dtype = first.dtype, .box = whole};
  out.reals.resize(first.reals.size() + second.reals.size());
  out.integers.resize(first.integers.size() + second.integers.size());
  const int64_t border = first.box.Extents()[dim];
  auto put = [&](const EvaluatedValue& part, Box at) {
    ForRows(at, whole.Extents(), [&](int64_t to, int64_t from, int64_t n) {
      if (IsFloat(out.dtype)) {
        std::copy_n(part.reals.data() + from, n, out.reals.data() + to);
      } else {
        std::copy_n(part.integers.data() + from, n, out.integers.data() + to);
      }
    });
  };
  Box at = whole;
  at.end[dim] = border;
  put(first, at);
  at.begin[dim] = border;
  at.end[dim] = whole.end[dim];
  put(second, at);
  return out;
}

EvaluatedValue CutBox(const EvaluatedValue& value, const Box& box) {
  EvaluatedValue out{.dtype = value.dtype, .box = box};
  const auto elements = static_cast<size_t>(NumElements(box.Extents()));
  const bool real = IsFloat(value.dtype);
  (real ? out.reals.resize(elements) : out.integers.resize(elements));
  Box local = box;
  for (size_t d = 0; d < box.begin.size(); ++d) {
    local.begin[d] -= value.box.begin[d];
    local.end[d] -= value.box.begin[d];
  }
  ForRows(local, value.box.Extents(), [&](int64_t from, int64_t to, int64_t n) {
    if (real) {
      std::copy_n(value.reals.data() + from, n, out.reals.data() + to);
    } else {
      std::copy_n(value.integers.data() + from, n, out.integers.data() + to);
    }
  });
  return out;
}

EvaluatedValue WholeValue(const TensorType& type) {
  EvaluatedValue out{.dtype = type.dtype, .box = Box::Whole(type.shape.ToDims())};
  const auto elements = static_cast<size_t>(NumElements(type.shape.ToDims()));
  (IsFloat(type.dtype) ? out.reals.resize(elements) : out.integers.resize(elements));
  return out;
}

Dims Box::Extents() const {
  Dims out;
  for (size_t d = 0; d < begin.size(); ++d) out.push_back(std::max<int64_t>(end[d] - begin[d], 0));
  return out;
}

}  // namespace fusion
