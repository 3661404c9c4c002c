#include "core/tensor/onnx_dtype.h"

#include <array>

namespace fusion {
namespace {

// TensorProto.DataType of onnx.proto, in the order of DType.
constexpr std::array<int32_t, kDTypeCount> kOnnxCodes = {
    9,   // bool
    2,   // u8
    3,   // i8
    5,   // i16
    6,   // i32
    7,   // i64
    10,  // f16
    16,  // bf16
    1,   // f32
    11,  // f64
    4,   // u16
    12,  // u32
    13,  // u64
};

}  // namespace

std::optional<DType> DTypeFromOnnx(int64_t code) {
  for (size_t i = 0; i < kOnnxCodes.size(); ++i) {
    if (kOnnxCodes[i] == code) return static_cast<DType>(i);
  }
  return std::nullopt;
}

int32_t DTypeToOnnx(DType type) { return kOnnxCodes[static_cast<size_t>(type)]; }

}  // namespace fusion
