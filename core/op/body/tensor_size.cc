#include "core/op/body/tensor_size.h"

#include <algorithm>

namespace fusion {
namespace {

__extension__ typedef __int128 Wide;

}  // namespace

absl::Status CheckTensorSize(const TensorType& type) {
  if (type.shape.rank() > kMaxTensorRank) {
    return InvalidArgument("rank ", type.shape.rank(), ", expected at most ", kMaxTensorRank);
  }
  if (type.shape.is_static()) {
    return CheckedNumElements(type.shape.ToDims(), DTypeBytes(type.dtype)).status();
  }
  // Magnitude of a dim: its numbers with every symbol taken as 1. A product below the limit keeps
  // every coefficient that merging dims can give below it.
  Wide bytes = DTypeBytes(type.dtype);
  for (const Dim& dim : type.shape.dims()) {
    auto magnitude = [](int64_t v) { return v < 0 ? -static_cast<Wide>(v) : Wide{v}; };
    Wide extent = magnitude(dim.constant());
    for (const Dim::Term& t : dim.terms()) extent += magnitude(t.coefficient);
    if (extent > 1) bytes *= std::min(extent, Wide{kMaxTensorBytes} + 1);
    if (bytes > kMaxTensorBytes) {
      return InvalidArgument("shape ", type.shape.ToString(), ": more than ", kMaxTensorBytes,
                             " bytes");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckStepSize(std::string_view step, const TensorType& type) {
  absl::Status size = CheckTensorSize(type);
  if (size.ok()) return size;
  return Annotate(size, StrCat("its step ", step, " gives a tensor that is too large"));
}

}  // namespace fusion
