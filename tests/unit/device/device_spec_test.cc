#include "core/device/device_spec.h"

#include <gtest/gtest.h>

namespace fusion {
namespace {

TEST(DeviceSpec, BuiltInSpecsParseAndCoverEveryIsa) {
  auto specs = BuiltInSpecs();
  ASSERT_TRUE(specs.ok()) << specs.status();
  for (Isa isa : kIsas) {
    Target target{.isa = std::string(IsaName(isa)), .threads = 3};
    std::string warning;
    auto spec = ResolveTarget(*specs, target, &warning);
    ASSERT_TRUE(spec.ok()) << spec.status();
    EXPECT_EQ(spec->isa, isa);
    EXPECT_EQ(spec->threads, 3);
    EXPECT_FALSE(warning.empty());
    EXPECT_GT(spec->OnChipBytes(), 0);
    EXPECT_EQ(spec->SharedLevel().name, "l3");
  }
}

TEST(DeviceSpec, TheTargetKnowsItsCachesBetter) {
  auto specs = BuiltInSpecs();
  ASSERT_TRUE(specs.ok());
  Target target{.vendor = "GenuineIntel",
                .family = 6,
                .model = 85,
                .isa = "avx512",
                .l2_bytes = 2 << 20,
                .threads = 2};
  auto spec = ResolveTarget(*specs, target, nullptr);
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->name, "intel-skylake-server");
  EXPECT_EQ(spec->level("l2").bytes, 2 << 20);
  Target other = target;
  other.l2_bytes = 1 << 20;
  EXPECT_NE(spec->KeyText(), ResolveTarget(*specs, other, nullptr)->KeyText());
}

TEST(DeviceSpec, TheSharedLevelIsTheNearestOne) {
  DeviceSpec device;
  device.levels = {{.name = "l1"}, {.name = "l2", .shared = true}, {.name = "l3", .shared = true}};
  EXPECT_EQ(device.SharedLevel().name, "l2");
  device.levels = {{.name = "l1"}, {.name = "memory"}};
  EXPECT_EQ(device.SharedLevel().name, "memory");
}

TEST(DeviceSpec, UnknownTargetsAreNamed) {
  auto specs = BuiltInSpecs();
  ASSERT_TRUE(specs.ok());
  auto isa = ResolveTarget(*specs, {.isa = "avx1024"}, nullptr);
  EXPECT_EQ(Message(isa.status()),
            "ISA \"avx1024\" is not supported; supported: x86-64-v2, avx2, avx512");
  EXPECT_EQ(ResolveTarget(*specs, {.name = "nope"}, nullptr).status().code(),
            absl::StatusCode::kUnimplemented);
  EXPECT_EQ(ResolveTarget(*specs, {}, nullptr).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(
      ResolveTarget(*specs, {.name = "generic-avx512", .isa = "avx2"}, nullptr).status().code(),
      absl::StatusCode::kInvalidArgument);
}

TEST(DeviceSpec, NumbersOutOfRangeAreTold) {
  auto specs = BuiltInSpecs();
  ASSERT_TRUE(specs.ok());
  auto wrong = [&](const Target& target) {
    return std::string(Message(ResolveTarget(*specs, target, nullptr).status()));
  };
  EXPECT_EQ(wrong({.isa = "avx2", .threads = 4097}), "target.threads: 4097; expected 0..4096");
  EXPECT_EQ(wrong({.isa = "avx2", .l2_bytes = -5}), "target: a cache of -5 bytes");
}

TEST(DeviceSpec, BrokenFilesNameTheField) {
  EXPECT_EQ(Message(ParseDeviceSpec("{", "x.json").status()), "device spec x.json: not JSON");
  EXPECT_EQ(Message(ParseDeviceSpec("{}", "x.json").status()),
            "device spec x.json: field \"name\" is missing");
}

}  // namespace
}  // namespace fusion
