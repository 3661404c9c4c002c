#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string_view>
#include <thread>

#include "core/cache/memory/memory_store.h"
#include "core/pipeline/plan_fusion.h"
#include "tests/support/capturing_logger.h"
#include "tests/support/fake_clock.h"
#include "tests/support/fake_toolchain.h"
#include "tests/support/fake_worker.h"

namespace fusion {

/// A pipeline with fake compilers; `decide_` says how each kernel fares.
class FusionPipelineTest : public testing::Test {
 protected:
  FusionPipelineTest()
      : toolchain_(Toolchain::Open(FakeToolchainOptions(), tools_).value()),
        store_(int64_t{64} << 20, logger_),
        workers_({.workers = 2}, toolchain_,
                 std::make_unique<FakeStarter>(
                     [this](const CompileJob& job) {
                       ++compiled_;
                       while (gate_closed_) std::this_thread::yield();
                       return decide_ ? decide_(job) : FakeAct::kCompile;
                     },
                     &talk_),
                 logger_, worker_clock_),
        pipeline_({}, BuiltInSpecs().value(), toolchain_, store_, workers_, logger_) {}

  ~FusionPipelineTest() override {
    gate_closed_ = false;
    workers_.Stop(std::chrono::seconds(30));
  }

  static PlanRequest Request(std::string_view model) {
    PlanRequest request;
    request.source.onnx_model = model;
    request.target.isa = "avx2";
    return request;
  }

  absl::StatusOr<PlanReply> Send(const PlanRequest& request) {
    return pipeline_.PlanFusion(request, patient_);
  }
  PlanReply Ask(const PlanRequest& request) {
    absl::StatusOr<PlanReply> reply = Send(request);
    EXPECT_TRUE(reply.ok()) << reply.status();
    return reply.ok() ? *std::move(reply) : PlanReply{};
  }

  CancelToken patient_;
  std::atomic<int> compiled_{0};
  std::atomic<bool> gate_closed_{false};
  std::function<FakeAct(const CompileJob&)> decide_;
  CapturingLogger logger_;
  FakeTools tools_;
  FakeClock worker_clock_;
  FakeTalk talk_;
  Toolchain toolchain_;
  MemoryStore store_;
  WorkerPool workers_;
  FusionPipeline pipeline_;
};

}  // namespace fusion
