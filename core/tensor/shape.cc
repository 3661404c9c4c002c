#include "core/tensor/shape.h"

#include <algorithm>

namespace fusion {

bool Shape::is_static() const {
  return std::all_of(dims_.begin(), dims_.end(), [](const Dim& d) { return d.is_static(); });
}

Dims Shape::ToDims() const {
  Dims out;
  out.reserve(dims_.size());
  for (const Dim& dim : dims_) out.push_back(dim.value());
  return out;
}

std::string Shape::ToString() const {
  return StrCat("[", StrJoin(dims_, ",", [](const Dim& d) { return d.ToString(); }), "]");
}

absl::StatusOr<Shape> Shape::Parse(std::string_view text) {
  text = StripSpace(text);
  if (text.size() < 2 || text.front() != '[' || text.back() != ']') {
    return InvalidArgument("shape ", Quote(text), ": expected [d0,d1,...]");
  }
  std::string_view inner = StripSpace(text.substr(1, text.size() - 2));
  std::vector<Dim> dims;
  if (!inner.empty()) {
    for (std::string_view piece : StrSplit(inner, ',')) {
      ASSIGN_OR_RETURN(Dim dim, Dim::Parse(piece));
      dims.push_back(dim);
    }
  }
  return Shape(std::move(dims));
}

int64_t NumElements(const Dims& dims) {
  int64_t product = 1;
  for (int64_t d : dims) product *= d;
  return product;
}

absl::StatusOr<int64_t> CheckedNumElements(const Dims& dims, int64_t element_bytes) {
  bool empty = false;
  for (int64_t d : dims) {
    if (d < 0) return InvalidArgument("shape ", DimsToString(dims), ": dim ", d, " is negative");
    empty |= d == 0;
  }
  int64_t bytes = element_bytes;
  for (int64_t d : dims) {
    // A zero elsewhere must not hide an absurd extent: the overflow check looks at the other dims
    // all the same.
    int64_t extent = std::max<int64_t>(d, 1);
    int64_t product = 0;
    if (__builtin_mul_overflow(bytes, extent, &product)) {
      return InvalidArgument("shape ", DimsToString(dims),
                             ": more than 2^63 bytes, expected at most ", kMaxTensorBytes);
    }
    bytes = product;
  }
  if (bytes > kMaxTensorBytes) {
    return InvalidArgument("shape ", DimsToString(dims), ": ", bytes, " bytes, expected at most ",
                           kMaxTensorBytes);
  }
  return empty ? 0 : bytes / element_bytes;
}

Dims RowMajorStrides(const Dims& dims) {
  Dims strides(dims.size(), 1);
  for (size_t i = dims.size(); i-- > 1;)
    strides[i - 1] = strides[i] * std::max<int64_t>(dims[i], 1);
  return strides;
}

int64_t SpanOf(const Dims& dims, const Dims& strides) {
  int64_t last = 0;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] == 0) return 0;
    last += (dims[d] - 1) * strides[d];
  }
  return last + 1;
}

std::string DimsToString(const Dims& dims) { return StrCat("[", StrJoin(dims, ","), "]"); }

}  // namespace fusion
