#include "core/learn/race_timings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/cache/memory/memory_records.h"
#include "core/cache/memory/memory_store.h"
#include "tests/support/fake_clock.h"

namespace fusion {
namespace {

using testing::ElementsAre;
using testing::SizeIs;

class RaceTimingsTest : public testing::Test {
 protected:
  static KernelTimings Timed(const std::string& target) {
    KernelTimings out{.device = {target, "avx512", 2},
                      .kernel = Sha256("kernel"),
                      .machine = "this machine",
                      .model_name = "mlp",
                      .bound = "memory",
                      .form = "product",
                      .terms = {.product_type = "f32", .product_us = 5, .launch_us = 1}};
    out.times.samples_us = {4, 5, 6};
    out.times.calls = 3;
    return out;
  }
  // A machine that has a spec of its own.
  static Target Host() {
    const std::vector<DeviceSpec> specs = BuiltInSpecs().value();
    for (const DeviceSpec& spec : specs) {
      const bool named = !spec.vendor.empty() && !spec.models.empty();
      if (!named || spec.kind != "CPU" || VectorLevel(spec.isa) != Isa::kAvx512) continue;
      return {.vendor = spec.vendor, .family = spec.family, .model = spec.models.at(0)};
    }
    return {};
  }
  static std::string HostSpec() {
    Target host = Host();
    host.isa = "avx512";
    std::string name = ResolveTarget(BuiltInSpecs().value(), host, nullptr)->name;
    EXPECT_NE(name, "generic-avx512");
    return name;
  }

  FakeClock clock_;
  MemoryStore store_{int64_t{64} << 20, Logger::Silent()};
  MemoryMeasurements measurements_;
  MemoryTimings timings_;
  LatencyBook book_{store_, measurements_, timings_, clock_};
  RaceTimings races_{book_, BuiltInSpecs().value(), Host(), clock_};
};

TEST_F(RaceTimingsTest, CountAsWhatTheServerItselfMeasured) {
  races_.Add(Timed(HostSpec()));
  races_.Add(Timed(HostSpec()));
  const std::vector<Digest> keys = timings_.Keys();
  ASSERT_THAT(keys, SizeIs(1));
  const KernelTimings stored = timings_.Get(keys[0]).value();
  EXPECT_EQ(stored.tenant, "");
  EXPECT_EQ(stored.machine, "this machine");
  EXPECT_EQ(stored.form, "product");
  EXPECT_EQ(stored.times.calls, 6);
  EXPECT_THAT(stored.times.samples_us, ElementsAre(4, 5, 6, 4, 5, 6));
  const std::vector<DeviceAccuracy> seen =
      book_.Accuracy("any tenant", CancelToken(), [] { return absl::OkStatus(); }).value();
  ASSERT_THAT(seen, SizeIs(1));
  EXPECT_EQ(seen[0].device.target, HostSpec());
  EXPECT_EQ(seen[0].kernels, 1);
}

TEST_F(RaceTimingsTest, OfOtherTargetsNothingIsKept) {
  races_.Add(Timed("generic-avx512"));
  races_.Add(Timed("no such target"));
  EXPECT_THAT(timings_.Keys(), SizeIs(0));
}

TEST_F(RaceTimingsTest, AMachineWithoutASpecIsTheGenericOne) {
  RaceTimings races(book_, BuiltInSpecs().value(), Target{.vendor = "nobody's"}, clock_);
  races.Add(Timed(HostSpec()));
  EXPECT_THAT(timings_.Keys(), SizeIs(0));
  races.Add(Timed("generic-avx512"));
  EXPECT_THAT(timings_.Keys(), SizeIs(1));
}

}  // namespace
}  // namespace fusion
