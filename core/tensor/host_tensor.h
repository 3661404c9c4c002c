#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "core/base/status.h"
#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"

namespace fusion {

/// Memory of this machine in bytes, or of this container if that is less. Larger tensors are never
/// allocated, even if the system would overcommit.
int64_t MachineMemoryBytes();
/// True if `bytes` is at most MachineMemoryBytes() and, from 256 MiB on, at most the memory that is
/// available now.
bool FitsInMemory(int64_t bytes);

/// A dense row-major tensor in host memory. It owns its bytes (64-byte aligned, little endian).
///
///   ASSIGN_OR_RETURN(HostTensor t, HostTensor::FromBytes(DType::kF32, {2, 3}, raw));
///   t.data<float>()[5] = 1.0f;
///
/// Copying copies the bytes. The bytes count against the memory limit of the thread's job
/// (core/base/threads/job.h). Concurrent reads are safe, a write needs exclusive access.
class HostTensor {
 public:
  HostTensor() = default;  // f32[0], without elements
  /// Zero-filled. For sizes that this code chose itself: throws std::bad_alloc if there is no
  /// memory, as containers do. For sizes from outside use Create.
  HostTensor(DType dtype, Dims dims);
  HostTensor(const HostTensor& other);
  HostTensor& operator=(const HostTensor& other);
  HostTensor(HostTensor&&) noexcept = default;
  HostTensor& operator=(HostTensor&&) noexcept = default;

  /// Zero-filled, for sizes from outside. InvalidArgument if an extent is negative or the tensor
  /// exceeds kMaxTensorBytes; ResourceExhausted if there is no memory for it.
  static absl::StatusOr<HostTensor> Create(DType dtype, Dims dims);
  /// A copy of `bytes` after NormaliseBytes. InvalidArgument if their number does not match the
  /// shape; else fails as Create does.
  static absl::StatusOr<HostTensor> FromBytes(DType dtype, Dims dims, std::string_view bytes);
  /// One value for each element (else it aborts), converted to `dtype` as SetDouble (floats) or
  /// SetInt does.
  template <typename T>
  static HostTensor FromValues(DType dtype, Dims dims, std::initializer_list<T> values);

  DType dtype() const { return dtype_; }
  const Dims& dims() const { return dims_; }
  int64_t elements() const { return elements_; }
  int64_t byte_size() const { return elements_ * DTypeBytes(dtype_); }

  std::byte* bytes() { return data_.get(); }
  const std::byte* bytes() const { return data_.get(); }
  std::string_view byte_view() const {
    return {reinterpret_cast<const char*>(data_.get()), static_cast<size_t>(byte_size())};
  }

  /// The elements as T. sizeof(T) must be the element size.
  template <typename T>
  std::span<T> data() {
    FUSION_CHECK(static_cast<int64_t>(sizeof(T)) == DTypeBytes(dtype_),
                 "element type of another size");
    return {reinterpret_cast<T*>(data_.get()), static_cast<size_t>(elements_)};
  }
  template <typename T>
  std::span<const T> data() const {
    FUSION_CHECK(static_cast<int64_t>(sizeof(T)) == DTypeBytes(dtype_),
                 "element type of another size");
    return {reinterpret_cast<const T*>(data_.get()), static_cast<size_t>(elements_)};
  }

  /// Element `i` converted to a double or an integer, whatever the dtype. The setters round as
  /// RoundTo does; SetInt of an integer type keeps the low bits. u64 elements are passed as their
  /// bits in GetInt and SetInt.
  double GetDouble(int64_t i) const;
  int64_t GetInt(int64_t i) const;
  void SetDouble(int64_t i, double value);
  void SetInt(int64_t i, int64_t value);

  /// Makes bytes that were written directly canonical: bools become 0 or 1; in elements of less
  /// than 8 bits the unused high bits become the sign (integers) or 0. Other types stay as they
  /// are.
  void NormaliseBytes();
  /// Bytes of `elements` elements in ONNX's packed form. Types of less than 8 bits are packed
  /// without gaps, low bits first. Other types are stored as in memory.
  static int64_t PackedBytes(DType dtype, int64_t elements);
  /// A tensor from that form. InvalidArgument if the number of bytes does not match the shape; else
  /// fails as Create does.
  static absl::StatusOr<HostTensor> FromPacked(DType dtype, Dims dims, std::string_view bytes);
  /// This tensor in that form.
  std::string Packed() const;

  /// A copy with other dims; aborts if `dims` has another number of elements.
  HostTensor Reshaped(Dims dims) const;

  /// Same type, dims and bytes: equal NaN bits are equal, -0 and 0 are not.
  bool operator==(const HostTensor& other) const;

 private:
  struct Free {
    void operator()(std::byte* p) const;
  };
  // False if there is no memory.
  bool Allocate();

  DType dtype_ = DType::kF32;
  Dims dims_ = {0};
  int64_t elements_ = 0;
  std::unique_ptr<std::byte, Free> data_;
};

template <typename T>
HostTensor HostTensor::FromValues(DType dtype, Dims dims, std::initializer_list<T> values) {
  HostTensor tensor(dtype, std::move(dims));
  FUSION_CHECK(static_cast<int64_t>(values.size()) == tensor.elements(),
               "as many values as elements");
  int64_t i = 0;
  for (T value : values) {
    if (IsFloat(dtype)) {
      tensor.SetDouble(i++, static_cast<double>(value));
    } else {
      tensor.SetInt(i++, static_cast<int64_t>(value));
    }
  }
  return tensor;
}

}  // namespace fusion
