#include <algorithm>
#include <optional>

#include "core/op/forms.h"

namespace fusion {

namespace {

// dim / divisor if that is a dim.
std::optional<Dim> Divide(const Dim& dim, int64_t divisor) {
  if (divisor <= 0 || dim.constant() % divisor != 0) return std::nullopt;
  Dim out(dim.constant() / divisor);
  for (const Dim::Term& t : dim.terms()) {
    if (t.coefficient % divisor != 0) return std::nullopt;
    out = out + Dim::Symbol(t.symbol, t.coefficient / divisor);
  }
  return out;
}

// The target shape with 0 (copy this dim) and -1 (whatever is left) resolved.
absl::StatusOr<Shape> ResolveShape(const OpCall& call) {
  const Shape& from = call.shape(0);
  const auto& wanted = *call.attrs().Find<std::vector<int64_t>>("shape");
  bool allow_zero = call.attrs().Int("allowzero", 0) != 0;
  std::vector<Dim> dims;
  int open = -1;
  for (size_t i = 0; i < wanted.size(); ++i) {
    int d = static_cast<int>(i);
    if (wanted[i] == -1) {
      if (open >= 0) return InvalidArgument("shape [", StrJoin(wanted, ","), "] has two -1");
      open = d;
      dims.emplace_back(1);
    } else if (wanted[i] == 0 && !allow_zero) {
      if (d >= from.rank()) {
        return InvalidArgument("shape [", StrJoin(wanted, ","), "] copies dim ", d,
                               " of an input of rank ", from.rank());
      }
      dims.push_back(from.dim(d));
    } else if (wanted[i] < 0) {
      return InvalidArgument("shape [", StrJoin(wanted, ","), "] has the extent ", wanted[i]);
    } else {
      dims.emplace_back(wanted[i]);
    }
  }
  if (!from.is_static()) {
    // Equal dims cancel on both sides; what is left must be static.
    std::vector<Dim> left = from.dims();
    int64_t product = 1;
    for (size_t i = 0; i < dims.size(); ++i) {
      if (static_cast<int>(i) == open) continue;
      auto same = std::find(left.begin(), left.end(), dims[i]);
      if (same != left.end()) {
        left.erase(same);
      } else if (dims[i].is_static()) {
        if (__builtin_mul_overflow(product, dims[i].value(), &product)) {
          return InvalidArgument("shape [", StrJoin(wanted, ","), "] has more than 2^63 elements");
        }
      } else {
        return Unimplemented("reshape of ", from.ToString(), " to symbolic extents");
      }
    }
    Dim rest(1);
    for (const Dim& dim : left) {
      if (rest == Dim(1)) {
        rest = dim;
      } else if (dim.is_static()) {
        rest = rest * dim.value();
      } else if (rest.is_static()) {
        rest = dim * rest.value();
      } else {
        return Unimplemented("reshape multiplies the symbolic dims of ", from.ToString());
      }
    }
    auto quotient = Divide(rest, product);
    if (open >= 0 && quotient) {
      dims[static_cast<size_t>(open)] = *quotient;
    } else if (open >= 0 || rest != Dim(product)) {
      return Unimplemented("reshape of the symbolic shape ", from.ToString());
    }
    return Shape(std::move(dims));
  }
  for (const Dim& dim : dims) {
    if (!dim.is_static()) return Internal("a static input gave a symbolic reshape");
  }
  ASSIGN_OR_RETURN(int64_t product, CheckedNumElements(Shape(dims).ToDims(), 1));
  int64_t elements = NumElements(from.ToDims());
  if (open >= 0 && product > 0 && elements % product == 0) {
    dims[static_cast<size_t>(open)] = elements / product;
    product = elements;
  }
  if (product != elements) {
    return InvalidArgument("cannot reshape ", from.ToString(), " (", elements, " elements) to [",
                           StrJoin(wanted, ","), "]");
  }
  return Shape(std::move(dims));
}

}  // namespace

/// y = x in row-major order under another shape; 0 copies a dim, -1 takes what is left
OpDef DefineReshape() {
  return {.name = "Reshape",
          .params = {{.name = "shape",
                      .kind = ParamSpec::kInts,
                      .onnx_input = 1,
                      .required = true,
                      .any_integer = true},
                     {.name = "allowzero", .kind = ParamSpec::kInt}},
          .body = [](const OpCall& call, int) -> absl::StatusOr<LoopBody> {
            ASSIGN_OR_RETURN(Shape shape, ResolveShape(call));
            return ReshapeBody(call, shape);
          },
          .reinterpret = [](const OpCall& call) -> absl::StatusOr<TensorType> {
            ASSIGN_OR_RETURN(Shape shape, ResolveShape(call));
            return TensorType{call.dtype(0), shape};
          }};
}

}  // namespace fusion
