// ResilientClient against services in this process: who is asked how often.
#include "client/resilient_client.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "core/wire/error_details.h"
#include "fusion/v1/fusion_service.grpc.pb.h"
#include "tests/support/served_client.h"

namespace fusion {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

class FlakyService : public v1::FusionService::Service {
 public:
  std::function<grpc::Status(int call, v1::PlanFusionResponse*)> plan;
  std::atomic<int> calls{0};

  grpc::Status PlanFusion(grpc::ServerContext*, const v1::PlanFusionRequest*,
                          v1::PlanFusionResponse* response) override {
    return plan(++calls, response);
  }
};

grpc::Status Full(Nanoseconds delay) {
  const std::string details =
      EncodeErrorDetails(WithRetryAfter(ResourceExhausted("the queue is full"), delay));
  return {grpc::StatusCode::RESOURCE_EXHAUSTED, "the queue is full", details};
}

class ResilientClientTest : public ServedClientTest {
 protected:
  static ResilientOptions Quick() {
    ResilientOptions options;
    options.retry = {.attempts = 4, .first_pause = milliseconds(1), .most_pause = milliseconds(2)};
    options.breaker.failures = 0;
    return options;
  }
  absl::Status Fetch(const ResilientOptions& options, std::vector<std::string> more = {}) {
    more.insert(more.begin(), address_);
    client_ = ResilientClient::Create(std::move(more), options).value();
    return client_->FetchBundle(Request()).status();
  }
  FlakyService service_;
  std::shared_ptr<ResilientClient> client_;
  // Of a handler that may outlive the body of its test.
  std::atomic<bool> called_{false};
  std::atomic<bool> released_{false};
};

TEST_F(ResilientClientTest, RetriesAreMadeByOneLayer) {
  service_.plan = [](int, auto*) { return grpc::Status(grpc::StatusCode::UNAVAILABLE, "never"); };
  Serve(&service_);
  ResilientOptions options = Quick();
  options.client.attempts = 5;  // of the channel: means nothing here
  absl::Status status = Fetch(options);
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_EQ(service_.calls, 4);
  EXPECT_EQ(client_->stats().retries, 3);
  EXPECT_EQ(client_->stats().asked, 4);
}

TEST_F(ResilientClientTest, WhatIsNoUseIsNotTriedAgain) {
  service_.plan = [](int, auto*) {
    return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "node 'x' is odd");
  };
  Serve(&service_);
  absl::Status status = Fetch(Quick(), {address_});
  EXPECT_EQ(Message(status), "node 'x' is odd");
  EXPECT_EQ(service_.calls, 1);  // nor elsewhere
}

TEST_F(ResilientClientTest, AFullServiceIsAskedAgainAfterTheDelayItNames) {
  service_.plan = [](int call, auto*) {
    return call == 1 ? Full(milliseconds(300))
                     : grpc::Status(grpc::StatusCode::FAILED_PRECONDITION, "no compiler");
  };
  Serve(&service_);
  const Nanoseconds begin = Clock::Real().Now();
  EXPECT_EQ(Message(Fetch(Quick())), "no compiler");
  EXPECT_GE(Clock::Real().Now() - begin, milliseconds(300));
  EXPECT_EQ(service_.calls, 2);
}

TEST_F(ResilientClientTest, AFullServiceThatNamesNoDelayIsLeftAlone) {
  service_.plan = [](int, auto*) {
    return grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "the queue is full");
  };
  Serve(&service_);
  EXPECT_TRUE(absl::IsResourceExhausted(Fetch(Quick())));
  EXPECT_EQ(service_.calls, 1);
}

TEST_F(ResilientClientTest, ADelayBeyondTheDeadlineIsNotWaitedFor) {
  service_.plan = [](int, auto*) { return Full(std::chrono::hours(1)); };
  Serve(&service_);
  absl::Status status = Fetch(Quick());
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_EQ(RetryAfterOf(status), std::chrono::hours(1));
  EXPECT_EQ(service_.calls, 1);
}

TEST_F(ResilientClientTest, AFullServiceIsLeftAloneWhileOthersAreTried) {
  service_.plan = [](int, auto*) { return Full(seconds(5)); };
  Serve(&service_);
  absl::Status status = Fetch(Quick(), {"unix:/nobody/is/here"});
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_EQ(service_.calls, 1);
  EXPECT_EQ(client_->stats().retries, 3);
  EXPECT_EQ(client_->stats().asked, 5) << "the other one in every round";
  // Nor does another call of this client ask it.
  status = client_->FetchBundle(Request(), seconds(1)).status();
  EXPECT_EQ(service_.calls, 1);
  // One that names no delay is not asked again by the same call.
  service_.plan = [](int, auto*) {
    return grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "the queue is full");
  };
  status = Fetch(Quick(), {"unix:/nobody/is/here"});
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_EQ(service_.calls, 2);
}

