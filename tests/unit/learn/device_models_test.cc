#include "core/learn/device_models.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "core/benefit/calibrate/terms.h"
#include "core/cache/memory/memory_records.h"
#include "tests/support/fake_clock.h"

namespace fusion {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

// Kernels of eight models, as a device with other constants than its spec runs them.
class DeviceModelsTest : public testing::Test {
 protected:
  KernelTimings TimingsOf(int kernel, const CostFactors& truth, const std::string& machine = "m",
                          const std::string& tenant = "t") {
    std::mt19937 random(static_cast<uint32_t>(kernel));
    std::uniform_real_distribution<double> ln(-1, 5);
    KernelTimings out{.device = {"toy", "avx2", 2},
                      .kernel = Sha256(StrCat(kernel)),
                      .machine = machine,
                      .tenant = tenant,
                      .model_name = StrCat("model ", kernel % 8),
                      .bound = kernel % 2 == 0 ? "memory" : "elements",
                      .form = kernel % 3 == 0 ? "reduction" : "element-wise",
                      .last_report_unix_ms = kernel};
    out.terms = {.element_us = std::exp(ln(random)),
                 .memory_us = std::exp(ln(random)),
                 .launch_us = 3,
                 .exposed = 0.5};
    const double us = TimeOf(out.terms, truth);
    for (double noise : {0.98, 0.99, 1.0, 1.0, 1.01, 1.02}) {
      out.times.samples_us.push_back(static_cast<float>(us * noise));
    }
    out.times.calls = 6;
    return out;
  }
  void Put(const KernelTimings& timings) { EXPECT_TRUE(store_.Put(KeyOf(timings), timings).ok()); }
  std::vector<DeviceAccuracy> Fit(const std::string& tenant = "t") {
    absl::StatusOr<std::vector<DeviceAccuracy>> out = FitDevices(store_, tenant, CancelToken());
    EXPECT_TRUE(out.ok()) << out.status();
    return out.ok() ? *std::move(out) : std::vector<DeviceAccuracy>();
  }
  static double FactorOf(const DeviceAccuracy& device, const std::string& name) {
    for (const FittedConstant& constant : device.constants) {
      if (constant.name == name) return constant.factor;
    }
    return 0;
  }

