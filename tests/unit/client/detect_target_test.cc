#include "client/detect_target.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include "core/device/device_spec.h"
#include "core/device/host_isa.h"
#include "core/wire/options/target.h"
#include "fusion/v1/fusion_service.pb.h"

namespace fusion {
namespace {

TEST(DetectTarget, DescribesThisMachine) {
  Target target = DetectTarget();
  EXPECT_EQ(target.isa, HostIsaName());
  EXPECT_EQ(target.vendor.size(), 12u) << target.vendor;  // "GenuineIntel", "AuthenticAMD"
  EXPECT_GT(target.family, 0);
  EXPECT_GE(target.l1_bytes, int64_t{8} << 10);
  EXPECT_GT(target.l2_bytes, target.l1_bytes);
  EXPECT_TRUE(target.l3_bytes == 0 || target.l3_bytes > target.l1_bytes) << target.l3_bytes;
}

TEST(DetectTarget, CountsTheCoresThisThreadMayUse) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  EXPECT_EQ(DetectTarget().threads, CPU_COUNT(&before));
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++cpu) {
    if (CPU_ISSET(cpu, &before)) CPU_SET(cpu, &one);
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  EXPECT_EQ(DetectTarget().threads, 1);
  ASSERT_EQ(sched_setaffinity(0, sizeof(before), &before), 0);
}

TEST(DeviceName, IsOneLineForPeople) {
  std::string name = DeviceName();
  ASSERT_FALSE(name.empty());
  EXPECT_EQ(name, StripSpace(name));
  EXPECT_EQ(name.find("  "), std::string::npos) << name;
  for (char c : name) EXPECT_TRUE(c >= ' ' && c <= '~') << name;
}

TEST(DetectTarget, TakesTheCallersThreads) { EXPECT_EQ(DetectTarget(7).threads, 7); }

TEST(DetectTarget, IsATargetThatServersAccept) {
  v1::Target wire;
  EncodeTarget(DetectTarget(), &wire);
  absl::StatusOr<Target> decoded = DecodeTarget(wire);
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  absl::StatusOr<std::vector<DeviceSpec>> specs = BuiltInSpecs();
  ASSERT_TRUE(specs.ok()) << specs.status();
  std::string warning;
  absl::StatusOr<DeviceSpec> spec = ResolveTarget(*specs, *decoded, &warning);
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->threads, decoded->threads);
  EXPECT_EQ(spec->level("l2").bytes, decoded->l2_bytes);
}

}  // namespace
}  // namespace fusion
