// Plans of archives that nobody vouches for.
#include <gmock/gmock.h>

#include <random>
#include <thread>

#include "absl/strings/str_replace.h"
#include "core/pipeline/requests/plan_key.h"
#include "tests/support/pipeline_fixture.h"
#include "tests/support/test_model.h"

namespace fusion {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

class RemakeTest : public FusionPipelineTest {
 protected:
  // What another server would write of the plan of a request; of it this one knows nothing then.
  ClaimedPlan Claim(const PlanRequest& request) {
    const PlanReply reply = Ask(request);
    if (reply.stored == nullptr) return {};
    ClaimedPlan claimed{.plan = *reply.stored, .kernels = {}, .tenant = "shop"};
    for (const KernelStatus& kernel : reply.kernels) {
      if (kernel.state == KernelState::kReady) claimed.kernels[kernel.key] = kernel.content;
    }
    // What is answered may be written a moment later: then it would be known again.
    const auto written = static_cast<int64_t>(claimed.kernels.size());
    while (store_.Stats()[0].kernels < written) std::this_thread::yield();
    Forget();
    return claimed;
  }
  void Forget() {
    EXPECT_TRUE(store_.Forget({.all = true}).ok());
    pipeline_.Forget({}, /*all=*/true);
    compiled_ = 0;
  }
  // The claimed plan as if its key had said something else.
  static ClaimedPlan WithKey(const ClaimedPlan& claimed, std::string full_key) {
    ClaimedPlan other = claimed;
    other.plan = MakeStoredPlan(std::move(full_key), claimed.plan.plan, 1);
    return other;
  }
  static ClaimedPlan WithParts(const ClaimedPlan& claimed,
                               const std::function<void(PlanKeyParts*)>& change) {
    PlanKeyParts parts = ParsePlanKey(claimed.plan.full_key).value();
    change(&parts);
    return WithKey(claimed, PlanKey(parts));
  }
  RemadePlan Remake(const ClaimedPlan& claimed) {
    absl::StatusOr<RemadePlan> made = pipeline_.Remake(claimed, patient_);
    EXPECT_TRUE(made.ok()) << made.status();
    return made.ok() ? *made : RemadePlan{};
  }
  bool StoreIsEmpty() const {
    const StoreStats stats = store_.Stats()[0];
    return stats.plans == 0 && stats.kernels == 0;
  }
  // Refused with these words before anything was compiled, and nothing of it stored.
  void ExpectUnverified(const ClaimedPlan& claimed, const std::string& why) {
    compiled_ = 0;
    EXPECT_THAT(Remake(claimed).refused,
                AllOf(StartsWith("imported, unverified: "), HasSubstr(why)));
    EXPECT_EQ(compiled_, 0);
    EXPECT_TRUE(StoreIsEmpty());
  }