  MemoryTimings store_;
};

TEST_F(DeviceModelsTest, ConstantsThatFitAreJudgedOnModelsTheyHaveNotSeen) {
  for (int kernel = 0; kernel < 120; ++kernel) Put(TimingsOf(kernel, {.memory = 2}));
  std::vector<DeviceAccuracy> devices = Fit();
  ASSERT_THAT(devices, SizeIs(1));
  const DeviceAccuracy& device = devices[0];
  EXPECT_EQ(device.device, (TimedDevice{"toy", "avx2", 2}));
  EXPECT_EQ(device.timings, 120);
  EXPECT_EQ(device.kernels, 120);
  EXPECT_EQ(device.models, 8);
  EXPECT_TRUE(device.complete);
  EXPECT_GT(device.spec.p90, 0.5) << "some are bound by memory, which is half as fast";
  EXPECT_EQ(device.held_back.kernels, 120) << "each is held back once";
  EXPECT_LT(device.held_back.median, 0.03);
  EXPECT_LT(device.held_back.p90, 0.1);
  EXPECT_NEAR(FactorOf(device, "memory"), 2, 0.15);
  EXPECT_NEAR(FactorOf(device, "elements"), 1, 0.1);
  EXPECT_EQ(FactorOf(device, "barrier"), 1);
  EXPECT_THAT(device.classes, SizeIs(4));
  ASSERT_THAT(device.machines, SizeIs(1));
  EXPECT_EQ(device.machines[0].machine, "m");
}

TEST_F(DeviceModelsTest, OfOneModelNothingIsHeldBack) {
  KernelTimings timings = TimingsOf(1, {});
  Put(timings);
  EXPECT_EQ(Fit().at(0).held_back.kernels, 0);
  EXPECT_EQ(Fit().at(0).spec.kernels, 1);
}

TEST_F(DeviceModelsTest, TimingsOfOtherTenantsAreAsIfTheyWereNotThere) {
  for (int kernel = 0; kernel < 40; ++kernel) {
    Put(TimingsOf(kernel, {}, "m", "t"));
    Put(TimingsOf(kernel, {.memory = 10}, "m", "mallory"));
    Put(TimingsOf(kernel, {}, "server", ""));
  }
  EXPECT_NEAR(FactorOf(Fit("t").at(0), "memory"), 1, 0.1);
  EXPECT_EQ(Fit("t").at(0).timings, 80) << "those of the server itself count for everybody";
  EXPECT_EQ(Fit("nobody").at(0).timings, 40);
}

TEST_F(DeviceModelsTest, DevicesAreFittedApart) {
  for (int kernel = 0; kernel < 40; ++kernel) {
    Put(TimingsOf(kernel, {.memory = 2}));
    if (kernel % 2 != 0) continue;
    KernelTimings other = TimingsOf(kernel, {});
    other.device.threads = 1;
    Put(other);
  }
  std::vector<DeviceAccuracy> devices = Fit();
  ASSERT_THAT(devices, SizeIs(2));
  EXPECT_EQ(devices[0].device.threads, 2) << "the one of more timings first";
  EXPECT_GT(FactorOf(devices[0], "memory"), 1.5);
  EXPECT_EQ(devices[1].device.threads, 1);
  EXPECT_NEAR(FactorOf(devices[1], "memory"), 1, 0.1);
}

TEST_F(DeviceModelsTest, ASlowMachineIsNamed) {
  for (int kernel = 0; kernel < 40; ++kernel) {
    for (const char* machine : {"a", "b", "slow"}) {
      KernelTimings timings = TimingsOf(kernel, {}, machine);
      for (float& us : timings.times.samples_us) us *= machine == std::string("slow") ? 2.0F : 1.0F;
      Put(timings);
    }
  }
  const DeviceAccuracy device = Fit().at(0);
  ASSERT_THAT(device.machines, SizeIs(3));
  EXPECT_EQ(device.machines[0].machine, "slow");
  EXPECT_NEAR(device.machines[0].factor, 2, 0.1);
  EXPECT_NEAR(FactorOf(device, "memory"), 1, 0.1);
}

TEST_F(DeviceModelsTest, OnlyTheNewestTimingsOfADeviceAreRead) {
  MemoryTimings large(int64_t{1} << 30);
  const KernelTimings sample = TimingsOf(0, {});
  for (int i = 0; i < kMaxFittedTimings + 10; ++i) {
    KernelTimings timings = sample;
    timings.kernel = Sha256(StrCat(i));
    timings.last_report_unix_ms = i;
    if (i < 10) timings.device.target = "old";
    ASSERT_TRUE(large.Put(KeyOf(timings), timings).ok());
  }
  KernelTimings oldest = sample;
  oldest.last_report_unix_ms = -1;
  oldest.kernel = Sha256("oldest");
  ASSERT_TRUE(large.Put(KeyOf(oldest), oldest).ok());
  CancelToken until(Clock::Real(), Clock::Real().Now() + std::chrono::minutes(5));
  absl::StatusOr<std::vector<DeviceAccuracy>> devices = FitDevices(large, "t", until);
  ASSERT_TRUE(devices.ok()) << devices.status();
  ASSERT_THAT(*devices, SizeIs(2));
  EXPECT_EQ(devices->at(0).timings, kMaxFittedTimings);
  EXPECT_FALSE(devices->at(0).complete);
  EXPECT_EQ(devices->at(1).timings, 10);
  EXPECT_TRUE(devices->at(1).complete);
}

TEST_F(DeviceModelsTest, EndsWhenNobodyWaits) {
  Put(TimingsOf(0, {}));
  CancelToken cancel;
  cancel.Cancel();
  EXPECT_TRUE(absl::IsCancelled(FitDevices(store_, "t", cancel).status()));
}

TEST_F(DeviceModelsTest, NothingIsSaidAboutNothing) {
  EXPECT_THAT(Fit(), IsEmpty());
  KernelTimings without = TimingsOf(0, {});
  without.times.samples_us.clear();
  Put(without);
  EXPECT_THAT(Fit(), IsEmpty());
}

}  // namespace
}  // namespace fusion
