// Importing, planning and emitting end in good order wherever they are told to: at any step, of
// which each allocation is one. Nothing is lost, and the same work comes out the same afterwards.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "core/base/threads/job.h"
#include "core/codegen/backend.h"
#include "core/graph/build/canonical.h"
#include "core/import/graph_source.h"
#include "core/plan/planner.h"
#include "tests/models/models.h"
#include "tests/support/kernel_harness.h"
#include "tests/support/random_graph.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;

constexpr int kEndsPerCase = 40;

// What a request of these bytes, or of this graph, comes to, as text.
absl::StatusOr<std::string> Make(const std::string& model, const Graph* given,
                                 const DeviceSpec& device) {
  std::optional<Graph> imported;
  if (given == nullptr) {
    GraphSource source;
    source.onnx_model = model;
    ASSIGN_OR_RETURN(imported, ImportGraph(source, {}));
    given = &*imported;
  }
  ASSIGN_OR_RETURN(CanonicalGraph canonical, Canonicalise(*given));
  ASSIGN_OR_RETURN(PlannedModel model_plan, MakePlan(canonical.graph, device, {}));
  ASSIGN_OR_RETURN(const Backend* backend, FindBackend("cpu"));
  std::string out = canonical.key_text;
  for (const auto& kernel : model_plan.kernels) {
    ASSIGN_OR_RETURN(KernelSource source, backend->Emit(kernel.schedule, device, "fk_test", {}));
    out += source.text;
  }
  return out;
}

void ExpectEndsAnywhere(const std::string& model, const Graph* graph, uint64_t seed) {
  const DeviceSpec device = DeviceNamed("generic-avx2", 2);
  Job whole("planning", {.bytes = int64_t{1} << 40, .steps = int64_t{1} << 50}, nullptr, "",
            nullptr);
  const absl::StatusOr<std::string> wanted = whole.Do([&] { return Make(model, graph, device); });
  ASSERT_TRUE(wanted.ok()) << wanted.status();
  ASSERT_GT(whole.steps(), 1000);
  std::mt19937_64 random(seed);
  for (int i = 0; i < kEndsPerCase; ++i) {
    JobLimits limits{.bytes = int64_t{1} << 40, .steps = int64_t{1} << 50};
    if (i % 4 == 0) {
      limits.bytes = whole.most_bytes() * (i + 1) / (kEndsPerCase + 1);
    } else {
      limits.steps =
          1 + static_cast<int64_t>(random() % static_cast<uint64_t>(whole.steps() * 99 / 100));
    }
    Job job("planning", limits, nullptr, "", nullptr);
    const absl::StatusOr<std::string> ended = job.Do([&] { return Make(model, graph, device); });
    EXPECT_EQ(ended.status().code(), absl::StatusCode::kResourceExhausted)
        << "after " << limits.steps << " of " << whole.steps() << " steps, with " << limits.bytes
        << " bytes";
  }
  const absl::StatusOr<std::string> again = Make(model, graph, device);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE(*again == *wanted);
}

class JobsOfModels : public ::testing::TestWithParam<const char*> {};

TEST_P(JobsOfModels, EndAnywhere) {
  const auto model = GenerateModel(*FindModel(GetParam()), FindModel(GetParam())->defaults);
  ASSERT_TRUE(model.ok()) << model.status();
  ExpectEndsAnywhere(model->model.SerializeAsString(), nullptr, 1);
}

INSTANTIATE_TEST_SUITE_P(All, JobsOfModels,
                         ::testing::Values("bert_layer", "lstm", "conv_bn_relu", "lengths"));

class JobsOfGraphs : public ::testing::TestWithParam<uint64_t> {};

TEST_P(JobsOfGraphs, EndAnywhere) {
  const uint64_t seed = GetParam();
  const Graph graph = seed % 3 == 0   ? RandomLoopGraph(seed)
                      : seed % 3 == 1 ? RandomOpaqueGraph(seed)
                                      : RandomChainGraph(seed);
  ExpectEndsAnywhere("", &graph, seed);
}

INSTANTIATE_TEST_SUITE_P(All, JobsOfGraphs, ::testing::Range<uint64_t>(0, 9));

}  // namespace
}  // namespace fusion