  const std::string bytes_ = LinearReluModel().Bytes();
};

TEST_F(RemakeTest, APlanIsMadeAgainFromItsKeyAlone) {
  using Change = std::function<void(PlanRequest*)>;
  for (const Change& change : std::vector<Change>{
           [](PlanRequest*) {}, [](PlanRequest* r) { r->options.fusion = FusionMode::kOpByOp; },
           [](PlanRequest* r) { r->options.numerics = Numerics::kBitwise; },
           [](PlanRequest* r) { r->options.numerics = Numerics::kFast; },
           [](PlanRequest* r) { r->options.hints.memory_pressure = 0.9; },
           [](PlanRequest* r) { r->options.hints.compute_pressure = 0.9; },
           [](PlanRequest* r) { r->options.hints.low_latency = true; },
           [](PlanRequest* r) { r->options.frontier = true; },
           [](PlanRequest* r) { r->options.debug = true; },
           [](PlanRequest* r) { r->options.guard = true; },
           [](PlanRequest* r) { r->options.tenant = "shop"; },
           [](PlanRequest* r) {
             r->target = {.vendor = "GenuineIntel", .family = 6, .model = 85, .isa = "avx512"};
             r->target.l2_bytes = 1 << 20;
             r->target.l3_bytes = 40 << 20;
             r->target.threads = 4;
           }}) {
    PlanRequest request = Request(bytes_);
    change(&request);
    const ClaimedPlan claimed = Claim(request);
    ASSERT_FALSE(claimed.kernels.empty());
    const RemadePlan made = Remake(claimed);
    EXPECT_EQ(made.refused, "");
    EXPECT_EQ(made.kernels, static_cast<int64_t>(claimed.kernels.size()));
    EXPECT_EQ(compiled_, made.kernels) << "all of them were compiled here";
    const Found<StoredPlan> stored = store_.GetPlan({claimed.plan.key, claimed.plan.full_key});
    ASSERT_TRUE(stored);
    EXPECT_EQ(stored.value->plan_bytes, claimed.plan.plan_bytes);
    EXPECT_EQ(Ask(request).cache, CacheOutcome::kHitMemory);
    Forget();
  }
}

TEST_F(RemakeTest, APlanWithoutKernelsIsOnlyPlanned) {
  PlanRequest request = Request(bytes_);
  request.mode = PlanMode::kPlanOnly;
  const ClaimedPlan claimed = Claim(request);
  EXPECT_TRUE(claimed.kernels.empty());
  EXPECT_EQ(Remake(claimed).refused, "");
  EXPECT_EQ(compiled_, 0);
  EXPECT_TRUE(store_.HasPlan(claimed.plan.key));
}

TEST_F(RemakeTest, ForeignCodeIsNamedAndOursIsStored) {
  ClaimedPlan claimed = Claim(Request(bytes_));
  const auto [key, content] = *claimed.kernels.begin();
  claimed.kernels[key] = Sha256("foreign code");
  EXPECT_THAT(Remake(claimed).refused,
              AllOf(StartsWith("imported, unverified: "), HasSubstr(key.ToHex()),
                    HasSubstr("is not what this server's compiler makes of its source")));
  EXPECT_EQ(store_.GetKernel({key}).value->content, content);
  Forget();
  claimed.kernels[key] = content;
  claimed.kernels[Sha256("another")] = Sha256("foreign code");
  EXPECT_THAT(Remake(claimed).refused, HasSubstr("is none of its own"));
  EXPECT_FALSE(store_.HasKernel(Sha256("another")));
}

TEST_F(RemakeTest, APlanWithConstantsOfAProbeIsNotMadeAgain) {
  PlanRequest request = Request(bytes_);
  request.target.measured = MeasuredConstants{.isa = request.target.isa,
                                              .threads = 1,
                                              .date = "2026-11-30",
                                              .values = {{"product_rate", 1e10}}};
  const ClaimedPlan measured = Claim(request);
  EXPECT_EQ(measured.plan.plan.target.find("generic-"), 0u);
  EXPECT_NE(measured.plan.plan.target.find("+probe-20261130-"), std::string::npos);
  EXPECT_NE(measured.plan.key, Claim(Request(bytes_)).plan.key);
  Forget();
  ExpectUnverified(measured, "the constants of its device were measured by a probe");
}

TEST_F(RemakeTest, APlanThatIsNotWhatItsKeySaysIsRefusedBeforeAnythingIsCompiled) {
  const ClaimedPlan claimed = Claim(Request(bytes_));
  Plan other = claimed.plan.plan;
  other.kernels[0].scratch_bytes += 64;
  ClaimedPlan forged = claimed;
  forged.plan = MakeStoredPlan(claimed.plan.full_key, other, 1);
  ExpectUnverified(forged, "it is not the plan that this server makes of its key");
  other = claimed.plan.plan;
  other.kernels[0].key = Sha256("another");
  forged.plan = MakeStoredPlan(claimed.plan.full_key, other, 1);
  ExpectUnverified(forged, "it is not the plan that this server makes of its key");
}

TEST_F(RemakeTest, KeysThatDoNotHoldAllThatPlanningNeedsAreRefused) {
  const ClaimedPlan claimed = Claim(Request(bytes_));
  using Change = std::function<void(PlanKeyParts*)>;
  for (const auto& [change, why] : std::vector<std::pair<Change, std::string>>{
           {[](PlanKeyParts* p) { p->family = "member:1=x\n"; }, "its dims are open"},
           {[](PlanKeyParts* p) { p->lock = "12ab"; }, "it was planned with a lock"},
           {[](PlanKeyParts* p) { p->opt_level = 2; }, "measured on another machine"},
           {[](PlanKeyParts* p) { p->rules = "rule x 0 0x0p+0\n"; }, "it differs in \"rules\""},
           {[](PlanKeyParts* p) { p->registered = "leaky"; }, "it differs in \"registered\""},
           {[](PlanKeyParts* p) { p->toolchain += " -fno-builtin"; },
            "it differs in \"toolchain\""},
           {[](PlanKeyParts* p) { ++p->planner_version; }, "it differs in \"planner\""},
           {[](PlanKeyParts* p) { ++p->codegen_version; }, "it differs in \"codegen\""},
           {[](PlanKeyParts* p) { p->device = "toy GPU none"; }, "its device \"toy\" is not one"},
           {[](PlanKeyParts* p) { p->device += " more"; }, "is not one that this server plans for"},
           {[](PlanKeyParts* p) { p->device = ""; }, "is not one that this server plans for"},
           {[](PlanKeyParts* p) { p->graph = "graph \"\" {"; }, "does not hold its whole graph"},
           {[](PlanKeyParts* p) {
              p->graph = absl::StrReplaceAll(p->graph, {{"input \"\"", "input \"a name\""}});
            },
            "it differs in \"graph\""}}) {
    ExpectUnverified(WithParts(claimed, change), why);
  }
  ExpectUnverified(WithKey(claimed, "no key at all"), "that no server of this version writes");
}

TEST_F(RemakeTest, AGraphOfWhichTheKeyHasOnlyADigestIsRefused) {
  TestModel model;
  auto number = [](int64_t value) {
    HostTensor scalar(DType::kI64, {});
    scalar.SetDouble(0, static_cast<double>(value));
    return scalar;
  };
  // Folded, so that it is none of the client's.
  model.Input("x", {1024})
      .Initializer("zero", number(0))
      .Initializer("most", number(1024))
      .Initializer("one", number(1))
      .Node("Range", {"zero", "most", "one"}, {"r"})
      .Node("Cast", {"r"}, {"f"})
      .Attr("to", int64_t{1})
      .Node("Add", {"x", "f"}, {"y"})
      .Output("y");
  const std::string bytes = model.Bytes();
  const ClaimedPlan claimed = Claim(Request(bytes));
  ASSERT_THAT(claimed.plan.full_key, HasSubstr(" sha256 "));
  ExpectUnverified(claimed, "does not hold its whole graph");
}

// A key is a stranger's text: whatever it says, it is answered, and what is stored is what it says.
TEST_F(RemakeTest, KeysThatSomebodyHasTamperedWithAreAnswered) {
  TestModel softmax;
  softmax.Input("x", {4, 8}).Node("Softmax", {"x"}, {"s"}).Node("Exp", {"s"}, {"y"}).Output("y");
  const std::string bytes = softmax.Bytes();
  PlanRequest request = Request(bytes);
  request.mode = PlanMode::kPlanOnly;
  const ClaimedPlan claimed = Claim(request);
  const std::string& key = claimed.plan.full_key;
  std::mt19937 random(5);
  const std::string_view pieces[] = {"0",  "9",   "99999999999", "-1", "%",
                                     "\n", "f64", "Exp",         "(",  " "};
  for (int i = 0; i < 200; ++i) {
    std::string graph = ParsePlanKey(key)->graph;
    for (int change = 0; change < 1 + i % 3; ++change) {
      const size_t at = random() % graph.size();
      graph.replace(at, random() % 3, pieces[random() % std::size(pieces)]);
    }
    const ClaimedPlan forged = WithParts(claimed, [&](PlanKeyParts* p) { p->graph = graph; });
    const RemadePlan made = Remake(forged);
    if (made.refused.empty()) {
      const Found<StoredPlan> stored = store_.GetPlan({forged.plan.key, forged.plan.full_key});
      ASSERT_TRUE(stored);
      EXPECT_EQ(stored.value->plan_bytes, forged.plan.plan_bytes);
    } else {
      EXPECT_FALSE(store_.HasPlan(forged.plan.key)) << made.refused;
    }
  }
}

TEST_F(RemakeTest, WhatFailsHereOrFailedThereIsRefused) {
  const ClaimedPlan claimed = Claim(Request(bytes_));
  decide_ = [](const CompileJob&) { return FakeAct::kError; };
  EXPECT_THAT(Remake(claimed).refused, StartsWith("imported, unverified: "));
  decide_ = nullptr;
  Forget();
  ClaimedPlan detour = claimed;
  Plan plan = claimed.plan.plan;
  plan.fallbacks.push_back({.node = 0, .reason = "it failed"});
  detour.plan = MakeStoredPlan(claimed.plan.full_key, plan, 1);
  ExpectUnverified(detour, "failed where it was made");
}

TEST_F(RemakeTest, EndsWithItsCaller) {
  const ClaimedPlan claimed = Claim(Request(bytes_));
  CancelToken gone;
  gone.Cancel();
  EXPECT_TRUE(absl::IsCancelled(pipeline_.Remake(claimed, gone).status()));
}

}  // namespace
}  // namespace fusion
