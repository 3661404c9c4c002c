// What caches charge for what they keep, compared with what the allocator gave for it: a service
// whose budgets are guesses takes several times what its operator allowed.
#include <gtest/gtest.h>

#include <functional>

#include "core/base/sanitizer.h"
#include "core/cache/memory/memory_store.h"
#include "core/onnx/reference_weights.h"
#include "core/pipeline/planning.h"
#include "tests/models/models.h"
#include "tests/support/capturing_logger.h"
#include "tests/support/fake_toolchain.h"
#include "tests/support/heap_in_use.h"
#include "tests/support/rule_cases.h"
#include "tests/support/test_model.h"

namespace fusion {
namespace {

constexpr int64_t kPlenty = int64_t{1} << 30;
// Against which what threads keep for their next allocation is little.
constexpr int64_t kEnough = int64_t{4} << 20;

struct ChargedCase {
  std::string name;
  std::function<std::string()> model;  // its bytes
  std::function<void(PlanOptions* options)> with = [](PlanOptions*) {};
  friend void PrintTo(const ChargedCase& c, std::ostream* out) { *out << c.name; }
};

std::string Generated(const std::string& name) {
  const ModelSpec* spec = FindModel(name);
  return ReferenceWeights(GenerateModel(*spec, spec->defaults).value().model)
      .value()
      .SerializeAsString();
}

// Nodes in a row, under long names.
std::string LongNames() {
  TestModel m;
  const std::string pad(200, 'n');
  m.Input("x", {64, 8});
  std::string last = "x";
  for (int i = 0; i < 100; ++i) {
    const std::string next = StrCat(pad, i);
    m.Node("Relu", {last}, {next}, StrCat("node ", pad, i));
    last = next;
  }
  return m.Output(last).Bytes();
}

std::string OpenRows() {
  TestModel m;
  m.Input("x", {"rows", 64});
  m.Reference("w", {64, 32});
  m.Node("MatMul", {"x", "w"}, {"h"}).Node("Relu", {"h"}, {"y"});
  return m.Output("y").Bytes();
}

class CachedBytesTest : public testing::TestWithParam<ChargedCase> {
 protected:
  CachedBytesTest() : toolchain_(Toolchain::Open(FakeToolchainOptions(), tools_).value()) {}

  void SetUp() override {
    if (kSanitized) GTEST_SKIP() << "has another allocator";
  }

  // The i-th of requests that all differ. Null: it failed.
  std::shared_ptr<const Resolved> Resolve(Resolver& resolver, int i) {
    PlanRequest request;
    request.source.onnx_model = model_;
    request.target.isa = "avx2";
    request.target.threads = 1 + i;
    GetParam().with(&request.options);
    StageContext stages{patient_, Clock::Real()};
    auto resolved = resolver.Resolve(request, stages);
    EXPECT_TRUE(resolved.ok()) << resolved.status();
    return resolved.ok() ? *resolved : nullptr;
  }

  // Neither less than it takes, nor so much that a budget is left half empty.
  static void ExpectFair(int64_t charged, int64_t taken) {
    EXPECT_GE(static_cast<double>(charged), 0.9 * static_cast<double>(taken))
        << charged << " bytes charged, " << taken << " taken";
    EXPECT_LE(static_cast<double>(charged), 1.6 * static_cast<double>(taken))
        << charged << " bytes charged, " << taken << " taken";
  }

