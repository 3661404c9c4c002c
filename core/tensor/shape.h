#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "core/tensor/dim.h"

namespace fusion {

/// Concrete extents, outermost first.
using Dims = std::vector<int64_t>;

/// Limits for everything that comes from outside. No real model comes near them. They bound the
/// work that a hostile request can cause, and keep sums and products of a few sizes within 64 bits.
inline constexpr int kMaxTensorRank = 64;
/// Bytes of one tensor (16 TiB), and of all tensors of a graph together.
inline constexpr int64_t kMaxTensorBytes = int64_t{1} << 44;
/// Largest extent, coefficient of a symbol or bound value.
inline constexpr int64_t kMaxExtent = int64_t{1} << 40;

/// The shape of a tensor: rank() extents, static or symbolic. Rank 0 is a scalar of one element.
class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<Dim> dims) : dims_(dims) {}
  explicit Shape(std::vector<Dim> dims) : dims_(std::move(dims)) {}
  explicit Shape(const Dims& dims) : dims_(dims.begin(), dims.end()) {}

  int rank() const { return static_cast<int>(dims_.size()); }
  const Dim& dim(int i) const { return dims_[static_cast<size_t>(i)]; }
  const std::vector<Dim>& dims() const { return dims_; }
  bool is_static() const;

  /// The extents. The shape must be static.
  Dims ToDims() const;

  bool operator==(const Shape&) const = default;
  /// "[1,128,s0 + 16]".
  std::string ToString() const;
  /// Inverse of ToString. InvalidArgument for other text.
  static absl::StatusOr<Shape> Parse(std::string_view text);

 private:
  std::vector<Dim> dims_;
};

/// Product of extents; 1 for rank 0. Overflow is not checked: use CheckedNumElements for extents
/// from outside.
int64_t NumElements(const Dims& dims);

/// Product of the extents. InvalidArgument if an extent is negative or if the product times
/// `element_bytes` exceeds kMaxTensorBytes. An extent of 0 does not hide either error: the limit
/// applies to the other extents.
absl::StatusOr<int64_t> CheckedNumElements(const Dims& dims, int64_t element_bytes);

/// Element strides of a dense row-major tensor.
Dims RowMajorStrides(const Dims& dims);

/// Distance in elements from the first element to behind the last one, for non-negative strides; 0
/// if the tensor has no elements.
int64_t SpanOf(const Dims& dims, const Dims& strides);

/// "[1,128,768]".
std::string DimsToString(const Dims& dims);

}  // namespace fusion
