#include "core/device/measured_constants.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "core/base/text/probed_name.h"
#include "core/base/text/text.h"
#include "core/device/device_spec.h"
#include "core/device/measured_file.h"

namespace fusion {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

MeasuredConstants SampleConstants() {
  return {.isa = "avx512",
          .threads = 4,
          .date = "2026-11-30",
          .source = "a test",
          .values = {{"product_rate", 1e11}, {"total_product_rate", 2e11}, {"launch", 3e-6}}};
}

DeviceSpec GenericSpec(int threads, std::optional<MeasuredConstants> measured,
                       std::string_view isa = "avx512") {
  Target target{.isa = std::string(isa), .threads = threads, .measured = std::move(measured)};
  return ResolveTarget(BuiltInSpecs().value(), target, nullptr).value();
}

TEST(MeasuredConstants, TheRateOfAThreadIsThatOfAsManyThreads) {
  EXPECT_DOUBLE_EQ(GenericSpec(1, SampleConstants()).flops_per_s, 1e11);
  EXPECT_DOUBLE_EQ(GenericSpec(4, SampleConstants()).flops_per_s, 0.5e11);
  EXPECT_DOUBLE_EQ(GenericSpec(3, SampleConstants()).flops_per_s, (1 + 0.5 * 2) / 3 * 1e11);
  EXPECT_DOUBLE_EQ(GenericSpec(64, SampleConstants()).flops_per_s, 0.5e11);
}

TEST(MeasuredConstants, WhatWasNotMeasuredIsThatOfTheSpec) {
  const DeviceSpec plain = GenericSpec(4, std::nullopt);
  const DeviceSpec measured = GenericSpec(4, SampleConstants());
  EXPECT_EQ(measured.launch_s, 3e-6);
  EXPECT_EQ(measured.scalar_ops_per_s, plain.scalar_ops_per_s);
  EXPECT_EQ(measured.levels.back().bytes_per_s, plain.levels.back().bytes_per_s);
  EXPECT_EQ(measured.product_efficiency, plain.product_efficiency);
}

TEST(MeasuredConstants, CostsOfSeveralThreadsAreNotThoseOfOne) {
  EXPECT_EQ(GenericSpec(1, SampleConstants()).launch_s, GenericSpec(1, std::nullopt).launch_s);
}

TEST(MeasuredConstants, EveryNameChangesItsConstant) {
  for (const auto& [name, constant] : MeasurableConstants()) {
    MeasuredConstants measured{.isa = "avx512-bf16", .threads = 2, .date = "2026-11-30"};
    const DeviceSpec plain = GenericSpec(2, std::nullopt, measured.isa);
    const std::optional<double> before = ConstantOf(plain, name);
    ASSERT_TRUE(before) << name;
    EXPECT_GE(*before, constant.least) << name;
    EXPECT_LE(*before, constant.most) << name;
    // Both of a pair, which bound each other.
    measured.values[std::string(name)] = *before * 0.5;
    for (std::string other : {std::string(name)}) {
      const size_t total = other.find("total_");
      if (total != std::string::npos) measured.values[other.erase(total, 6)] = *before * 0.5;
    }
    ASSERT_TRUE(CheckMeasured(measured, "m").ok()) << CheckMeasured(measured, "m");
    EXPECT_LT(*ConstantOf(GenericSpec(2, measured, measured.isa), name), *before * 1.0) << name;
  }
}

TEST(MeasuredConstants, AreRatesOfOneLevelOnly) {
  MeasuredConstants measured = SampleConstants();
  measured.values = {{"l3.bandwidth", 5e9}, {"l3.total_bandwidth", 8e9}};
  const DeviceSpec plain = GenericSpec(4, std::nullopt);
  const DeviceSpec spec = GenericSpec(4, measured);
  EXPECT_EQ(spec.level("l3").bytes_per_s, 5e9);
  EXPECT_EQ(spec.level("l3").total_bytes_per_s, 8e9);
  EXPECT_EQ(GenericSpec(1, measured).level("l3").total_bytes_per_s, 5e9);
  for (const char* level : {"l1", "l2", "memory"}) {
    EXPECT_EQ(spec.level(level).total_bytes_per_s, plain.level(level).total_bytes_per_s) << level;
  }
}

TEST(MeasuredConstants, NameTheSpecAndDifferentOnesDiffer) {
  const DeviceSpec plain = GenericSpec(4, std::nullopt);
  const DeviceSpec one = GenericSpec(4, SampleConstants());
  MeasuredConstants more = SampleConstants();
  more.values["launch"] = 4e-6;
  const DeviceSpec two = GenericSpec(4, more);
  EXPECT_THAT(one.name, StartsWith("generic-avx512+probe-20261130-"));
  EXPECT_EQ(ParseProbedName(one.name)->date, "2026-11-30");
  EXPECT_NE(one.name, two.name);
  EXPECT_NE(one.KeyText(), two.KeyText());
  EXPECT_NE(one.KeyText(), plain.KeyText());
  MeasuredConstants other_source = SampleConstants();
  other_source.source = "another one";
  EXPECT_EQ(GenericSpec(4, other_source).KeyText(), one.KeyText());
}

TEST(MeasuredConstants, BelongToOneInstructionSetOfACpu) {
  const std::vector<DeviceSpec> specs = BuiltInSpecs().value();
  Target target{.isa = "avx2", .threads = 4, .measured = SampleConstants()};
  EXPECT_THAT(std::string(Message(ResolveTarget(specs, target, nullptr).status())),
              HasSubstr("target.measured.isa: avx512, the plan is for avx2"));
  target = {.name = "h100", .threads = 0, .measured = SampleConstants()};
  EXPECT_THAT(std::string(Message(ResolveTarget(specs, target, nullptr).status())),
              HasSubstr("target.measured: h100 is no CPU"));
}

TEST(MeasuredConstants, BadOnesAreRefusedByName) {
  auto refusal = [](const std::function<void(MeasuredConstants*)>& damage) {
    MeasuredConstants measured = SampleConstants();
    damage(&measured);
    return std::string(Message(CheckMeasured(measured, "m")));
  };
  EXPECT_EQ(refusal([](auto*) {}), "");
  EXPECT_THAT(refusal([](auto* m) { m->values["speed"] = 1e10; }),
              HasSubstr("m.constants: \"speed\" is not known; known: barrier, bf16.product_rate"));
  EXPECT_THAT(refusal([](auto* m) { m->values["launch"] = -1; }),
              HasSubstr("m.constants: launch: -1 s; expected 1e-09..0.01"));
  const double not_a_number = std::nan("");
  const double infinite = std::numeric_limits<double>::infinity();
  for (double bad : {0.0, 1e-30, 1.0, not_a_number, infinite}) {
    EXPECT_THAT(refusal([bad](auto* m) { m->values["launch"] = bad; }), HasSubstr("launch"));
  }
  EXPECT_THAT(refusal([](auto* m) { m->values["product_rate"] = 1e15; }), HasSubstr("flop/s"));
  EXPECT_THAT(refusal([](auto* m) { m->values.clear(); }), HasSubstr("m.constants: none"));
  EXPECT_THAT(refusal([](auto* m) { m->isa = "neon"; }), HasSubstr("m.isa: ISA \"neon\""));
  EXPECT_THAT(refusal([](auto* m) { m->threads = 0; }), HasSubstr("m.threads: 0; expected 1"));
  EXPECT_THAT(refusal([](auto* m) { m->date = "yesterday"; }), HasSubstr("expected YYYY-MM-DD"));
  EXPECT_THAT(refusal([](auto* m) { m->date = "2026-13-01"; }), HasSubstr("m.date"));
  EXPECT_THAT(refusal([](auto* m) { m->source.assign(257, 'x'); }), HasSubstr("m.source: 257"));
}

TEST(MeasuredFile, IsReadBack) {
  EXPECT_EQ(ParseMeasuredFile(MeasuredFileText(SampleConstants()), "f").value(), SampleConstants());
  EXPECT_THAT(MeasuredFileText(SampleConstants()),
              HasSubstr("\"source\": \"measured by a test, on 2026-11-30\""));
}

TEST(MeasuredFile, BadOnesNameFileAndField) {
  const std::string good = MeasuredFileText(SampleConstants());
  auto refusal = [&good](const std::string& from, const std::string& to) {
    std::string text = good;
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    return std::string(Message(ParseMeasuredFile(text, "f.json").status()));
  };
  EXPECT_EQ(refusal("{", "["), "\"f.json\": not JSON");
  EXPECT_THAT(refusal("\"fusion_device_constants\": 1", "\"fusion_device_constants\": 2"),
              HasSubstr("field \"fusion_device_constants\": expected 1"));
  EXPECT_THAT(refusal("\"isa\"", "\"size\""), HasSubstr("field \"size\" is not known"));
  EXPECT_THAT(refusal("\"threads\": 4", "\"threads\": 4.5"),
              HasSubstr("field \"threads\": expected an integer"));
  EXPECT_THAT(refusal("\"threads\": 4", "\"threads\": 99999999999"), HasSubstr("threads"));
  EXPECT_THAT(refusal("\"unit\": \"s\"", "\"unit\": \"us\""),
              HasSubstr("\"launch\": expected {\"value\": number, \"unit\": \"s\""));
  EXPECT_THAT(refusal("\"value\": 3e-06", "\"value\": \"fast\""), HasSubstr("\"launch\""));
  EXPECT_THAT(refusal("\"value\": 3e-06", "\"value\": 3"), HasSubstr("launch: 3 s; expected"));
  EXPECT_THAT(refusal("\"launch\"", "\"lunch\""), HasSubstr("\"lunch\" is not known"));
  EXPECT_THAT(std::string(Message(ParseMeasuredFile("3", "f").status())),
              HasSubstr("expected a JSON object"));
  EXPECT_FALSE(ParseMeasuredFile(std::string(100'000, '['), "f").ok());
  EXPECT_FALSE(ParseMeasuredFile(std::string(60'000, '['), "f").ok());
}

}  // namespace
}  // namespace fusion
