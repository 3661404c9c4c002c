#include "core/learn/device_models.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "core/benefit/terms.h"
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
    auto out = FitDevices(store_.Keys(), Reader(), plans_, tenant, CancelToken());
    EXPECT_TRUE(out.ok()) << out.status();
    return out.ok() ? *std::move(out) : std::vector<DeviceAccuracy>();
  }
  ReadTimings Reader() {
    return [this](const Digest& key) { return store_.Get(key); };
  }
  static double FactorOf(const DeviceAccuracy& device, const std::string& name) {
    for (const FittedConstant& constant : device.constants) {
      if (constant.name == name) return constant.factor;
    }
    return 0;
  }

  MemoryTimings store_;
  PlansOfDevices plans_;
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
  EXPECT_EQ(device.held_back.timings, 120) << "each is held back once";
  EXPECT_LT(device.held_back.median, 0.03);
  EXPECT_LT(device.held_back.p90, 0.1);
  EXPECT_NEAR(FactorOf(device, "memory"), 2, 0.15);
  EXPECT_NEAR(FactorOf(device, "elements"), 1, 0.1);
  EXPECT_EQ(FactorOf(device, "barrier"), 1);
  EXPECT_THAT(device.classes, SizeIs(4));
  ASSERT_THAT(device.machines, SizeIs(1));
  EXPECT_EQ(device.machines[0].machine, "m");
}

TEST_F(DeviceModelsTest, WholeRunsAreEstimatedWithConstantsOfOtherModels) {
  const CostFactors truth{.memory = 2};
  std::vector<MeasuredPlan>& plans = plans_[{"toy", "avx2", 2}];
  for (int kernel = 0; kernel < 120; ++kernel) {
    const KernelTimings timings = TimingsOf(kernel, truth);
    Put(timings);
    const double us = TimeOf(timings.terms, truth);
    plans.push_back({.launches = {{timings.kernel.ToHex(), timings.form, timings.terms},
                                  {timings.kernel.ToHex(), timings.form, timings.terms}},
                     .measured_us = 2 * us});
  }
  plans.push_back(
      {.launches = {{"of another server", "copy", {.launch_us = 1}}}, .measured_us = 1});
  // Kernels of all models: whatever is held back, the fit has seen some of them.
  MeasuredPlan mixed{.launches = {}, .measured_us = 1000};
  for (size_t i = 0; i < 40; ++i) mixed.launches.push_back(plans[i].launches[0]);
  plans.push_back(mixed);
  const DeviceAccuracy device = Fit().at(0);
  EXPECT_EQ(device.spec_plans.timings, 121) << "those whose kernels were measured";
  EXPECT_EQ(device.held_back_plans.timings, 120);
  EXPECT_GT(device.spec_plans.p90, 0.5);
  EXPECT_LT(device.held_back_plans.median, 0.03);
}

TEST_F(DeviceModelsTest, OfOneModelNothingIsHeldBack) {
  KernelTimings timings = TimingsOf(1, {});
  Put(timings);
  EXPECT_EQ(Fit().at(0).held_back.timings, 0);
  EXPECT_EQ(Fit().at(0).spec.timings, 1);
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
  EXPECT_NEAR(device.machines[0].factor, 1.8, 0.1) << "2, shrunk by 40 kernels of 48";
  EXPECT_NEAR(FactorOf(device, "memory"), 1, 0.1);
}

TEST_F(DeviceModelsTest, AKernelIsNeverJudgedByConstantsThatItsModelTaught) {
  // Of eight models one alone has scatters, which are three times as slow: nothing of the others
  // tells so.
  for (int kernel = 0; kernel < 160; ++kernel) {
    KernelTimings timings = TimingsOf(kernel, {});
    if (kernel % 8 == 3) {
      timings.form = "scatter";
      for (float& us : timings.times.samples_us) us *= 3;
    }
    Put(timings);
  }
  const DeviceAccuracy apart = Fit().at(0);
  EXPECT_GT(apart.held_back.p90, 0.9) << "an eighth of the kernels is three times as slow";
  // Another machine reports one of them under the name of another model: the two are one part now.
  KernelTimings shared = TimingsOf(3, {}, "other machine");
  shared.model_name = "model 0";
  Put(shared);
  EXPECT_GT(Fit().at(0).held_back.p90, 0.9);
}

TEST_F(DeviceModelsTest, TwoModelsAreAlwaysHeldBackFromEachOther) {
  for (int other = 0; other < 20; ++other) {
    MemoryTimings two;
    for (int kernel = 0; kernel < 4; ++kernel) {
      KernelTimings timings = TimingsOf(kernel, {});
      timings.model_name = kernel % 2 == 0 ? "first" : StrCat("other ", other);
      ASSERT_TRUE(two.Put(KeyOf(timings), timings).ok());
    }
    auto out = FitDevices(
        two.Keys(), [&](const Digest& key) { return two.Get(key); }, {}, "t", CancelToken());
    ASSERT_TRUE(out.ok());
    EXPECT_EQ(out->at(0).held_back.timings, 4) << other;
  }
}

TEST_F(DeviceModelsTest, OnlyTheNewestTimingsAreFitted) {
  // Read from nowhere: the numbers are those of the keys.
  const KernelTimings sample = TimingsOf(0, {});
  std::vector<Digest> keys;
  std::map<Digest, int64_t> number;
  const int64_t all = kMaxReadTimings + kMaxFittedTimings + 20;
  for (int64_t i = 0; i < all; ++i) {
    keys.push_back(Sha256(StrCat(i)));
    number[keys.back()] = i;
  }
  auto read = [&](const Digest& key) {
    const int64_t i = number.at(key);
    std::optional<KernelTimings> out = sample;
    out->kernel = key;
    // Of other tenants first, which do not count; then of a device with few timings.
    if (i < kMaxFittedTimings) out->tenant = "somebody else";
    if (i >= kMaxFittedTimings && i < kMaxFittedTimings + 10) out->device.target = "few";
    return out;
  };
  auto devices = FitDevices(keys, read, {}, "t", CancelToken());
  ASSERT_TRUE(devices.ok()) << devices.status();
  ASSERT_THAT(*devices, SizeIs(2));
  EXPECT_EQ(devices->at(0).timings, kMaxFittedTimings);
  EXPECT_FALSE(devices->at(0).complete);
  EXPECT_EQ(devices->at(1).device.target, "few");
  EXPECT_EQ(devices->at(1).timings, 10);
  EXPECT_FALSE(devices->at(1).complete) << "the last ones were not read";
}

TEST_F(DeviceModelsTest, EndsWhenNobodyWaits) {
  Put(TimingsOf(0, {}));
  CancelToken cancel;
  cancel.Cancel();
  EXPECT_TRUE(absl::IsCancelled(FitDevices(store_.Keys(), Reader(), {}, "t", cancel).status()));
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