TEST_F(ResilientClientTest, TheFirstThatMayBeAskedAgainIs) {
  service_.plan = [](int call, auto*) {
    return call == 1   ? Full(seconds(30))
           : call == 2 ? Full(milliseconds(200))
                       : grpc::Status(grpc::StatusCode::FAILED_PRECONDITION, "no compiler");
  };
  Serve(&service_);
  const Nanoseconds begin = Clock::Real().Now();
  EXPECT_EQ(Message(Fetch(Quick(), {address_})), "no compiler") << "two addresses of one service";
  EXPECT_GE(Clock::Real().Now() - begin, milliseconds(200));
  EXPECT_LT(Clock::Real().Now() - begin, seconds(20));
  EXPECT_EQ(service_.calls, 3);
}

TEST_F(ResilientClientTest, ASlowAnswerIsNoSignOfAnAbsentService) {
  service_.plan = [this](int, auto*) {
    while (!released_) std::this_thread::sleep_for(milliseconds(1));
    return grpc::Status::OK;
  };
  Serve(&service_);
  ResilientOptions options = Quick();
  options.breaker = {.failures = 1, .pause = std::chrono::hours(1)};
  client_ = ResilientClient::Create({address_}, options).value();
  for (Nanoseconds deadline : {milliseconds(5), milliseconds(600), milliseconds(600)}) {
    absl::Status status = client_->FetchBundle(Request(), deadline).status();
    EXPECT_TRUE(absl::IsDeadlineExceeded(status) || absl::IsUnavailable(status)) << status;
    EXPECT_EQ(client_->breakers()[0].phase, BreakerPhase::kClosed) << status;
  }
  EXPECT_EQ(client_->breakers()[0].failures, 0);
  released_ = true;
}

TEST_F(ResilientClientTest, AnOpenCircuitEndsRetries) {
  ResilientOptions options = Quick();
  options.retry.attempts = 100;
  options.breaker = {.failures = 2, .pause = std::chrono::hours(1)};
  absl::Status status = Fetch(options);  // nobody serves
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(Message(status)), AllOf(HasSubstr("circuit open"), HasSubstr(address_)));
  EXPECT_EQ(client_->stats().asked, 2);
  EXPECT_EQ(client_->breakers()[0].phase, BreakerPhase::kOpen);
}

TEST_F(ResilientClientTest, StopEndsACallUnderWayAndPauses) {
  ResilientOptions options = Quick();
  options.retry = {.attempts = 100, .first_pause = std::chrono::hours(1), .jitter = 0};
  options.load_deadline = std::chrono::hours(10);
  service_.plan = [this](int, auto*) {
    called_ = true;
    while (!released_) std::this_thread::sleep_for(milliseconds(1));
    return grpc::Status(grpc::StatusCode::UNAVAILABLE, "late");
  };
  Serve(&service_);
  for (const std::string& address : {address_, std::string("unix:/nobody/is/here")}) {
    auto client = ResilientClient::Create({address}, options).value();
    CallStop stop;
    std::thread stopper([&] {
      while (client->stats().asked == 0) std::this_thread::sleep_for(milliseconds(1));
      if (address == address_) {
        while (!called_) std::this_thread::sleep_for(milliseconds(1));
      }
      stop.Stop();
    });
    absl::Status status = client->FetchBundle(Request(), std::nullopt, &stop).status();
    EXPECT_TRUE(absl::IsCancelled(status)) << status;
    stopper.join();
  }
  released_ = true;
}

TEST_F(ResilientClientTest, RequestsThatCannotBeKeptAreRefused) {
  FusionRequest request = Request();
  request.mode = PlanMode::kPlanOnly;
  auto client = ResilientClient::Create({address_}).value();
  EXPECT_TRUE(absl::IsInvalidArgument(client->FetchBundle(request).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(ResilientClient::Create({"a:1", ""}).status()));
  EXPECT_THAT(SplitAddresses("a:1, unix:/b ,c:2"), testing::ElementsAre("a:1", "unix:/b", "c:2"));
}

TEST_F(ResilientClientTest, WithoutAddressesThereIsOnlyTheCache) {
  auto client = ResilientClient::Create({}).value();
  absl::Status status = client->FetchBundle(Request()).status();
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_EQ(Message(status), "no address of a service is given");
}

}  // namespace
}  // namespace fusion
