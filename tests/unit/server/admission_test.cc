#include "server/admission.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <optional>
#include <thread>

namespace fusion {
namespace {

using testing::HasSubstr;

TEST(AdmissionTest, LetsInAsManyAsThreadsAndQueueHold) {
  Admission admission({.threads = 1, .queue = 2, .inflight_bytes = 1000});
  std::vector<Admission::Pass> passes;
  for (int i = 0; i < 3; ++i) {
    absl::StatusOr<Admission::Pass> pass = admission.Enter(10);
    ASSERT_TRUE(pass.ok()) << pass.status();
    passes.push_back(*std::move(pass));
  }
  EXPECT_EQ(admission.calls(), 3);
  EXPECT_EQ(admission.bytes(), 30);
  absl::Status refused = admission.Enter(10).status();
  EXPECT_TRUE(absl::IsResourceExhausted(refused));
  EXPECT_THAT(std::string(Message(refused)), HasSubstr("3 calls are under way"));
  EXPECT_EQ(admission.rejected_calls(), 1);
  passes.pop_back();
  EXPECT_TRUE(admission.Enter(10).ok()) << "there is room again";
  EXPECT_EQ(admission.calls(), 2) << "and the pass was given back at once";
}

TEST(AdmissionTest, BoundsBytesButNotASingleRequest) {
  Admission admission({.threads = 4, .queue = 4, .inflight_bytes = 100});
  absl::StatusOr<Admission::Pass> large = admission.Enter(500);
  ASSERT_TRUE(large.ok()) << "alone it may exceed the limit";
  EXPECT_TRUE(absl::IsResourceExhausted(admission.Enter(1).status()));
  EXPECT_EQ(admission.rejected_bytes(), 1);
  EXPECT_EQ(admission.calls(), 1);
  EXPECT_EQ(admission.bytes(), 500);
}

TEST(AdmissionTest, ClosedItLetsNobodyInAndKeepsWhoIsInside) {
  Admission admission({.threads = 1, .queue = 0});
  std::optional<absl::StatusOr<Admission::Pass>> pass = admission.Enter(1);
  ASSERT_TRUE(pass->ok());
  admission.Close();
  Admission other({.threads = 1, .queue = 8});
  other.Close();
  EXPECT_TRUE(absl::IsUnavailable(other.Enter(1).status()));
  EXPECT_EQ(other.calls(), 0);
  std::promise<void> ran;
  EXPECT_TRUE(admission.Run([&] { ran.set_value(); }).ok());
  ran.get_future().wait();
  pass.reset();
  EXPECT_EQ(admission.calls(), 0);
}

TEST(AdmissionTest, WhoIsInsideAlwaysFindsRoomInTheQueue) {
  Admission admission({.threads = 1, .queue = 3});
  std::vector<Admission::Pass> passes;
  std::promise<void> open;
  std::shared_future<void> gate = open.get_future().share();
  std::atomic<int> ran{0};
  for (int i = 0; i < 4; ++i) {
    passes.push_back(admission.Enter(1).value());
    ASSERT_TRUE(admission
                    .Run([&, gate] {
                      gate.wait();
                      ++ran;
                    })
                    .ok());
  }
  open.set_value();
  admission.Stop();
  EXPECT_EQ(ran, 4) << "what waits is run";
}

}  // namespace
}  // namespace fusion
