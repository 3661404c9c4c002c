#include "core/tensor/onnx_dtype.h"

#include <array>

#include "core/base/text/text.h"

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
    22,  // i4
    21,  // u4
    26,  // i2
    25,  // u2
    17,  // f8e4m3fn
    18,  // f8e4m3fnuz
    19,  // f8e5m2
    20,  // f8e5m2fnuz
    24,  // f8e8m0
    27,  // f6e2m3
    28,  // f6e3m2
    23,  // f4e2m1
};

// TensorProto.DataType by number, as of ONNX 1.20.
constexpr std::array<std::string_view, 29> kOnnxNames = {
    "UNDEFINED",      "FLOAT",      "UINT8",          "INT8",       "UINT16",    "INT16",
    "INT32",          "INT64",      "STRING",         "BOOL",       "FLOAT16",   "DOUBLE",
    "UINT32",         "UINT64",     "COMPLEX64",      "COMPLEX128", "BFLOAT16",  "FLOAT8E4M3FN",
    "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ", "UINT4",      "INT4",      "FLOAT4E2M1",
    "FLOAT8E8M0",     "UINT2",      "INT2",           "FLOAT6E2M3", "FLOAT6E3M2"};

}  // namespace

std::string OnnxTypeName(int64_t code) {
  if (code < 0 || code >= static_cast<int64_t>(kOnnxNames.size())) return StrCat("number ", code);
  return StrCat(kOnnxNames[static_cast<size_t>(code)], " (", code, ")");
}

std::optional<DType> DTypeFromOnnx(int64_t code) {
  for (size_t i = 0; i < kOnnxCodes.size(); ++i) {
    if (kOnnxCodes[i] == code) return static_cast<DType>(i);
  }
  return std::nullopt;
}

int32_t DTypeToOnnx(DType type) { return kOnnxCodes[static_cast<size_t>(type)]; }

}  // namespace fusion
