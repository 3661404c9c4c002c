// Estimates follow measured constants.
#include <gtest/gtest.h>

#include "core/benefit/estimate.h"
#include "core/graph/build/text.h"
#include "core/plan/planner.h"
#include "tests/support/whole_program.h"

namespace fusion {
namespace {

DeviceSpec MeasuredSpec(std::map<std::string, double> values) {
  Target target{.isa = "avx512", .threads = 2};
  target.measured = MeasuredConstants{.isa = "avx512", .threads = 2, .date = "2026-11-30"};
  target.measured->values = std::move(values);
  return ResolveTarget(BuiltInSpecs().value(), target, nullptr).value();
}

Estimate EstimateOf(std::string_view graph, const DeviceSpec& device) {
  PlannedModel model = MakePlan(ParseGraph(graph).value(), device, {}).value();
  return EstimateKernel(model.kernels[0].schedule, device);
}

constexpr std::string_view kAdd = R"(graph "add" {
  %0 = input "a" : f32[64,1048576]
  %1 = input "b" : f32[64,1048576]
  %2 = Add(%0, %1) : f32[64,1048576]  "" @ "add"
  output %2
})";
constexpr std::string_view kMatMul = R"(graph "product" {
  %0 = input "a" : f32[512,512]
  %1 = input "b" : f32[512,512]
  %2 = MatMul(%0, %1) : f32[512,512]  "" @ "product"
  output %2
})";

TEST(MeasuredEstimate, TwiceTheBandwidthHalvesTheTimeOfMemory) {
  const std::map<std::string, double> slow = {{"l3.bandwidth", 1e12},
                                              {"l3.total_bandwidth", 2e12},
                                              {"memory.bandwidth", 1e10},
                                              {"memory.total_bandwidth", 1.5e10}};
  std::map<std::string, double> fast = slow;
  fast["memory.bandwidth"] *= 2;
  fast["memory.total_bandwidth"] *= 2;
  const Estimate before = EstimateOf(kAdd, MeasuredSpec(slow));
  const Estimate after = EstimateOf(kAdd, MeasuredSpec(fast));
  EXPECT_NEAR(before.off_chip_us / after.off_chip_us, 2, 1e-9);
  EXPECT_NEAR(before.time_us / after.time_us, 2, 0.15);  // memory bounds the kernel
}

TEST(MeasuredEstimate, HalfTheProductRateDoublesTheTimeOfProducts) {
  const Estimate fast =
      EstimateOf(kMatMul, MeasuredSpec({{"product_rate", 1e11}, {"total_product_rate", 2e11}}));
  const Estimate slow =
      EstimateOf(kMatMul, MeasuredSpec({{"product_rate", 0.5e11}, {"total_product_rate", 1e11}}));
  EXPECT_NEAR(slow.product_us / fast.product_us, 2, 0.01);
}

}  // namespace
}  // namespace fusion
