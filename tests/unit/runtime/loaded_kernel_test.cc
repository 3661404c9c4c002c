#include "core/runtime/loaded_kernel.h"

#include <gtest/gtest.h>

namespace fusion {
namespace {

TEST(LoadKernel, ABackendWithoutALoaderIsNamed) {
  EXPECT_EQ(LoadKernel("abacus", "bytes", "fk_1").status(),
            Unimplemented("kernel fk_1 was made by the backend \"abacus\"; this build loads cpu"));
}

TEST(LoadKernel, TheLoaderOfItsBackendIsAsked) {
  EXPECT_TRUE(absl::IsDataLoss(LoadKernel("cpu", "no object", "fk_1").status()));
}

}  // namespace
}  // namespace fusion
