#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/wire/basics/scalars.h"
#include "core/wire/options/options.h"
#include "core/wire/options/rules.h"
#include "core/wire/options/target.h"
#include "fusion/v1/fusion_service.pb.h"
#include "tests/support/message_checks.h"
#include "tests/support/sample_lock.h"

namespace fusion {
namespace {

using testing::HasSubstr;

Target SampleTarget() {
  return {.name = "generic-avx2",
          .vendor = "AuthenticAMD",
          .family = 25,
          .model = 17,
          .isa = "avx512",
          .features = {"avx512_bf16", "amx_tile"},
          .l1_bytes = 32768,
          .l2_bytes = 1 << 20,
          .l3_bytes = 1 << 25,
          .threads = 8,
          .measured = MeasuredConstants{.isa = "avx512",
                                        .threads = 2,
                                        .date = "2026-11-30",
                                        .source = "a test",
                                        .values = {{"launch", 2e-6}, {"task", 1e-7}}}};
}

PlanOptions SampleOptions() {
  return {.fusion = FusionMode::kOpByOp,
          .numerics = Numerics::kBitwise,
          .hints = {.memory_pressure = 0.25,
                    .compute_pressure = 0.75,
                    .batch_size = 4,
                    .low_latency = true},
          .dim_bindings = {{"batch", 4}, {"seq", 128}},
          .dim_ranges = {{"past", {.least = 8, .most = 64, .multiple = 4, .likely = 16}}},
          .keep_outputs = {"hidden", "\xc3\xa9"},
          .shared_buffers = {{"past", "present", 512}},
          .bound_strides = {{"image", {672, 3, 1}}},
          .custom_ops = "op acme.Twice(x) = 2 * x",
          .rules = ParseRulesText(R"(
            rules {
              name: "r"
              pattern {
                nodes { id: "a" ops: "MatMul" }
                nodes { id: "b" ops: "Softmax" }
                edges { from: "a" to: "b" input: 0 through: "Mul" most: 2 }
                inputs { nodes: ["a", "b"] input: 0 }
              }
              when: "units > 1"
              bias { factor: 2 }
            })",
                                  "sample")
                       .value(),
          .frontier = true,
          .debug = true,
          .guard = true,
          .opt_level = 2,
          .lock = std::make_shared<const PlanLock>(SampleLock())};
}

TEST(WireTarget, EveryFieldTravels) {
  EXPECT_EQ(FieldCount<Target>(), WireFieldCount<v1::Target>());
  v1::Target wire;
  EncodeTarget(SampleTarget(), &wire);
  EXPECT_EQ(TextOf(wire),
            "name: \"generic-avx2\"\nvendor: \"AuthenticAMD\"\nfamily: 25\nmodel: 17\n"
            "isa: \"avx512\"\nfeatures: \"avx512_bf16\"\nfeatures: \"amx_tile\"\nl1_bytes: 32768\n"
            "l2_bytes: 1048576\nl3_bytes: 33554432\nthreads: 8\nmeasured {\n  isa: \"avx512\"\n"
            "  threads: 2\n  date: \"2026-11-30\"\n  source: \"a test\"\n  constants {\n"
            "    name: \"launch\"\n    value: 2e-06\n  }\n  constants {\n    name: \"task\"\n"
            "    value: 1e-07\n  }\n}\n");
  EXPECT_EQ(DecodeTarget(wire)->measured, SampleTarget().measured);
  v1::Target again;
  EncodeTarget(DecodeTarget(wire).value(), &again);
  EXPECT_EQ(TextOf(again), TextOf(wire));
}

TEST(WireTarget, DefaultsAreTheProtos) {
  v1::Target wire;
  wire.set_isa("avx2");
  Target target = DecodeTarget(wire).value();
  EXPECT_EQ(target.threads, 0);
  EXPECT_EQ(target.l2_bytes, 0);
}

TEST(WireTarget, HostileFieldsAreNamed) {
  auto fails_with = [](const std::function<void(v1::Target*)>& damage) {
    v1::Target wire;
    EncodeTarget(SampleTarget(), &wire);
    damage(&wire);
    return std::string(Message(DecodeTarget(wire).status()));
  };
  EXPECT_THAT(fails_with([](auto* t) { t->set_isa("neon"); }),
              HasSubstr("target.isa: ISA \"neon\" is not supported; supported: x86-64-v2, avx2"));
  EXPECT_THAT(fails_with([](auto* t) { t->clear_isa(), t->clear_name(); }),
              HasSubstr("neither name nor isa"));
  EXPECT_THAT(fails_with([](auto* t) { t->set_threads(-2); }), HasSubstr("target.threads: -2"));
  EXPECT_THAT(fails_with([](auto* t) { t->set_threads(4097); }),
              HasSubstr("target.threads: 4097; expected 0..4096"));
  EXPECT_THAT(fails_with([](auto* t) { t->set_l3_bytes(-1); }), HasSubstr("target.l3_bytes: -1"));
  EXPECT_THAT(fails_with([](auto* t) { t->set_vendor(std::string(5000, 'x')); }),
              HasSubstr("target.vendor: 5000 bytes"));
  EXPECT_THAT(fails_with([](auto* t) {
                for (int i = 0; i < 5000; ++i) t->add_features("f");
              }),
              HasSubstr("target.features (count): 5002"));
  EXPECT_THAT(fails_with([](auto* t) { t->mutable_measured()->clear_constants(); }),
              HasSubstr("target.measured.constants (count): 0; expected 1.."));
  EXPECT_THAT(fails_with([](auto* t) {
                for (int i = 0; i < 5000; ++i) t->mutable_measured()->add_constants();
              }),
              HasSubstr("target.measured.constants (count): 5002"));
  EXPECT_THAT(fails_with([](auto* t) {
                *t->mutable_measured()->add_constants() = t->measured().constants(0);
              }),
              HasSubstr("target.measured.constants: \"launch\" is given twice"));
  EXPECT_THAT(
      fails_with([](auto* t) { t->mutable_measured()->mutable_constants(0)->set_value(-1); }),
      HasSubstr("target.measured.constants: launch: -1 s; expected"));
  EXPECT_THAT(
      fails_with([](auto* t) { t->mutable_measured()->mutable_constants(0)->set_name("speed"); }),
      HasSubstr("target.measured.constants: \"speed\" is not known"));
  EXPECT_THAT(fails_with([](auto* t) { t->mutable_measured()->set_date("x"); }),
              HasSubstr("target.measured.date: \"x\""));
}

TEST(WireOptions, EveryFieldTravels) {
  // Hints are a message of their own; whose the plan is the service says.
  EXPECT_EQ(FieldCount<PlanOptions>() - 2, WireFieldCount<v1::PlanOptions>());
  EXPECT_EQ(FieldCount<Hints>(), WireFieldCount<v1::Hints>());
  v1::PlanOptions wire;
  v1::Hints hints;
  EncodeOptions(SampleOptions(), &wire, &hints);
  std::vector<std::string> unset = UnsetFields(wire);
  std::erase_if(unset, [](const std::string& field) {
    return field.starts_with("lock.bodies.") || field.starts_with("lock.variants.decisions.");
  });
  EXPECT_THAT(unset, testing::UnorderedElementsAre("rules.rules.force", "rules.rules.forbid",
                                                   "lock.groups.body", "lock.choices.parts.split",
                                                   "lock.choices.turns", "lock.choices.pipelines"));
  EXPECT_EQ(TextOf(hints),
            "memory_pressure: 0.25\ncompute_pressure: 0.75\nbatch_size: 4\nlow_latency: true\n");
  PlanOptions back = DecodeOptions(wire, hints).value();
  EXPECT_EQ(back.fusion, FusionMode::kOpByOp);
  EXPECT_EQ(back.numerics, Numerics::kBitwise);
  EXPECT_EQ(back.dim_bindings, SampleOptions().dim_bindings);
  EXPECT_EQ(back.dim_ranges, SampleOptions().dim_ranges);
  EXPECT_EQ(back.keep_outputs, SampleOptions().keep_outputs);
  EXPECT_EQ(back.shared_buffers, SampleOptions().shared_buffers);
  EXPECT_EQ(back.bound_strides, SampleOptions().bound_strides);
  EXPECT_EQ(KeyText(back.rules), KeyText(SampleOptions().rules));
  EXPECT_TRUE(back.frontier);
  EXPECT_TRUE(back.debug);
  EXPECT_TRUE(back.guard);
  EXPECT_EQ(back.opt_level, 2);
  ASSERT_NE(back.lock, nullptr);
  EXPECT_EQ(DigestOf(*back.lock), DigestOf(SampleLock()));
  EXPECT_EQ(back.hints.memory_pressure, 0.25);
  EXPECT_EQ(back.hints.compute_pressure, 0.75);
  EXPECT_EQ(back.hints.batch_size, 4);
  EXPECT_TRUE(back.hints.low_latency);
}

TEST(WireOptions, AnEmptyRequestMeansTheDefaults) {
  PlanOptions options = DecodeOptions({}, {}).value();
  EXPECT_EQ(options.fusion, FusionMode::kFused);
  EXPECT_EQ(options.numerics, Numerics::kFp32Accumulate);
  EXPECT_FALSE(options.frontier);
  EXPECT_FALSE(options.debug);
  EXPECT_FALSE(options.guard);
  EXPECT_EQ(options.opt_level, 0);
  EXPECT_EQ(options.lock, nullptr);
  EXPECT_EQ(FromWire(v1::PLAN_MODE_UNSPECIFIED).value(), PlanMode::kCompile);
}

TEST(WireOptions, HostileFieldsAreNamed) {
  v1::Hints hints;
  hints.set_memory_pressure(NAN);
  EXPECT_THAT(std::string(Message(DecodeOptions({}, hints).status())),
              HasSubstr("hints.memory_pressure: nan; expected 0..1"));
  hints.Clear();
  hints.set_batch_size(-1);
  EXPECT_FALSE(DecodeOptions({}, hints).ok());
  v1::PlanOptions wire;
  (*wire.mutable_dim_bindings())["s"] = -4;
  EXPECT_THAT(std::string(Message(DecodeOptions(wire, {}).status())),
              HasSubstr("options.dim_bindings[\"s\"]: -4"));
  wire.Clear();
  wire.set_fusion(static_cast<v1::FusionMode>(99));
  EXPECT_THAT(std::string(Message(DecodeOptions(wire, {}).status())),
              HasSubstr("options.fusion: unknown value 99; expected 1..2"));
  wire.Clear();
  wire.set_opt_level(4);
  EXPECT_THAT(std::string(Message(DecodeOptions(wire, {}).status())),
              HasSubstr("options.opt_level: 4; expected 0..3"));
  wire.Clear();
  wire.mutable_rules()->add_rules()->set_name("r");
  EXPECT_THAT(std::string(Message(DecodeOptions(wire, {}).status())),
              HasSubstr("options.rules: rules[0] \"r\": action: missing"));
  wire.Clear();
  EncodeOptions(SampleOptions(), &wire, &hints);
  hints.Clear();
  wire.mutable_lock()->mutable_groups(0)->set_choice(7);
  absl::Status lock = DecodeOptions(wire, hints).status();
  EXPECT_TRUE(absl::IsInvalidArgument(lock)) << lock;
  EXPECT_THAT(std::string(Message(lock)), HasSubstr("lock.groups[0].choice: 7; expected 0..3"));
}

TEST(WireScalars, EnumsRoundTripAndUnknownNumbersFail) {
  for (int i = 0; i < kDTypeCount; ++i) {
    auto type = static_cast<DType>(i);
    EXPECT_EQ(FromWire(ToWire(type)).value(), type);
  }
  EXPECT_EQ(ToWire(DType::kF32), v1::DATA_TYPE_F32);
  EXPECT_EQ(ToWire(DType::kBF16), v1::DATA_TYPE_BF16);
  for (PlanMode mode : {PlanMode::kCompile, PlanMode::kPlanOnly, PlanMode::kByDeadline}) {
    EXPECT_EQ(FromWire(ToWire(mode)).value(), mode);
  }
  for (KernelState s : {KernelState::kPending, KernelState::kReady, KernelState::kFailed}) {
    EXPECT_EQ(FromWire(ToWire(s)).value(), s);
  }
  for (GroupKind kind : {GroupKind::kInner, GroupKind::kCrossOperator, GroupKind::kPipeline,
                         GroupKind::kAllInOne, GroupKind::kPrepare}) {
    EXPECT_EQ(FromWire(ToWire(kind)).value(), kind);
  }
  for (Space space : {Space::kInput, Space::kOutput, Space::kWeight, Space::kConstant,
                      Space::kPrepared, Space::kArena}) {
    EXPECT_EQ(FromWire(ToWire(space)).value(), space);
  }
  EXPECT_FALSE(FromWire(v1::DATA_TYPE_UNSPECIFIED).ok());
  EXPECT_FALSE(FromWire(static_cast<v1::DataType>(kDTypeCount + 1)).ok());
  EXPECT_FALSE(FromWire(static_cast<v1::KernelState>(-1)).ok());
}

TEST(WireScalars, Utf8IsChecked) {
  for (const char* good : {"", "abc", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80"}) {
    EXPECT_TRUE(IsUtf8(good)) << good;
  }
  for (const char* bad : {"\xff", "\xc3", "\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80",
                          "\xf4\x90\x80\x80", "\xf8\x88\x80\x80\x80", "a\x80"}) {
    EXPECT_FALSE(IsUtf8(bad));
  }
  EXPECT_EQ(TextToWire("a\xff\xc3\xa9"), "a???");
}

}  // namespace
}  // namespace fusion
