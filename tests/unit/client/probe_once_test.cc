#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "client/detect_target.h"
#include "client/probe/once.h"
#include "core/base/files/file.h"
#include "core/device/host_isa.h"
#include "core/device/measured_file.h"
#include "tests/support/scratch_dir.h"

namespace fusion {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A CPU that no spec is made for. The number of threads tells the tests of this process apart.
Target UnknownCpu(int threads) {
  return {.vendor = "UnknownVendo",
          .family = 99,
          .model = 1,
          .isa = std::string(HostIsaName()),
          .threads = threads};
}

ProbeConsent Consent(const std::string& directory, std::vector<std::string>* warnings = nullptr) {
  ProbeConsent consent{.policy = ProbePolicy::kOnce, .seconds = 0.05, .directory = directory};
  if (warnings != nullptr) {
    consent.warn = [warnings](const std::string& text) { warnings->push_back(text); };
  }
  return consent;
}

TEST(ProbeOnce, NothingIsMeasuredWithoutConsent) {
  ScratchDir dir;
  Target target = UnknownCpu(1);
  AddMeasured({.directory = dir.path()}, &target);
  EXPECT_FALSE(target.measured);
  EXPECT_FALSE(ReadFile(MeasuredPath(dir.path(), target), 1 << 20).ok());
}

TEST(ProbeOnce, NorForACpuThatHasASpec) {
  ScratchDir dir;
  Target target{
      .vendor = "AuthenticAMD", .family = 25, .model = 17, .isa = "avx512-bf16", .threads = 1};
  AddMeasured(Consent(dir.path()), &target);
  EXPECT_FALSE(target.measured);
  target = {.name = "generic-avx2", .threads = 1};
  AddMeasured(Consent(dir.path()), &target);
  EXPECT_FALSE(target.measured);
}

TEST(ProbeOnce, TheResultIsKeptForItsOwner) {
  ScratchDir dir;
  Target target = UnknownCpu(1);
  const std::string directory = dir.path("new/cache");
  AddMeasured(Consent(directory), &target);
  ASSERT_TRUE(target.measured);
  EXPECT_EQ(target.measured->threads, 1);
  const std::string path = MeasuredPath(directory, target);
  EXPECT_EQ(ParseMeasuredFile(ReadFile(path, 1 << 20).value(), path).value(), *target.measured);
  struct stat info = {};
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  Target again = UnknownCpu(1);
  AddMeasured(Consent(directory), &again);
  EXPECT_EQ(again.measured, target.measured) << "measured once";
}

TEST(ProbeOnce, AKeptResultIsUsed) {
  ScratchDir dir;
  Target target = UnknownCpu(2);
  const MeasuredConstants kept{.isa = target.isa,
                               .threads = 2,
                               .date = "2026-01-02",
                               .source = "a test",
                               .values = {{"launch", 1e-6}}};
  ASSERT_TRUE(WriteFile(MeasuredPath(dir.path(), target), MeasuredFileText(kept)).ok());
  AddMeasured(Consent(dir.path()), &target);
  EXPECT_EQ(target.measured, kept);
}

TEST(ProbeOnce, ADamagedOneIsMeasuredAgain) {
  ScratchDir dir;
  Target target = UnknownCpu(1);
  const std::string path = MeasuredPath(dir.path(), target);
  ASSERT_TRUE(WriteFile(path, "{}").ok());
  std::vector<std::string> warnings;
  AddMeasured(Consent(dir.path(), &warnings), &target);
  ASSERT_TRUE(target.measured);
  ASSERT_FALSE(warnings.empty());
  EXPECT_THAT(warnings[0], HasSubstr("measured again: "));
  EXPECT_TRUE(ParseMeasuredFile(ReadFile(path, 1 << 20).value(), path).ok());
}

TEST(ProbeOnce, AFailureIsAWarning) {
  Target target = UnknownCpu(1);
  std::vector<std::string> warnings;
  ProbeConsent consent = Consent("", &warnings);
  consent.seconds = 1000;
  AddMeasured(consent, &target);
  EXPECT_FALSE(target.measured);
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("no constants are measured: seconds: 1000")));
}

}  // namespace
}  // namespace fusion
