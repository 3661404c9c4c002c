#include "core/benefit/calibrate/terms.h"

#include <gtest/gtest.h>

#include "core/benefit/calibrate/kernel_form.h"
#include "core/benefit/estimate.h"
#include "core/plan/planner.h"
#include "tests/support/kernel_harness.h"
#include "tests/support/random_graph.h"
#include "tests/support/whole_program.h"

namespace fusion {
namespace {

// The kernels of plans of random graphs.
std::vector<Schedule> SomeKernels(const DeviceSpec& device, int graphs) {
  std::vector<Schedule> out;
  for (int seed = 0; seed < graphs; ++seed) {
    auto model = MakePlan(RandomChainGraph(static_cast<uint64_t>(seed)), device, {});
    FUSION_CHECK(model.ok(), Message(model.status()));
    for (const auto& kernel : model->kernels) out.push_back(kernel.schedule);
  }
  return out;
}

CostTerms TermsOn(const Schedule& kernel, const DeviceSpec& device) {
  return TermsOf(EstimateKernel(kernel, device), static_cast<int>(kernel.phases.size()),
                 ProductTypeOf(kernel, device), device);
}

TEST(CostTerms, OfASpecGiveTheTimeOfTheEstimate) {
  for (const char* name : {"generic-avx2", "h200"}) {
    const DeviceSpec device = DeviceNamed(name, 2);
    for (const Schedule& kernel : SomeKernels(device, 10)) {
      const double time = EstimateKernel(kernel, device).time_us;
      EXPECT_NEAR(TimeOf(TermsOn(kernel, device), {}), time, 1e-6 * time) << kernel.label;
    }
  }
}

TEST(CostTerms, AreThoseOfTheCalibratedSpec) {
  const CostFactors factors{.launch = 3,
                            .barrier = 0.5,
                            .task = 2,
                            .element = 1.7,
                            .shared = 0.6,
                            .memory = 2.5,
                            .product = {{"f32", 0.4}, {"bf16", 3}, {"i8", 2}}};
  for (int threads : {1, 2}) {
    const DeviceSpec device = DeviceNamed("generic-avx2", threads);
    const DeviceSpec calibrated = Calibrated(device, factors);
    int same = 0;
    int all = 0;
    for (const Schedule& kernel : SomeKernels(device, 20)) {
      const double time = EstimateKernel(kernel, calibrated).time_us;
      const double scaled = TimeOf(TermsOn(kernel, device), factors);
      EXPECT_NEAR(scaled, time, 0.15 * time) << kernel.label;
      same += std::abs(scaled - time) < 0.001 * time ? 1 : 0;
      ++all;
    }
    EXPECT_GE(same * 10, all * 9) << same << " of " << all;
  }
}

TEST(CostTerms, AreScaledOneByOne) {
  const CostTerms terms{.product_type = "f32",
                        .product_us = 10,
                        .element_us = 5,
                        .idle_us = 3,
                        .shared_us = 4,
                        .memory_us = 8,
                        .launch_us = 1,
                        .exposed = 0.5};
  EXPECT_DOUBLE_EQ(TimeOf(terms, {}), 15 + 0.5 * 12 + 3 + 1);
  EXPECT_DOUBLE_EQ(TimeOf(terms, {.launch = 4}), 15 + 0.5 * 12 + 3 + 4);
  EXPECT_DOUBLE_EQ(TimeOf(terms, {.memory = 2}), 20 + 0.5 * 15 + 3 + 1) << "now bytes bound it";
  EXPECT_DOUBLE_EQ(TimeOf(terms, {.product = {{"f32", 2.5}}}), 30 + 0.5 * 12 + 6 + 1)
      << "idle units wait for arithmetic";
  EXPECT_DOUBLE_EQ(TimeOf(terms, {.product = {{"bf16", 9}}}), TimeOf(terms, {}));
}

TEST(Calibrated, ByOneIsTheSpec) {
  const DeviceSpec device = DeviceNamed("generic-avx2", 2);
  EXPECT_EQ(Calibrated(device, {}).KeyText(), device.KeyText());
}

TEST(FormOf, SaysWhatAnEstimateCanBeWrongAbout) {
  const DeviceSpec device = DeviceNamed("generic-avx2", 1);
  std::map<std::string, int> forms;
  for (const Schedule& kernel : SomeKernels(device, 40)) {
    const std::string form = FormOf(kernel);
    ++forms[form];
    EXPECT_EQ(ProductTypeOf(kernel, device).empty(),
              form != "product" && form != "streamed product")
        << form << " " << kernel.label;
  }
  for (const char* form : {"product", "streamed product", "reduction", "element-wise"}) {
    EXPECT_GT(forms[form], 0) << form;
  }
}

}  // namespace
}  // namespace fusion
