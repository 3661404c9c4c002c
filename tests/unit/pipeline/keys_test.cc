#include <gtest/gtest.h>

#include <set>

#include "core/base/hash.h"
#include "core/pipeline/kernels/kernels.h"
#include "core/pipeline/requests/plan_key.h"
#include "core/pipeline/requests/plan_request.h"
#include "tests/support/field_count.h"
#include "tests/support/sample_lock.h"

namespace fusion {
namespace {

// Flips each field in turn; every variant must differ from the base and from the others.
template <typename Parts>
void ExpectDistinct(const std::vector<std::function<void(Parts*)>>& changes,
                    std::string (*key)(const Parts&)) {
  static_assert(FieldCount<Parts>() > 0);
  EXPECT_EQ(static_cast<int>(changes.size()), FieldCount<Parts>()) << "a field without a flip";
  std::set<std::string> keys = {key(Parts{})};
  for (size_t i = 0; i < changes.size(); ++i) {
    Parts parts;
    changes[i](&parts);
    EXPECT_TRUE(keys.insert(key(parts)).second) << "field " << i << " does not reach the key";
  }
}

TEST(PlanKey, EveryFieldCounts) {
  ExpectDistinct<PlanKeyParts>({[](PlanKeyParts* p) { p->graph = "graph {}"; },
                                [](PlanKeyParts* p) { p->device = "d"; },
                                [](PlanKeyParts* p) { p->fusion = FusionMode::kOpByOp; },
                                [](PlanKeyParts* p) { p->numerics = Numerics::kBitwise; },
                                [](PlanKeyParts* p) { p->high_memory_pressure = true; },
                                [](PlanKeyParts* p) { p->high_compute_pressure = true; },
                                [](PlanKeyParts* p) { p->low_latency = true; },
                                [](PlanKeyParts* p) { p->frontier = true; },
                                [](PlanKeyParts* p) { p->debug = true; },
                                [](PlanKeyParts* p) { p->guard = true; },
                                [](PlanKeyParts* p) { p->opt_level = 1; },
                                [](PlanKeyParts* p) { p->rules = "rule"; },
                                [](PlanKeyParts* p) { p->planner_version = 7; },
                                [](PlanKeyParts* p) { p->backend = "cpu"; },
                                [](PlanKeyParts* p) { p->codegen_version = 7; },
                                [](PlanKeyParts* p) { p->abi_version = 7; },
                                [](PlanKeyParts* p) { p->toolchain = "g++"; },
                                [](PlanKeyParts* p) { p->lock = "12ab"; },
                                [](PlanKeyParts* p) { p->family = "f"; },
                                [](PlanKeyParts* p) { p->registered = "r"; },
                                [](PlanKeyParts* p) { p->tenant = "t"; }},
                               PlanKey);
}

TEST(PlanKey, SaysWhatItWasMadeOf) {
  PlanKeyParts parts{.graph = "graph \"\" {\n}\n",
                     .device = "cpu threads=4",
                     .fusion = FusionMode::kOpByOp,
                     .numerics = Numerics::kFast,
                     .high_memory_pressure = true,
                     .high_compute_pressure = true,
                     .low_latency = true,
                     .frontier = true,
                     .debug = true,
                     .guard = true,
                     .opt_level = 3,
                     .rules = "rule",
                     .planner_version = 7,
                     .backend = "cpu",
                     .codegen_version = 8,
                     .abi_version = 9,
                     .toolchain = "g++ -O2",
                     .lock = "12ab",
                     .family = "f",
                     .registered = "r",
                     .tenant = "t"};
  for (const PlanKeyParts& one : {PlanKeyParts{}, parts}) {
    const std::string key = PlanKey(one);
    EXPECT_EQ(PlanKey(ParsePlanKey(key).value()), key);
    EXPECT_EQ(ParsePlanKey(key)->graph, one.graph);
    EXPECT_EQ(ParsePlanKey(key)->tenant, one.tenant);
    for (const std::string& other : {key + "x", key.substr(1), key.substr(0, key.size() - 1),
                                     key + FieldHasher().Add("more", 1).bytes()}) {
      EXPECT_TRUE(absl::IsInvalidArgument(ParsePlanKey(other).status())) << other;
    }
  }
  EXPECT_FALSE(ParsePlanKey("").ok());
  parts.fusion = static_cast<FusionMode>(17);
  EXPECT_FALSE(ParsePlanKey(PlanKey(parts)).ok());
}

TEST(PlanKey, TextCannotMoveFromOneFieldToTheNext) {
  EXPECT_NE(PlanKey({.graph = "ab", .device = "c"}), PlanKey({.graph = "a", .device = "bc"}));
}

TEST(RequestKey, EveryFieldThatImportOrTargetSeeCounts) {
  static_assert(FieldCount<Target>() == 11 && FieldCount<PlanOptions>() == 16 &&
                FieldCount<Hints>() == 4 && FieldCount<GraphSource>() == 2);
  const std::vector<std::function<void(PlanRequest*)>> changes = {
      [](PlanRequest* r) { r->source.onnx_model = "m"; },
      [](PlanRequest* r) { r->target.name = "n"; },
      [](PlanRequest* r) { r->target.vendor = "v"; },
      [](PlanRequest* r) { r->target.family = 6; },
      [](PlanRequest* r) { r->target.model = 6; },
      [](PlanRequest* r) { r->target.isa = "avx2"; },
      [](PlanRequest* r) { r->target.features = {"f"}; },
      [](PlanRequest* r) {
        r->target.features = {"f", "g"};
      },
      [](PlanRequest* r) { r->target.l1_bytes = 1; },
      [](PlanRequest* r) { r->target.l2_bytes = 1; },
      [](PlanRequest* r) { r->target.l3_bytes = 1; },
      [](PlanRequest* r) { r->target.threads = 9; },
      [](PlanRequest* r) { r->target.measured = MeasuredConstants{}; },
      [](PlanRequest* r) { r->target.measured = MeasuredConstants{.isa = "avx2"}; },
      [](PlanRequest* r) { r->target.measured = MeasuredConstants{.threads = 2}; },
      [](PlanRequest* r) { r->target.measured = MeasuredConstants{.date = "2026-11-30"}; },
      [](PlanRequest* r) {
        r->target.measured = MeasuredConstants{.values = {{"launch", 1e-6}}};
      },
      [](PlanRequest* r) {
        r->target.measured = MeasuredConstants{.values = {{"launch", 2e-6}}};
      },
      [](PlanRequest* r) { r->options.fusion = FusionMode::kOpByOp; },
      [](PlanRequest* r) { r->options.numerics = Numerics::kBitwise; },
      [](PlanRequest* r) { r->options.hints.memory_pressure = 0.1; },
      [](PlanRequest* r) { r->options.hints.compute_pressure = 0.1; },
      [](PlanRequest* r) { r->options.hints.batch_size = 1; },
      [](PlanRequest* r) { r->options.hints.low_latency = true; },
      [](PlanRequest* r) { r->allow_fused = true; },
      [](PlanRequest* r) {
        r->options.dim_bindings = {{"s", 1}};
      },
      [](PlanRequest* r) {
        r->options.dim_bindings = {{"s", 2}};
      },
      [](PlanRequest* r) { r->options.dim_ranges["s"] = {}; },
      [](PlanRequest* r) { r->options.dim_ranges["t"] = {}; },
      [](PlanRequest* r) { r->options.dim_ranges["s"] = {.least = 0}; },
      [](PlanRequest* r) { r->options.dim_ranges["s"] = {.most = 2}; },
      [](PlanRequest* r) { r->options.dim_ranges["s"] = {.multiple = 2}; },
      [](PlanRequest* r) { r->options.dim_ranges["s"] = {.likely = 1}; },
      [](PlanRequest* r) { r->options.keep_outputs = {"k"}; },
      [](PlanRequest* r) {
        r->options.shared_buffers = {{"a", "b"}};
      },
      [](PlanRequest* r) {
        r->options.shared_buffers = {{"a", "c"}};
      },
      [](PlanRequest* r) {
        r->options.shared_buffers = {{"c", "b"}};
      },
      [](PlanRequest* r) {
        r->options.shared_buffers = {{"a", "b", 8}};
      },
      [](PlanRequest* r) {
        r->options.bound_strides = {{"a", {2}}};
      },
      [](PlanRequest* r) {
        r->options.bound_strides = {{"a", {2, 1}}};
      },
      [](PlanRequest* r) {
        r->options.bound_strides = {{"b", {2}}};
      },
      [](PlanRequest* r) { r->options.custom_ops = "op a.B(x) = x"; },
      [](PlanRequest* r) { r->options.rules = {Rule{.name = "r"}}; },
      [](PlanRequest* r) { r->options.frontier = true; },
      [](PlanRequest* r) { r->options.debug = true; },
      [](PlanRequest* r) { r->options.guard = true; },
      [](PlanRequest* r) { r->options.opt_level = 1; },
      [](PlanRequest* r) { r->options.tenant = "t"; },
      [](PlanRequest* r) { r->options.lock = std::make_shared<const PlanLock>(SampleLock()); },
  };
  std::set<std::string> keys = {RequestKey({})};
  for (size_t i = 0; i < changes.size(); ++i) {
    PlanRequest request;
    changes[i](&request);
    EXPECT_TRUE(keys.insert(RequestKey(request)).second) << "flip " << i;
  }
}

TEST(KernelKey, EveryFieldCounts) {
  ExpectDistinct<KernelKeyParts>(
      {[](KernelKeyParts* p) { p->schedule = "s"; }, [](KernelKeyParts* p) { p->backend = "cpu"; },
       [](KernelKeyParts* p) { p->codegen_version = 7; },
       [](KernelKeyParts* p) { p->abi_version = 7; }, [](KernelKeyParts* p) { p->isa = "avx512"; },
       [](KernelKeyParts* p) { p->vector_bytes = 64; },
       [](KernelKeyParts* p) { p->toolchain = "g++"; }, [](KernelKeyParts* p) { p->guard = true; },
       [](KernelKeyParts* p) { p->tenant = "t"; }},
      KernelKey);
}

}  // namespace
}  // namespace fusion
