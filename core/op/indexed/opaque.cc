#include "core/op/indexed/opaque.h"

#include <algorithm>

namespace fusion {

absl::StatusOr<DType> WideType(const OpCall& call, int input) {
  switch (call.dtype(input)) {
    case DType::kBool:
      return InvalidArgument("input ", call.NumberOf(input), " is bool, expected a numeric type");
    case DType::kF16:
    case DType::kBF16:
    case DType::kF8E4M3FN:
    case DType::kF8E4M3FNUZ:
    case DType::kF8E5M2:
    case DType::kF8E5M2FNUZ:
    case DType::kF8E8M0:
    case DType::kF6E2M3:
    case DType::kF6E3M2:
    case DType::kF4E2M1:
      return DType::kF32;
    case DType::kI4:
    case DType::kU4:
    case DType::kI2:
    case DType::kU2:
    case DType::kU8:
    case DType::kI8:
    case DType::kI16:
    case DType::kU16:
      return DType::kI32;
    default:
      return call.dtype(input);
  }
}

RowsAlong RowsAlongAxis(const Dims& dims, int axis) {
  RowsAlong rows;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (static_cast<int>(d) < axis) rows.outer *= dims[d];
    if (static_cast<int>(d) > axis) rows.inner *= dims[d];
  }
  rows.extent = dims[static_cast<size_t>(axis)];
  return rows;
}

RunningFold RunningFoldOf(const AttrMap& attrs, const Dims& x) {
  const auto* monoid = attrs.Find<std::string>("monoid");
  return {.rows = RowsAlongAxis(x, static_cast<int>(attrs.Int("axis", 0))),
          .monoid = monoid == nullptr ? "sum" : *monoid,
          .exclusive = attrs.Int("exclusive", 0) != 0,
          .reverse = attrs.Int("reverse", 0) != 0};
}

RowOrder RowOrderOf(const AttrMap& attrs, const Dims& x) {
  return {.rows = RowsAlongAxis(x, static_cast<int>(attrs.Int("axis", 0))),
          .things = attrs.Int("things", 0) != 0,
          .largest = attrs.Int("largest", 1) != 0,
          .count = attrs.Int("count", 0)};
}

BoxChoice BoxChoiceOf(const AttrMap& attrs, const Dims& scores) {
  return {.batch = scores[0],
          .classes = scores[1],
          .boxes = scores[2],
          .count = attrs.Int("count", 0),
          .centred = attrs.Int("centred", 0) != 0,
          .limited = attrs.Int("limited", 0) != 0};
}

Box2d BoxFrom(const float* box, bool centred) {
  Box2d out;
  if (centred) {
    const float half_width = box[2] * 0.5F;
    const float half_height = box[3] * 0.5F;
    out = {.top = box[1] - half_height,
           .left = box[0] - half_width,
           .bottom = box[1] + half_height,
           .right = box[0] + half_width};
  } else {
    out = {.top = std::min(box[0], box[2]),
           .left = std::min(box[1], box[3]),
           .bottom = std::max(box[0], box[2]),
           .right = std::max(box[1], box[3])};
  }
  const float height = out.bottom - out.top;
  const float width = out.right - out.left;
  out.area = height * width;
  return out;
}

bool Overlaps(const Box2d& a, const Box2d& b, float part) {
  const float height = std::max(std::min(a.bottom, b.bottom) - std::max(a.top, b.top), 0.0F);
  const float width = std::max(std::min(a.right, b.right) - std::max(a.left, b.left), 0.0F);
  const float common = height * width;
  if (!(common > 0)) return false;
  const float both = a.area + b.area;
  const float together = both - common;
  const float shared = common / together;
  return shared > part;
}

}  // namespace fusion
