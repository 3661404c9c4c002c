#include "core/benefit/calibrate/fit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace fusion {
namespace {

// A device whose true constants are known, and the kernels that it runs.
class SimulatedDevice {
 public:
  explicit SimulatedDevice(CostFactors truth, double noise = 0.03, uint32_t seed = 1)
      : truth_(std::move(truth)), random_(seed), noise_(-noise, noise) {}

  // Kernels of every mixture of terms: some bound by products, some by bytes, some by launches.
  TimingRecord Kernel(int number, const std::string& voter = "a") {
    std::mt19937 of_kernel(static_cast<uint32_t>(number));
    std::uniform_real_distribution<double> ln(-2, 5);
    auto draw = [&] { return std::exp(ln(of_kernel)); };
    TimingRecord out{.voter = voter, .kernel = std::to_string(number)};
    CostTerms& t = out.terms;
    if (number % 2 == 0) {
      t.product_type = number % 4 == 0 ? "f32" : "bf16";
      t.product_us = draw();
    }
    t.element_us = draw();
    t.shared_us = draw();
    t.memory_us = draw();
    t.launch_us = 3;
    t.barrier_us = number % 3 == 0 ? 4 : 0;
    t.task_us = number % 5 == 0 ? 6 : 0.5;
    t.exposed = 0.3;
    out.form = number % 2 == 0 ? "product" : "element-wise";
    out.measured_us = TimeOf(t, truth_) * (1 + noise_(random_));
    return out;
  }
  std::vector<TimingRecord> Kernels(int count, const std::string& voter = "a") {
    std::vector<TimingRecord> out;
    for (int i = 0; i < count; ++i) out.push_back(Kernel(i, voter));
    return out;
  }

