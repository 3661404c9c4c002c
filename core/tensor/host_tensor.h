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

/// Memory of this machine, or of this container where that has less, in bytes. What is larger is
/// never allocated, whatever the system would promise.
int64_t MachineMemoryBytes();
/// Whether this machine has so many bytes and, where they are many, the system has them left now.
bool FitsInMemory(int64_t bytes);

/// A dense row-major tensor in host memory: dtype, extents and its own bytes (64-byte aligned,
/// little endian).
///
///   ASSIGN_OR_RETURN(HostTensor t, HostTensor::FromBytes(DType::kF32, {2, 3}, raw));
///   t.data<float>()[5] = 1.0f;
///
/// Copying copies the bytes. Not thread-safe while written.
class HostTensor {
 public:
  HostTensor() = default;
  /// Zero-filled. For sizes of our own choosing: throws std::bad_alloc if there is no memory, as
  /// containers do; see Create.
  HostTensor(DType dtype, Dims dims);
  HostTensor(const HostTensor& other);
  HostTensor& operator=(const HostTensor& other);
  HostTensor(HostTensor&&) noexcept = default;
  HostTensor& operator=(HostTensor&&) noexcept = default;

  /// The same for sizes from outside: InvalidArgument if an extent is negative or the tensor larger
  /// than kMaxTensorBytes, ResourceExhausted if there is no memory for it.
  static absl::StatusOr<HostTensor> Create(DType dtype, Dims dims);
  /// A copy of `bytes`, as NormaliseBytes leaves them. InvalidArgument if
  /// they are not exactly as many as the shape asks for, else as Create.
  static absl::StatusOr<HostTensor> FromBytes(DType dtype, Dims dims, std::string_view bytes);
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

  /// The elements as T; sizeof(T) must be the element size.
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

  /// Element `i` as a double / an integer, whatever the dtype; the setters round like RoundTo.
  double GetDouble(int64_t i) const;
  int64_t GetInt(int64_t i) const;
  void SetDouble(int64_t i, double value);
  void SetInt(int64_t i, int64_t value);

  /// Makes bools whose bytes were written directly 0 or 1, and the bits of narrow types that do not
  /// count those of the value; nothing for other types.
  void NormaliseBytes();
  /// ONNX's form of types whose elements are smaller than a byte: their bits one behind the other,
  /// the low ones first. Bytes of so many elements; and a tensor of such bytes, InvalidArgument if
  /// there are not as many. Other types: as they are in memory.
  static int64_t PackedBytes(DType dtype, int64_t elements);
  static absl::StatusOr<HostTensor> FromPacked(DType dtype, Dims dims, std::string_view bytes);
  std::string Packed() const;

  /// The same bytes under another shape with as many elements.
  HostTensor Reshaped(Dims dims) const;

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
