#include "core/tensor/host_tensor.h"

#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <new>
#include <string>

#include "core/base/threads/job.h"

namespace fusion {
namespace {

template <typename T>
T Load(const std::byte* base, int64_t i) {
  T value;
  std::memcpy(&value, base + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return value;
}
template <typename T>
void Store(std::byte* base, int64_t i, T value) {
  std::memcpy(base + i * static_cast<int64_t>(sizeof(T)), &value, sizeof(T));
}

// Tensors of at least so many bytes are compared with what the system has left: it promises more
// than it has, and ends the process that uses it.
constexpr int64_t kLookFrom = int64_t{256} << 20;

// Of the control group of this process, as containers see it; "max" or no such file: none.
int64_t ContainerLimit() {
  int64_t limit = std::numeric_limits<int64_t>::max();
  for (const char* path :
       {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    int64_t bytes = 0;
    if (std::ifstream(path) >> bytes && bytes > 0) limit = std::min(limit, bytes);
  }
  return limit;
}

// What can be used without swapping; all there is if the system does not say.
int64_t AvailableBytes() {
  std::ifstream facts("/proc/meminfo");
  std::string name;
  int64_t kibibytes = 0;
  for (std::string rest; facts >> name >> kibibytes; std::getline(facts, rest)) {
    if (name == "MemAvailable:") return kibibytes * 1024;
  }
  return MachineMemoryBytes();
}

}  // namespace

int64_t MachineMemoryBytes() {
  static const int64_t kBytes =
      std::min(int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE), ContainerLimit());
  return kBytes;
}

bool FitsInMemory(int64_t bytes) {
  return bytes <= MachineMemoryBytes() && (bytes < kLookFrom || bytes <= AvailableBytes());
}

void HostTensor::Free::operator()(std::byte* p) const {
  if (p != nullptr) Job::Release(static_cast<int64_t>(malloc_usable_size(p)));
  std::free(p);
}

HostTensor::HostTensor(DType dtype, Dims dims) : dtype_(dtype), dims_(std::move(dims)) {
  elements_ = NumElements(dims_);
  if (Allocate()) return;
  if (!Job::HasRoom(byte_size())) Job::Current()->Refuse();
  throw std::bad_alloc();
}

bool HostTensor::Allocate() {
  if (!FitsInMemory(byte_size())) return false;
  auto bytes = static_cast<size_t>(byte_size());
  size_t rounded = (bytes + 127) / 64 * 64;  // one cache line spare
  if (!Job::HasRoom(static_cast<int64_t>(rounded))) return false;
  data_.reset(static_cast<std::byte*>(std::aligned_alloc(64, rounded)));
  if (data_ != nullptr) Job::Charge(static_cast<int64_t>(malloc_usable_size(data_.get())));
  if (data_ != nullptr) std::memset(data_.get(), 0, rounded);
  return data_ != nullptr;
}

absl::StatusOr<HostTensor> HostTensor::Create(DType dtype, Dims dims) {
  HostTensor tensor;
  ASSIGN_OR_RETURN(tensor.elements_, CheckedNumElements(dims, DTypeBytes(dtype)));
  tensor.dtype_ = dtype;
  tensor.dims_ = std::move(dims);
  if (!tensor.Allocate()) {
    const bool bounded = !Job::HasRoom(tensor.byte_size());
    return ResourceExhausted("no memory for a tensor ", DTypeName(dtype),
                             DimsToString(tensor.dims_), " of ", tensor.byte_size(), " bytes",
                             bounded ? ": a request may take less (fusiond --planning-bytes)" : "");
  }
  return tensor;
}

HostTensor::HostTensor(const HostTensor& other) : HostTensor(other.dtype_, other.dims_) {
  if (other.byte_size() > 0) {
    std::memcpy(data_.get(), other.data_.get(), static_cast<size_t>(other.byte_size()));
  }
}

HostTensor& HostTensor::operator=(const HostTensor& other) {
  if (this != &other) *this = HostTensor(other);
  return *this;
}

absl::StatusOr<HostTensor> HostTensor::FromBytes(DType dtype, Dims dims, std::string_view bytes) {
  ASSIGN_OR_RETURN(int64_t elements, CheckedNumElements(dims, DTypeBytes(dtype)));
  int64_t expected = elements * DTypeBytes(dtype);
  if (static_cast<int64_t>(bytes.size()) != expected) {
    return InvalidArgument("tensor ", DTypeName(dtype), DimsToString(dims), ": ", bytes.size(),
                           " bytes of data, expected ", expected);
  }
  ASSIGN_OR_RETURN(HostTensor tensor, Create(dtype, std::move(dims)));
  if (!bytes.empty()) std::memcpy(tensor.bytes(), bytes.data(), bytes.size());
  tensor.NormaliseBytes();
  return tensor;
}

int64_t HostTensor::PackedBytes(DType dtype, int64_t elements) {
  const int64_t bits = DTypeBits(dtype);
  // Not elements * bits, which may be beyond 64 bits.
  return elements / 8 * bits + (elements % 8 * bits + 7) / 8;
}

absl::StatusOr<HostTensor> HostTensor::FromPacked(DType dtype, Dims dims, std::string_view bytes) {
  const int bits = DTypeBits(dtype);
  if (bits >= 8) return FromBytes(dtype, std::move(dims), bytes);
  ASSIGN_OR_RETURN(int64_t elements, CheckedNumElements(dims, DTypeBytes(dtype)));
  const int64_t expected = PackedBytes(dtype, elements);
  if (static_cast<int64_t>(bytes.size()) != expected) {
    return InvalidArgument("tensor ", DTypeName(dtype), DimsToString(dims), ": ", bytes.size(),
                           " bytes of packed data, expected ", expected);
  }
  ASSIGN_OR_RETURN(HostTensor tensor, Create(dtype, std::move(dims)));
  auto at = [&](size_t k) {
    return k < bytes.size() ? static_cast<unsigned>(static_cast<unsigned char>(bytes[k])) : 0U;
  };
  std::span<uint8_t> out = tensor.data<uint8_t>();
  for (size_t i = 0; i < out.size(); ++i) {
    const size_t first = i * static_cast<size_t>(bits);
    out[i] = static_cast<uint8_t>((at(first / 8) | at(first / 8 + 1) << 8) >> first % 8);
  }
  tensor.NormaliseBytes();
  return tensor;
}

std::string HostTensor::Packed() const {
  const int bits = DTypeBits(dtype_);
  if (bits >= 8) return std::string(byte_view());
  std::string out(static_cast<size_t>(PackedBytes(dtype_, elements_)), '\0');
  std::span<const uint8_t> in = data<uint8_t>();
  for (size_t i = 0; i < in.size(); ++i) {
    const size_t first = i * static_cast<size_t>(bits);
    const unsigned code = (in[i] & ((1U << bits) - 1)) << first % 8;
    auto add = [&](size_t k, unsigned more) {
      if (k < out.size()) out[k] = static_cast<char>(static_cast<unsigned char>(out[k]) | more);
    };
    add(first / 8, code & 255);
    add(first / 8 + 1, code >> 8);
  }
  return out;
}

double HostTensor::GetDouble(int64_t i) const {
  switch (dtype_) {
    case DType::kF32:
      return static_cast<double>(Load<float>(data_.get(), i));
    case DType::kF64:
      return Load<double>(data_.get(), i);
    case DType::kF16:
      return HalfToDouble(Load<uint16_t>(data_.get(), i));
    case DType::kBF16:
      return BFloat16ToDouble(Load<uint16_t>(data_.get(), i));
    case DType::kU64:
      return static_cast<double>(Load<uint64_t>(data_.get(), i));
    default:
      return IsNarrowFloat(dtype_) ? DoubleFromBits(dtype_, Load<uint8_t>(data_.get(), i))
                                   : static_cast<double>(GetInt(i));
  }
}

int64_t HostTensor::GetInt(int64_t i) const {
  switch (dtype_) {
    case DType::kBool:
      return Load<uint8_t>(data_.get(), i) != 0 ? 1 : 0;
    case DType::kU8:
      return Load<uint8_t>(data_.get(), i);
    case DType::kI8:
      return Load<int8_t>(data_.get(), i);
    case DType::kI16:
      return Load<int16_t>(data_.get(), i);
    case DType::kI32:
      return Load<int32_t>(data_.get(), i);
    case DType::kU16:
      return Load<uint16_t>(data_.get(), i);
    case DType::kU32:
      return Load<uint32_t>(data_.get(), i);
    case DType::kI64:
    case DType::kU64:
      return Load<int64_t>(data_.get(), i);
    case DType::kI4:
    case DType::kU4:
    case DType::kI2:
    case DType::kU2:
      return SignExtended(dtype_, Load<uint8_t>(data_.get(), i));
    default:
      return static_cast<int64_t>(RoundTo(DType::kI64, GetDouble(i)));
  }
}

void HostTensor::SetDouble(int64_t i, double value) {
  switch (dtype_) {
    case DType::kF32:
      return Store(data_.get(), i, static_cast<float>(value));
    case DType::kF64:
      return Store(data_.get(), i, value);
    case DType::kF16:
      return Store(data_.get(), i, HalfFromDouble(value));
    case DType::kBF16:
      return Store(data_.get(), i, BFloat16FromDouble(value));
    default:
      if (!IsNarrowFloat(dtype_)) return SetInt(i, IntegerFrom(dtype_, value));
      Store(data_.get(), i, static_cast<uint8_t>(BitsFromDouble(dtype_, value)));
  }
}

void HostTensor::SetInt(int64_t i, int64_t value) {
  switch (dtype_) {
    case DType::kBool:
      return Store(data_.get(), i, static_cast<uint8_t>(value != 0));
    case DType::kU8:
      return Store(data_.get(), i, static_cast<uint8_t>(value));
    case DType::kI8:
      return Store(data_.get(), i, static_cast<int8_t>(value));
    case DType::kI16:
      return Store(data_.get(), i, static_cast<int16_t>(value));
    case DType::kI32:
      return Store(data_.get(), i, static_cast<int32_t>(value));
    case DType::kU16:
      return Store(data_.get(), i, static_cast<uint16_t>(value));
    case DType::kU32:
      return Store(data_.get(), i, static_cast<uint32_t>(value));
    case DType::kI64:
    case DType::kU64:
      return Store(data_.get(), i, value);
    case DType::kI4:
    case DType::kU4:
    case DType::kI2:
    case DType::kU2:
      return Store(data_.get(), i, static_cast<uint8_t>(SignExtended(dtype_, value)));
    default:
      SetDouble(i, static_cast<double>(value));
  }
}

void HostTensor::NormaliseBytes() {
  if (dtype_ == DType::kBool) {
    for (auto& b : data<uint8_t>()) b = b != 0 ? 1 : 0;
  } else if (IsNarrowInteger(dtype_)) {
    for (auto& b : data<uint8_t>()) b = static_cast<uint8_t>(SignExtended(dtype_, b));
  } else if (DTypeBits(dtype_) < 8) {
    const unsigned counts = (1U << DTypeBits(dtype_)) - 1;
    for (auto& b : data<uint8_t>()) b = static_cast<uint8_t>(b & counts);
  }
}

HostTensor HostTensor::Reshaped(Dims dims) const {
  FUSION_CHECK(NumElements(dims) == elements_, "a reshape keeps the number of elements");
  HostTensor out = *this;
  out.dims_ = std::move(dims);
  return out;
}

bool HostTensor::operator==(const HostTensor& other) const {
  return dtype_ == other.dtype_ && dims_ == other.dims_ && byte_view() == other.byte_view();
}

}  // namespace fusion