  const std::string model_ = GetParam().model();
  CancelToken patient_;
  CapturingLogger logger_;
  FakeTools tools_;
  Toolchain toolchain_;
};

TEST_P(CachedBytesTest, OfGraphs) {
  Resolver resolver(BuiltInSpecs().value(), toolchain_, kPlenty);
  ASSERT_NE(Resolve(resolver, 0), nullptr);  // also what is made once in a process
  const int64_t first = resolver.recalled_bytes();
  const int64_t before = HeapInUse();
  auto charged = [&] { return resolver.recalled_bytes() - first; };
  for (int i = 1; charged() < kEnough; ++i) ASSERT_NE(Resolve(resolver, i), nullptr);
  ExpectFair(charged(), HeapInUse() - before);
}

TEST_P(CachedBytesTest, OfPlans) {
  Resolver resolver(BuiltInSpecs().value(), toolchain_, /*recalled_bytes=*/0);
  Planning planning({.remembered_bytes = kPlenty}, toolchain_, logger_, Clock::Real());
  auto plan = [&](int i) {
    PlanOrigin origin;
    return planning.Plan(Resolve(resolver, i)->work, {}, {}, patient_, &origin).status();
  };
  ASSERT_EQ(plan(0), absl::OkStatus());
  const int64_t first = planning.remembered_bytes();
  const int64_t before = HeapInUse();
  auto charged = [&] { return planning.remembered_bytes() - first; };
  for (int i = 1; charged() < kEnough; ++i) ASSERT_EQ(plan(i), absl::OkStatus());
  ExpectFair(charged(), HeapInUse() - before);
}

// As they come from the disk.
TEST_P(CachedBytesTest, OfStoredPlans) {
  Resolver resolver(BuiltInSpecs().value(), toolchain_, /*recalled_bytes=*/0);
  Planning planning({}, toolchain_, logger_, Clock::Real());
  PlanOrigin origin;
  const auto planned = planning.Plan(Resolve(resolver, 0)->work, {}, {}, patient_, &origin);
  ASSERT_TRUE(planned.ok()) << planned.status();
  MemoryStore store(kPlenty, logger_);
  const int64_t before = HeapInUse();
  for (int i = 0; store.CachedBytes() < kEnough; ++i) {
    StoredPlan stored = MakeStoredPlan(StrCat((*planned)->stored->full_key, i),
                                       (*planned)->stored->plan, /*created_unix_ms=*/i);
    auto read = DecodeStoredPlan(EncodeStoredPlan(stored));
    ASSERT_TRUE(read.ok()) << read.status();
    ASSERT_TRUE(store.PutBundle({std::make_shared<const StoredPlan>(*std::move(read))}).ok());
  }
  ExpectFair(store.CachedBytes(), HeapInUse() - before);
}

ChargedCase Model(const std::string& name, const std::string& generated) {
  return {name, [generated] { return Generated(generated); }};
}

ChargedCase Tiny(const std::string& name, std::function<void(PlanOptions* options)> with) {
  return {name, [] { return LinearReluModel().Bytes(); }, std::move(with)};
}

void OpenTheRows(PlanOptions* options) { options->dim_ranges["rows"] = {.most = 64}; }

void Search(PlanOptions* options) { options->opt_level = 1; }

void ManyRules(PlanOptions* options) {
  std::string text;
  for (int i = 0; i < 20; ++i) {
    text += StrCat("rules { name: 'r", i, "' pattern { nodes { id: 'a' ops: 'MatMul' } }",
                   " bias { factor: 0.9 } when: 'dim(a.output, -1) * 4 + 17 >= 64 * 3 - 2' }\n");
  }
  options->rules = RulesOf(text);
}

void UnusedOps(PlanOptions* options) {
  for (int i = 0; i < 250; ++i) {
    StrAppend(&options->custom_ops, StrCat("op acme.F", i, "(x) = exp(x)\n"));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models, CachedBytesTest,
    testing::Values(Tiny("Tiny", [](PlanOptions*) {}), Tiny("TinySearched", Search),
                    Tiny("TinyWithRules", ManyRules), Tiny("TinyWithUnusedOps", UnusedOps),
                    ChargedCase{"TinyOpen", OpenRows, OpenTheRows},
                    ChargedCase{"LongNames", LongNames}, Model("Loop", "lstm"), Model("Mlp", "mlp"),
                    Model("LstmCell", "lstm_cell"), Model("Attention", "mha"),
                    ChargedCase{"AttentionSearched", [] { return Generated("mha"); }, Search},
                    Model("BertLayer", "bert_layer"), Model("Gpt2Layer", "gpt2_layer")),
    [](const testing::TestParamInfo<ChargedCase>& one) { return one.param.name; });

}  // namespace
}  // namespace fusion
