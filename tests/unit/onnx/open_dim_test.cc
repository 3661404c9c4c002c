#include "core/onnx/open_dim.h"

#include <gtest/gtest.h>

#include "tests/support/test_model.h"

namespace fusion {
namespace {

TEST(OpenDim, UnknownDimsAreNamedByTheirPlace) {
  TestModel m;
  m.Input("x", {-1, "n", "?", "", 3, 0});
  const onnx::ValueInfoProto& x = m.graph()->input(0);
  EXPECT_EQ(OpenDimName(x, 0), "x[0]");
  EXPECT_EQ(OpenDimName(x, 1), "n");
  EXPECT_EQ(OpenDimName(x, 2), "x[2]");
  EXPECT_EQ(OpenDimName(x, 3), "x[3]");
  EXPECT_EQ(OpenDimName(x, 4), std::nullopt);
  EXPECT_EQ(OpenDimName(x, 5), std::nullopt) << "of no elements, not unknown";
}

}  // namespace
}  // namespace fusion
