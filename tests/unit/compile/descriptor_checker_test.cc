#include "core/compile/descriptor_checker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fusion {
namespace {

TEST(DescriptorChecker, AKernelForABetterMachineIsNotLoaded) {
  DescriptorChecker checker(Isa::kAvx2);
  CompileJob job;
  job.isa = Isa::kAvx512;
  CheckReport report = checker.Check(job, "/nowhere/kernel.so").value();
  EXPECT_FALSE(report.verified);
  EXPECT_EQ(report.reason, "needs avx512, this machine has avx2");
}

TEST(DescriptorChecker, WhatCannotBeLoadedIsAnError) {
  DescriptorChecker checker(Isa::kAvx2);
  absl::Status status = checker.Check(CompileJob(), "/nowhere/kernel.so").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(Message(status)), testing::HasSubstr("loading the kernel: /nowhere"));
}

}  // namespace
}  // namespace fusion