 private:
  CostFactors truth_;
  std::mt19937 random_;
  std::uniform_real_distribution<double> noise_;
};

// Median of |ln(expected / true)| over kernels that no fit has seen.
double ErrorOnOthers(const DeviceFit& fit, const CostFactors& truth) {
  SimulatedDevice quiet(truth, 0);
  std::vector<double> errors;
  for (int i = 10'000; i < 10'200; ++i) {
    const TimingRecord r = quiet.Kernel(i);
    errors.push_back(std::abs(std::log(ExpectedUs(r.terms, r.form, fit.factors) / r.measured_us)));
  }
  std::nth_element(errors.begin(), errors.begin() + 100, errors.end());
  return errors[100];
}

TEST(FitDevice, FindsTheConstantsOfADeviceWhoseSpecIsWrongByTwo) {
  const CostFactors truth{.launch = 1.5,
                          .barrier = 0.7,
                          .task = 1.3,
                          .element = 0.5,
                          .shared = 2,
                          .memory = 2,
                          .product = {{"f32", 2}, {"bf16", 0.5}}};
  const DeviceFit fit = FitDevice(SimulatedDevice(truth).Kernels(200));
  EXPECT_NEAR(fit.factors.element, 0.5, 0.05);
  EXPECT_NEAR(fit.factors.memory, 2, 0.2);
  EXPECT_NEAR(fit.factors.ProductOf("f32"), 2, 0.2);
  EXPECT_NEAR(fit.factors.ProductOf("bf16"), 0.5, 0.05);
  EXPECT_GT(fit.error_before, 0.3);
  EXPECT_LT(fit.error_after, 0.03);
  EXPECT_LT(ErrorOnOthers(fit, truth), 0.03);
}

TEST(FitDevice, FollowsFreeLaunchesAndDearOnes) {
  for (double launch : {1.0 / 32, 10.0}) {
    const CostFactors truth{.launch = launch};
    const DeviceFit fit = FitDevice(SimulatedDevice(truth).Kernels(200));
    EXPECT_LT(ErrorOnOthers(fit, truth), 0.03) << launch;
    EXPECT_EQ(fit.factors.launch > 5, launch > 5);
    EXPECT_EQ(fit.factors.launch < 0.5, launch < 0.5);
  }
}

TEST(FitDevice, IsNotMovedByNoiseAlone) {
  const DeviceFit fit = FitDevice(SimulatedDevice({}, 0.3).Kernels(200));
  for (double factor : {fit.factors.launch, fit.factors.element, fit.factors.shared,
                        fit.factors.memory, fit.factors.ProductOf("f32")}) {
    EXPECT_NEAR(factor, 1, 0.2);
  }
  EXPECT_LT(ErrorOnOthers(fit, {}), 0.06);
}

TEST(FitDevice, AFactorThatNoKernelDependsOnStays) {
  std::vector<TimingRecord> records = SimulatedDevice({.memory = 2}).Kernels(100);
  for (TimingRecord& r : records) {
    const double before = TimeOf(r.terms, {.memory = 2});
    r.terms.barrier_us = 0;
    r.measured_us *= TimeOf(r.terms, {.memory = 2}) / before;
  }
  EXPECT_DOUBLE_EQ(FitDevice(records).factors.barrier, 1);
}

TEST(FitDevice, OneRecordMovesLittle) {
  SimulatedDevice device({.memory = 8});
  const DeviceFit fit = FitDevice({device.Kernel(1)});
  EXPECT_LT(fit.factors.memory, 2);
  EXPECT_EQ(fit.kernels, 1);
}

TEST(FitDevice, AQuarterOfLiesMovesNothingMuch) {
  const CostFactors truth{.memory = 2};
  std::vector<TimingRecord> records = SimulatedDevice(truth).Kernels(200);
  for (size_t i = 0; i < records.size(); ++i) {
    if (i % 4 == i / 4 % 4) records[i].measured_us *= 100;  // in every kind of kernel
  }
  EXPECT_LT(ErrorOnOthers(FitDevice(records), truth), 0.1);
}

TEST(FitDevice, AVoterHasOneVoteHoweverManyRecordsItSends) {
  SimulatedDevice honest({});
  SimulatedDevice liar({.element = 8, .memory = 8}, 0.03, 2);
  std::vector<TimingRecord> records;
  for (const char* voter : {"a", "b", "c"}) {
    for (TimingRecord& r : honest.Kernels(60, voter)) records.push_back(std::move(r));
  }
  for (int times = 0; times < 50; ++times) {
    for (TimingRecord& r : liar.Kernels(60, "liar")) records.push_back(std::move(r));
  }
  const DeviceFit fit = FitDevice(records);
  EXPECT_NEAR(fit.factors.memory, 1, 0.15);
  EXPECT_LT(ErrorOnOthers(fit, {}), 0.05);
}

TEST(FitDevice, AVoterWithManyKernelsOfItsOwnDoesNotMakeTheResidualOfTheirClass) {
  SimulatedDevice device({});
  std::vector<TimingRecord> records;
  for (const char* voter : {"a", "b", "c"}) {
    for (TimingRecord& r : device.Kernels(60, voter)) records.push_back(std::move(r));
  }
  for (int i = 1000; i < 1200; ++i) {
    TimingRecord own = device.Kernel(i, "liar");
    if (own.form != "product") continue;
    own.measured_us *= 3;
    records.push_back(std::move(own));
  }
  const DeviceFit fit = FitDevice(records);
  EXPECT_NEAR(fit.factors.ClassOf({"products", "product"}), 1, 0.1);
  EXPECT_NEAR(fit.factors.ClassOf({"memory", "product"}), 1, 0.1);
  EXPECT_NEAR(fit.factors.ProductOf("f32"), 1, 0.15);
}

TEST(FitDevice, MachinesThatShareNoKernelAreNotToldApart) {
  // One runs products only, the other what waits for memory: the device has two wrong constants.
  const CostFactors truth{.memory = 1.6, .product = {{"f32", 0.6}}};
  SimulatedDevice device(truth);
  std::vector<TimingRecord> records;
  for (int i = 0; i < 200; ++i) {
    TimingRecord r = device.Kernel(i, "products");
    const bool products = i % 4 == 0;
    CostTerms& t = r.terms;
    (products ? t.memory_us : t.product_us) = 0;
    if (!products) r.voter = "memory";
    r.measured_us = TimeOf(t, truth);
    records.push_back(std::move(r));
  }
  const DeviceFit fit = FitDevice(records);
  EXPECT_EQ(fit.machines.at("products"), 1);
  EXPECT_EQ(fit.machines.at("memory"), 1);
  EXPECT_NEAR(fit.factors.memory, 1.6, 0.15);
  EXPECT_NEAR(fit.factors.ProductOf("f32"), 0.6, 0.08);
}

TEST(FitDevice, OfTwoMachinesEachIsAsFarFromTheMiddle) {
  SimulatedDevice device({}, 0);
  std::vector<TimingRecord> records = device.Kernels(80, "a");
  for (TimingRecord& r : device.Kernels(80, "b")) {
    r.measured_us *= 2;
    records.push_back(std::move(r));
  }
  const DeviceFit fit = FitDevice(records);
  EXPECT_NEAR(fit.machines.at("a") * fit.machines.at("b"), 1, 1e-9);
  EXPECT_NEAR(fit.machines.at("b") / fit.machines.at("a"), 2, 0.15);
}

TEST(FitDevice, AMachineThatIsSlowAsAWholeIsToldApartFromSlowKernels) {
  SimulatedDevice device({});
  std::vector<TimingRecord> records;
  for (const char* voter : {"a", "b", "throttled"}) {
    for (TimingRecord& r : device.Kernels(80, voter)) {
      if (r.voter == "throttled") r.measured_us *= 1.7;
      records.push_back(std::move(r));
    }
  }
  const DeviceFit fit = FitDevice(records);
  const double shrunk = 80 / (80 + FitOptions().shrinkage);
  EXPECT_NEAR(std::log(fit.machines.at("throttled")), std::log(1.7) * shrunk, 0.05);
  EXPECT_NEAR(fit.machines.at("a"), 1, 0.05);
  EXPECT_LT(ErrorOnOthers(fit, {}), 0.03);
}

TEST(FitDevice, AClassThatIsWrongGetsAResidual) {
  std::vector<TimingRecord> records = SimulatedDevice({}).Kernels(200);
  int64_t odd = 0;
  for (TimingRecord& r : records) {
    if (std::stoi(r.kernel) % 10 != 3) continue;
    r.form = "scatter";
    r.terms.element_us = 1000;
    r.measured_us = 1.5 * TimeOf(r.terms, {});
    ++odd;
  }
  const DeviceFit fit = FitDevice(records);
  const Residual& scatter = fit.residuals.at({"elements", "scatter"});
  EXPECT_EQ(scatter.kernels, odd);
  EXPECT_EQ(scatter.voters, 1);
  const auto n = static_cast<double>(odd);
  EXPECT_NEAR(std::log(scatter.factor), std::log(1.5) * n / (n + FitOptions().shrinkage), 0.05);
  EXPECT_NEAR(fit.factors.ClassOf({"memory", "element-wise"}), 1, 0.05);
  EXPECT_EQ(fit.factors.ClassOf({"never", "seen"}), 1);
}

TEST(FitDevice, AResidualIsClamped) {
  std::vector<TimingRecord> records = SimulatedDevice({}).Kernels(400);
  for (TimingRecord& r : records) {
    if (std::stoi(r.kernel) % 4 != 3) continue;
    r.form = "odd";
    r.measured_us *= 50;
  }
  const DeviceFit fit = FitDevice(records);
  EXPECT_EQ(fit.factors.ClassOf({"memory", "odd"}), kMostResidual);
}

TEST(FitDevice, TheOrderOfTheRecordsDoesNotMatter) {
  std::vector<TimingRecord> records = SimulatedDevice({.memory = 3}, 0.2).Kernels(100, "b");
  for (TimingRecord& r : SimulatedDevice({.memory = 2}, 0.2).Kernels(50, "a")) records.push_back(r);
  const DeviceFit fit = FitDevice(records);
  std::mt19937 random(3);
  for (int i = 0; i < 3; ++i) {
    std::shuffle(records.begin(), records.end(), random);
    EXPECT_EQ(FitDevice(records), fit);
  }
}

TEST(FitDevice, BadTimesAreLeftOut) {
  std::vector<TimingRecord> records = SimulatedDevice({}).Kernels(20);
  const DeviceFit clean = FitDevice(records);
  for (double bad : {0.0, -1.0, std::nan(""), HUGE_VAL}) {
    TimingRecord r = records[0];
    r.measured_us = bad;
    records.push_back(r);
  }
  TimingRecord endless = records[0];
  endless.terms.product_us = endless.terms.element_us = 1.5e308;
  records.push_back(endless);
  DeviceFit fit = FitDevice(records);
  fit.records = clean.records;
  EXPECT_EQ(fit, clean);
  EXPECT_EQ(FitDevice({}).factors, CostFactors());
}

}  // namespace
}  // namespace fusion
