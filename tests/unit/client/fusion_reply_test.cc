#include "client/fusion_reply.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/wire/basics/scalars.h"
#include "core/wire/options/plan_lock.h"
#include "core/wire/plan.h"
#include "fusion/v1/fusion_service.pb.h"
#include "tests/support/sample_bundle.h"
#include "tests/support/sample_lock.h"

namespace fusion {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

v1::PlanFusionResponse SampleReply() {
  Plan plan = SamplePlan();
  v1::PlanFusionResponse wire;
  EncodePlan(plan, wire.mutable_plan());
  wire.set_plan_key(DigestToWire(Sha256("plan")));
  v1::Binding* binding = wire.mutable_binding();
  for (size_t i = 0; i < plan.inputs.size(); ++i) binding->add_inputs(StrCat("x", i));
  const size_t outputs = ModelOutputs(plan.outputs.size(), plan.output_extents);
  for (size_t i = 0; i < outputs; ++i) binding->add_outputs(StrCat("y", i));
  for (size_t i = 0; i < plan.weights.size(); ++i) binding->add_weights(StrCat("w", i));
  for (int i = 0; i < plan.nodes; ++i) binding->add_nodes(StrCat("n", i));
  for (const PlanKernel& kernel : plan.kernels) {
    v1::KernelStatus* status = wire.add_kernels();
    status->set_key(DigestToWire(kernel.key));
    status->set_state(v1::KERNEL_STATE_READY);
    status->set_content_sha256(DigestToWire(Sha256(kernel.symbol)));
    status->set_bytes(17);
    status->set_compile_ms(2.5);
    status->set_cached(true);
    status->mutable_check()->set_verified(true);
  }
  wire.set_cache(v1::CACHE_OUTCOME_HIT_STORE);
  v1::StageTime* stage = wire.add_stages();
  stage->set_stage("plan");
  stage->set_milliseconds(1.5);
  v1::Dump* dump = wire.add_dumps();
  dump->set_kind(v1::DUMP_KIND_SMG);
  dump->set_name("group 0");
  dump->set_text("smg {}");
  EncodeLock(SampleLock(), wire.mutable_lock());
  wire.add_warnings("take care");
  return wire;
}

TEST(DecodeReply, KeepsEveryField) {
  absl::StatusOr<FusionReply> reply = DecodeReply(SampleReply());
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(PlanToBytes(reply->plan), PlanToBytes(SamplePlan()));
  EXPECT_EQ(reply->plan_key, Sha256("plan"));
  EXPECT_EQ(reply->binding.inputs.size(), reply->plan.inputs.size());
  EXPECT_EQ(reply->binding.nodes.front(), "n0");
  ASSERT_EQ(reply->kernels.size(), 2u);
  EXPECT_EQ(reply->kernels[1].key, reply->plan.kernels[1].key);
  EXPECT_EQ(reply->kernels[1].state, KernelState::kReady);
  EXPECT_EQ(reply->kernels[1].content, Sha256(reply->plan.kernels[1].symbol));
  EXPECT_EQ(reply->kernels[1].bytes, 17);
  EXPECT_EQ(reply->kernels[1].compile_ms, 2.5);
  EXPECT_TRUE(reply->kernels[1].cached);
  EXPECT_TRUE(reply->kernels[1].check.verified);
  EXPECT_EQ(reply->cache, CacheOutcome::kHitStore);
  ASSERT_EQ(reply->stages.size(), 1u);
  EXPECT_EQ(reply->stages[0].stage, "plan");
  EXPECT_EQ(reply->stages[0].took, std::chrono::microseconds(1500));
  ASSERT_EQ(reply->dumps.size(), 1u);
  EXPECT_EQ(reply->dumps[0].kind, DumpKind::kSmg);
  EXPECT_EQ(reply->dumps[0].name, "group 0");
  EXPECT_EQ(reply->dumps[0].text, "smg {}");
  ASSERT_NE(reply->lock, nullptr);
  EXPECT_EQ(DigestOf(*reply->lock), DigestOf(SampleLock()));
  EXPECT_THAT(reply->warnings, ElementsAre("take care"));
}

struct Damage {
  std::string_view field;  // named by the message
  void (*apply)(v1::PlanFusionResponse*);
};

class DecodeReplyRefuses : public testing::TestWithParam<Damage> {};

TEST_P(DecodeReplyRefuses, AndNamesTheField) {
  v1::PlanFusionResponse wire = SampleReply();
  GetParam().apply(&wire);
  absl::StatusOr<FusionReply> reply = DecodeReply(wire);
  ASSERT_FALSE(reply.ok());
  EXPECT_THAT(std::string(Message(reply.status())), HasSubstr(std::string(GetParam().field)));
}

INSTANTIATE_TEST_SUITE_P(
    Fields, DecodeReplyRefuses,
    testing::Values(
        Damage{"binding.inputs", [](auto* w) { w->mutable_binding()->add_inputs("more"); }},
        Damage{"binding.outputs", [](auto* w) { w->mutable_binding()->clear_outputs(); }},
        Damage{"binding.weights", [](auto* w) { w->mutable_binding()->add_weights("more"); }},
        Damage{"binding.nodes", [](auto* w) { w->mutable_binding()->clear_nodes(); }},
        Damage{"kernels", [](auto* w) { w->mutable_kernels()->RemoveLast(); }},
        Damage{"kernels[1]", [](auto* w) { w->mutable_kernels(1)->set_key("short"); }},
        Damage{"kernels[0]",
               [](auto* w) { w->mutable_kernels(0)->set_key(DigestToWire(Sha256("?"))); }},
        Damage{"kernels[0]", [](auto* w) { w->mutable_kernels(0)->clear_content_sha256(); }},
        Damage{"kernels[0]", [](auto* w) { w->mutable_kernels(0)->set_bytes(-1); }},
        Damage{"plan", [](auto* w) { w->mutable_plan()->mutable_launches(0)->set_kernel(99); }},
        Damage{"lock: groups[0].choice",
               [](auto* w) { w->mutable_lock()->mutable_groups(0)->set_choice(9); }},
        Damage{"digest", [](auto* w) { w->clear_plan_key(); }}));

}  // namespace
}  // namespace fusion
