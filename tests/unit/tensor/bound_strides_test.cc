#include "core/tensor/bound_strides.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/text/text.h"
#include "core/tensor/host_tensor.h"
#include "core/tensor/strided_copy.h"

namespace fusion {
namespace {

using testing::HasSubstr;

TEST(BoundStrides, NoTwoElementsShareAPlace) {
  struct Case {
    Dims dims;
    Dims strides;
    std::string error;  // empty: sound
  };
  const std::vector<Case> cases = {
      {{}, {}, ""},
      {{2, 3}, {3, 1}, ""},
      {{2, 3}, {1, 2}, ""},        // dims in another order
      {{2, 3}, {8, 2}, ""},        // padded rows, every other element
      {{2, 1, 3}, {3, 1, 1}, ""},  // one element: its stride says nothing
      {{2, 3}, {2, 1}, "stride 2 of dim 0 of [2,3]; expected at least 3, as far as the dims"},
      {{2, 3}, {4, 2}, "stride 4 of dim 0 of [2,3]; expected at least 5"},
      {{2, 3}, {3}, "1 strides; expected 2, one for each dim"},
      {{2, 3}, {3, 0}, "stride 0 of dim 1; expected 1.."},
      {{2, 3}, {-3, 1}, "stride -3 of dim 0; expected 1.."},
      {{1 << 20, 1 << 20}, {int64_t{1} << 40, 1}, "up to 1099511627776 * 1048575 apart"},
  };
  for (const Case& c : cases) {
    absl::Status status = CheckBoundStrides(c.dims, c.strides, 4);
    if (c.error.empty()) {
      EXPECT_TRUE(status.ok()) << DimsToString(c.strides) << ": " << status;
    } else {
      EXPECT_THAT(std::string(status.message()), HasSubstr(c.error));
    }
  }
}

TEST(StridedCopy, EveryElementGoesToItsPlaceAndNothingElseChanges) {
  const Dims dims = {2, 3, 4};
  const Dims strides = {1, 40, 9};
  HostTensor dense(DType::kI64, dims);
  for (int64_t i = 0; i < dense.elements(); ++i) dense.SetInt(i, 100 + i);
  HostTensor memory(DType::kI64, {SpanOf(dims, strides)});
  for (int64_t i = 0; i < memory.elements(); ++i) memory.SetInt(i, -1);
  CopyStrided(DType::kI64, dims, dense.bytes(), RowMajorStrides(dims), memory.bytes(), strides);
  int64_t written = 0;
  for (int64_t i = 0; i < memory.elements(); ++i) written += memory.GetInt(i) != -1 ? 1 : 0;
  EXPECT_EQ(written, dense.elements());
  EXPECT_EQ(memory.GetInt(1 + 2 * 40 + 3 * 9), 100 + 12 + 2 * 4 + 3);
  HostTensor back(DType::kI64, dims);
  CopyStrided(DType::kI64, dims, memory.bytes(), strides, back.bytes(), RowMajorStrides(dims));
  for (int64_t i = 0; i < dense.elements(); ++i) EXPECT_EQ(back.GetInt(i), 100 + i);
}

TEST(StridedCopy, NothingAndOneElement) {
  HostTensor none(DType::kF32, {3, 0});
  CopyStrided(DType::kF32, {3, 0}, none.bytes(), {1, 1}, none.bytes(), {1, 1});
  HostTensor one = HostTensor::FromValues<float>(DType::kF32, {}, {7});
  HostTensor other(DType::kF32, {});
  CopyStrided(DType::kF32, {}, one.bytes(), {}, other.bytes(), {});
  EXPECT_EQ(other.GetDouble(0), 7);
}

}  // namespace
}  // namespace fusion
