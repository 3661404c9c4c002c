#include "core/benefit/terms.h"

#include <gtest/gtest.h>

#include "core/benefit/estimate.h"
#include "core/benefit/kernel_form.h"
#include "core/graph/build/text.h"
#include "core/plan/planner.h"
#include "tests/support/kernel_harness.h"
#include "tests/support/random_graph.h"
#include "tests/support/whole_program.h"

namespace fusion {
namespace {

std::vector<Schedule> KernelsOf(const Graph& graph, const DeviceSpec& device) {
  auto model = MakePlan(graph, device, {});
  FUSION_CHECK(model.ok(), Message(model.status()));
  std::vector<Schedule> out;
  for (const auto& kernel : model->kernels) out.push_back(kernel.schedule);
  return out;
}

// The kernels of plans of random graphs.
std::vector<Schedule> SomeKernels(const DeviceSpec& device, int graphs) {
  std::vector<Schedule> out;
  for (int seed = 0; seed < graphs; ++seed) {
    for (Schedule& kernel : KernelsOf(RandomChainGraph(static_cast<uint64_t>(seed)), device)) {
      out.push_back(std::move(kernel));
    }
  }
  return out;
}

// Its rows of scores do not fit on chip: keys are streamed.
Graph Attention() {
  auto graph = ParseGraph(R"(graph "attention" {
    %0 = input "q" : f32[1,1024,64]
    %1 = input "k" : f32[1,64,8192]
    %2 = input "v" : f32[1,8192,64]
    %3 = MatMul(%0, %1) : f32[1,1024,8192]  "" @ "qk"
    %4 = Softmax(%3) {axis=-1} : f32[1,1024,8192]  "" @ "softmax"
    %5 = MatMul(%4, %2) : f32[1,1024,64]  "" @ "pv"
    output %5
  })");
  FUSION_CHECK(graph.ok(), Message(graph.status()));
  return *std::move(graph);
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
                            .local = 0.3,
                            .shared = 0.6,
                            .memory = 2.5,
                            .product = {{"f32", 0.4}, {"bf16", 3}, {"i8", 2}}};
  for (int threads : {1, 2}) {
    const DeviceSpec device = DeviceNamed("generic-avx2", threads);
    const DeviceSpec calibrated = Calibrated(device, factors);
    int apart = 0;
    for (const Schedule& kernel : SomeKernels(device, 20)) {
      const double time = EstimateKernel(kernel, calibrated).time_us;
      const double scaled = TimeOf(TermsOn(kernel, device), factors);
      // Kernels that run side by side have products and other arithmetic in different shares.
      const bool beside = kernel.label.find(" | ") != std::string::npos;
      EXPECT_NEAR(scaled, time, (beside ? 0.03 : 0.001) * time) << kernel.label;
      apart += beside ? 0 : 1;
    }
    EXPECT_GE(apart, 15);
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

TEST(CostTerms, TheFactorOfAClassIsOnWhatAKernelDoesOnceItRuns) {
  const CostTerms terms{.element_us = 5, .memory_us = 8, .launch_us = 2, .exposed = 0};
  EXPECT_EQ(ClassBoundOf(terms), "memory");
  const CostFactors slow{.classes = {{{"memory", "copy"}, 1.5}, {{"elements", "copy"}, 2}}};
  EXPECT_DOUBLE_EQ(ExpectedUs(terms, "copy", slow), 2 + 1.5 * 8);
  EXPECT_DOUBLE_EQ(ExpectedUs(terms, "reduction", slow), 10);
  EXPECT_DOUBLE_EQ(TimeOf(terms, slow), 10) << "the constants alone";
  // The class is that of the scaled terms.
  CostFactors other = slow;
  other.memory = 0.5;
  EXPECT_DOUBLE_EQ(ExpectedUs(terms, "copy", other), 2 + 2 * 5);
  other.launch = 20;
  EXPECT_DOUBLE_EQ(ExpectedUs(terms, "copy", other), 40 + 2 * 5) << "whatever a launch costs";
  EXPECT_EQ(ClassBoundOf(CostTerms()), "");
}

TEST(CostTerms, AreThoseOfTheSpecWhateverTheEstimateWasMadeWith) {
  CostFactors factors{.launch = 0.5, .element = 2, .local = 0.4, .memory = 1.5};
  for (const char* bound : {"elements", "private caches", "shared cache", "memory", "products"}) {
    for (const char* form : {"element-wise", "reduction", "product", "split reduction"}) {
      factors.classes[{bound, form}] = form[0] == 'e' ? 0.7 : 1.8;
    }
  }
  const DeviceSpec device = DeviceNamed("generic-avx2", 1);
  const DeviceSpec calibrated = Calibrated(device, factors);
  int checked = 0;
  int multiplied = 0;
  for (const Schedule& kernel : SomeKernels(device, 20)) {
    const Estimate estimate = EstimateKernel(kernel, calibrated);
    const int phases = static_cast<int>(kernel.phases.size());
    const std::string form = FormOf(kernel);
    const CostTerms terms =
        SpecTermsOf(estimate, phases, ProductTypeOf(kernel, device), form, calibrated, factors);
    EXPECT_NEAR(ExpectedUs(terms, form, factors), estimate.time_us, 0.03 * estimate.time_us)
        << kernel.label;
    const double spec_us = EstimateKernel(kernel, device).time_us;
    EXPECT_NEAR(TimeOf(terms, {}), spec_us, 0.03 * spec_us) << kernel.label;
    multiplied += std::abs(estimate.time_us - TimeOf(terms, factors)) > 0.01 * spec_us ? 1 : 0;
    ++checked;
  }
  EXPECT_GE(checked, 20);
  EXPECT_GT(multiplied, 5) << "some have a class with a factor";
}

TEST(CostTerms, OfPhasesInSequenceAddUp) {
  // Arithmetic of the first and memory of the second do not overlap, though each hides its smaller
  // part.
  const DeviceSpec device{
      .threads = 1, .overlap = 1, .levels = {{.name = "memory", .shared = true}}};
  const Estimate first{
      .time_us = 10, .compute_us = 10, .product_us = 10, .memory_us = 1, .off_chip_us = 1};
  const Estimate second{.time_us = 10, .compute_us = 1, .memory_us = 10, .off_chip_us = 10};
  const CostTerms terms = TermsOf(Sum(first, second), 2, "f32", device);
  EXPECT_DOUBLE_EQ(TimeOf(terms, {}), 20);
  EXPECT_DOUBLE_EQ(terms.serial_us, 9);
  const CostFactors twice{.element = 2, .memory = 2, .product = {{"f32", 2}}};
  EXPECT_DOUBLE_EQ(TimeOf(terms, twice), 40);
  Estimate pipelined = Sum(first, second);
  pipelined.time_us = 5.5;
  EXPECT_DOUBLE_EQ(TimeOf(TermsOf(pipelined, 2, "f32", device), {}), 5.5);
}

TEST(Calibrated, ByOneIsTheSpec) {
  const DeviceSpec device = DeviceNamed("generic-avx2", 2);
  EXPECT_EQ(Calibrated(device, {}).KeyText(), device.KeyText());
}

TEST(FormOf, SaysWhatAnEstimateCanBeWrongAbout) {
  const DeviceSpec device = DeviceNamed("generic-avx2", 1);
  std::map<std::string, int> forms;
  std::vector<Schedule> kernels = SomeKernels(device, 30);
  for (Schedule& kernel : KernelsOf(Attention(), device)) kernels.push_back(std::move(kernel));
  for (const Schedule& kernel : kernels) {
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
