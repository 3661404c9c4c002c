#include "core/tensor/onnx_dtype.h"

#include <gtest/gtest.h>

#include "core/base/text/text.h"

namespace fusion {
namespace {

TEST(OnnxTypeName, EveryTypeHasOne) {
  EXPECT_EQ(OnnxTypeName(1), "FLOAT (1)");
  EXPECT_EQ(OnnxTypeName(8), "STRING (8)");
  EXPECT_EQ(OnnxTypeName(16), "BFLOAT16 (16)");
  EXPECT_EQ(OnnxTypeName(17), "FLOAT8E4M3FN (17)");
  EXPECT_EQ(OnnxTypeName(20), "FLOAT8E5M2FNUZ (20)");
  EXPECT_EQ(OnnxTypeName(21), "UINT4 (21)");
  EXPECT_EQ(OnnxTypeName(22), "INT4 (22)");
  EXPECT_EQ(OnnxTypeName(23), "FLOAT4E2M1 (23)");
  EXPECT_EQ(OnnxTypeName(24), "FLOAT8E8M0 (24)");
  EXPECT_EQ(OnnxTypeName(26), "INT2 (26)");
  EXPECT_EQ(OnnxTypeName(28), "FLOAT6E3M2 (28)");
  EXPECT_EQ(OnnxTypeName(29), "number 29");
  EXPECT_EQ(OnnxTypeName(-1), "number -1");
  EXPECT_EQ(OnnxTypeName(int64_t{1} << 40), StrCat("number ", int64_t{1} << 40));
}

}  // namespace
}  // namespace fusion
