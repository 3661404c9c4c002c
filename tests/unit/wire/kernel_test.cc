#include "core/wire/kernel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/wire/stored_plan.h"
#include "fusion/v1/plan.pb.h"
#include "tests/support/message_checks.h"
#include "tests/support/sample_bundle.h"

namespace fusion {
namespace {

v1::KernelArtifact KernelWire() {
  v1::KernelArtifact wire;
  EncodeKernel(SampleKernel(), &wire);
  return wire;
}

TEST(WireKernel, EveryFieldTravels) {
  EXPECT_EQ(FieldCount<KernelArtifact>(), WireFieldCount<v1::KernelArtifact>());
  EXPECT_EQ(FieldCount<CheckReport>(), WireFieldCount<v1::CheckReport>());
  v1::KernelArtifact wire = KernelWire();
  EXPECT_THAT(UnsetFields(wire),
              testing::UnorderedElementsAre("searches.result.tried.choice.parts.split",
                                            "searches.result.tried.choice.turns",
                                            "searches.result.tried.choice.pipelines"));
  v1::KernelArtifact again;
  EncodeKernel(DecodeKernel(wire).value(), &again);
  EXPECT_EQ(TextOf(again), TextOf(wire));
  EXPECT_EQ(TextOf(wire.check()),
            "verified: true\nreason: \"sampled\"\nmax_abs: 1e-06\nmax_rel: 1e-07\nelements: 4096\n"
            "outside: 1\n");
  EXPECT_EQ(wire.source(), SampleKernel().source);
  EXPECT_EQ(wire.schedule(), SampleKernel().schedule);
  EXPECT_EQ(wire.reference(), SampleKernel().reference);
  EXPECT_EQ(wire.compile_ms(), 81.5);
  EXPECT_EQ(wire.check_ms(), 2.25);
}

TEST(WireKernel, BytesReadBackAndDamageIsSeen) {
  std::string bytes = EncodeArtifact(SampleKernel());
  EXPECT_EQ(EncodeArtifact(DecodeArtifact(bytes).value()), bytes);
  std::string flipped = bytes;
  size_t at = bytes.find("ELF");
  flipped[at] = 'e';
  EXPECT_EQ(DecodeArtifact(flipped).status().code(), absl::StatusCode::kDataLoss);
  EXPECT_FALSE(DecodeArtifact(bytes.substr(0, bytes.size() / 2)).ok());
  EXPECT_FALSE(DecodeArtifact("").ok());
}

TEST(WireKernel, HostileFieldsAreNamed) {
  auto fails_with = [](const std::function<void(v1::KernelArtifact*)>& damage) {
    v1::KernelArtifact wire = KernelWire();
    damage(&wire);
    return std::string(Message(DecodeKernel(wire).status()));
  };
  using testing::HasSubstr;
  EXPECT_THAT(fails_with([](auto* w) { w->set_key("x"); }), HasSubstr("kernel.key: a digest of 1"));
  EXPECT_THAT(fails_with([](auto* w) { w->set_full_key("other"); }),
              HasSubstr("full_key (5 bytes) has another digest"));
  EXPECT_THAT(fails_with([](auto* w) { w->clear_content_sha256(); }),
              HasSubstr("kernel.content_sha256: a digest of 0"));
  EXPECT_THAT(fails_with([](auto* w) { w->clear_binary(); }), HasSubstr("kernel.binary: 0 bytes"));
  EXPECT_THAT(fails_with([](auto* w) { w->set_binary("another"); }),
              HasSubstr("is not what content_sha256 says"));
  EXPECT_THAT(fails_with([](auto* w) { w->set_compile_ms(NAN); }), HasSubstr("kernel.compile_ms"));
  EXPECT_THAT(fails_with([](auto* w) { w->mutable_check()->set_outside(-1); }),
              HasSubstr("check: -1 of 4096"));
}

TEST(WireKernel, TextThatIsNotUtf8StaysReadable) {
  KernelArtifact kernel = SampleKernel();
  kernel.check.reason = "dlopen: \xff\xfe";
  EXPECT_EQ(DecodeArtifact(EncodeArtifact(kernel)).value().check.reason, "dlopen: ??");
}

TEST(WireStoredPlan, EveryFieldTravels) {
  // key follows from full_key, plan and content from plan_bytes; plan_sha256 is the wire's own, and
  // an outline is two fields of it.
  EXPECT_EQ(FieldCount<StoredPlan>() - 3 + 1, WireFieldCount<v1::StoredPlan>() - 1);
  PlanOutline outline{.sections = std::vector<SectionSet>(SamplePlan().groups.size(), 6),
                      .op_by_op_peak_bytes = 77};
  StoredPlan stored = MakeStoredPlan("graph:target", SamplePlan(), 1234567, "bert", outline);
  std::string bytes = EncodeStoredPlan(stored);
  v1::StoredPlan wire;
  ASSERT_TRUE(wire.ParseFromString(bytes));
  EXPECT_THAT(UnsetFields(wire), testing::IsEmpty());
  StoredPlan back = DecodeStoredPlan(bytes).value();
  EXPECT_EQ(back.key, Sha256("graph:target"));
  EXPECT_EQ(back.full_key, "graph:target");
  EXPECT_EQ(back.plan_bytes, stored.plan_bytes);
  EXPECT_EQ(back.content, Sha256(stored.plan_bytes));
  EXPECT_EQ(stored.content, back.content);
  EXPECT_EQ(back.ledger_bytes, stored.ledger_bytes);
  EXPECT_EQ(back.plan.candidates, stored.plan.candidates);
  EXPECT_EQ(back.plan.kernels.size(), 2u);
  EXPECT_EQ(back.created_unix_ms, 1234567);
  EXPECT_EQ(back.model_name, "bert");
  EXPECT_EQ(back.outline, outline);
}

TEST(WireStoredPlan, AnOutlineOfOtherGroupsIsDropped) {
  const size_t groups = SamplePlan().groups.size();
  for (const std::vector<SectionSet>& sections :
       {std::vector<SectionSet>(groups + 1, 1), std::vector<SectionSet>(groups, 16)}) {
    const StoredPlan stored = MakeStoredPlan("g", SamplePlan(), 1, "", {.sections = sections});
    const absl::StatusOr<StoredPlan> back = DecodeStoredPlan(EncodeStoredPlan(stored));
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_TRUE(back->outline.sections.empty());
  }
}

// It is for people, and comes from anybody.
TEST(WireStoredPlan, TheNameOfAModelIsBounded) {
  const StoredPlan stored = MakeStoredPlan("g", SamplePlan(), 1, std::string(500, 'n'));
  EXPECT_EQ(DecodeStoredPlan(EncodeStoredPlan(stored))->model_name, std::string(128, 'n'));
  EXPECT_EQ(stored.content, MakeStoredPlan("g", SamplePlan(), 1).content) << "no part of the plan";
}

TEST(WireStoredPlan, DamageIsSeen) {
  StoredPlan stored = MakeStoredPlan("graph:target", SamplePlan(), 1);
  std::string bytes = EncodeStoredPlan(stored);
  size_t at = bytes.find("toy_64k");
  ASSERT_NE(at, std::string::npos);
  bytes[at] = 'b';
  EXPECT_EQ(DecodeStoredPlan(bytes).status().code(), absl::StatusCode::kDataLoss);
  EXPECT_FALSE(DecodeStoredPlan("garbage").ok());
}

}  // namespace
}  // namespace fusion
