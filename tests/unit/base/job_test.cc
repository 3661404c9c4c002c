#include "core/base/threads/job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <thread>
#include <vector>

#include "core/base/threads/retry_after.h"
#include "tests/support/fake_clock.h"

namespace fusion {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int64_t kMiB = int64_t{1} << 20;

// Holds so many bytes, a block at a time.
absl::Status Hold(int64_t bytes, int64_t block = 4096) {
  std::vector<std::unique_ptr<char[]>> held;
  for (int64_t i = 0; i < bytes; i += block) {
    held.push_back(std::make_unique<char[]>(static_cast<size_t>(block)));
    Job::Step();
  }
  return absl::OkStatus();
}

TEST(Job, GivesWhatTheWorkGives) {
  Job job("planning", {}, nullptr, "", nullptr);
  EXPECT_EQ(*job.Do([]() -> absl::StatusOr<int> { return 7; }), 7);
  EXPECT_EQ(job.Do([] { return InvalidArgument("no"); }), InvalidArgument("no"));
  EXPECT_EQ(Job::Current(), nullptr);
}

TEST(Job, ChargesWhatItsThreadTakes) {
  Job job("planning", {}, nullptr, "", nullptr);
  ASSERT_TRUE(job.Do([] { return Hold(3 * kMiB); }).ok());
  EXPECT_GE(job.most_bytes(), 3 * kMiB);
  EXPECT_LT(job.most_bytes(), 4 * kMiB);
  EXPECT_GE(job.steps(), 768);
  // What is free again is not held.
  ASSERT_TRUE(job.Do([] {
                   for (int i = 0; i < 20; ++i) RETURN_IF_ERROR(Hold(kMiB));
                   return absl::OkStatus();
                 })
                  .ok());
  EXPECT_LT(job.most_bytes(), 4 * kMiB);
}

TEST(Job, EndsWhereItTakesTooMuchMemoryAndSaysAtWhichNode) {
  Job job("planning", {.bytes = 4 * kMiB}, nullptr, "", nullptr);
  const absl::Status over = job.Do([] {
    const AtNode outer("attention", "MatMul");
    { const AtNode inner("done", "Add"); }
    return Hold(100 * kMiB);
  });
  EXPECT_EQ(over.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(over.message()),
              AllOf(HasSubstr("planning at node \"attention\" (MatMul)"), HasSubstr("4.00 MiB"),
                    HasSubstr("--planning-bytes")));
  EXPECT_FALSE(RetryAfterOf(over).has_value());
  EXPECT_LT(job.most_bytes(), 5 * kMiB);
}

TEST(Job, RefusesABlockThatNoMemoryWouldHold) {
  Job job("planning", {}, nullptr, "", nullptr);
  for (const size_t size : {size_t{1} << 40, std::numeric_limits<size_t>::max() / 2}) {
    const absl::Status over = job.Do([&] {
      std::vector<char> block;
      block.reserve(size);
      return absl::OkStatus();
    });
    EXPECT_EQ(over.code(), absl::StatusCode::kResourceExhausted) << size;
  }
}

TEST(Job, ANodeOfACanonicalGraphIsNamedByItsPosition) {
  Job job("planning", {.bytes = kMiB}, nullptr, "", nullptr);
  const absl::Status over = job.Do([] {
    const AtNode at(17, "CumSum");
    return Hold(2 * kMiB);
  });
  EXPECT_THAT(std::string(over.message()), HasSubstr("node \"\" (CumSum)"));
  EXPECT_EQ(*over.GetPayload(kFailedNode), "17");
}

TEST(Job, EndsAfterItsSteps) {
  Job job("import", {.steps = 1000}, nullptr, "", nullptr);
  int64_t passes = 0;
  const absl::Status over = job.Do([&] {
    for (;; ++passes) Job::Step();
    return absl::OkStatus();
  });
  EXPECT_EQ(over.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(passes, 1000);
  EXPECT_THAT(std::string(over.message()), HasSubstr("1000 steps"));
}

TEST(Job, EndsWithItsCancelToken) {
  FakeClock clock;
  CancelToken cancel(clock, std::chrono::seconds(5));
  Job job("planning", {}, nullptr, "", &cancel);
  const absl::Status over = job.Do([&] {
    for (int i = 0;; ++i) {
      if (i == 10'000) clock.Advance(std::chrono::seconds(6));
      std::vector<int> made(10);
      Job::Step();
      EXPECT_LT(i, 20'000);
    }
    return absl::OkStatus();
  });
  EXPECT_EQ(over.code(), absl::StatusCode::kDeadlineExceeded);
}

TEST(Job, DestructorsMayAllocateOnceItIsOver) {
  struct Writes {
    ~Writes() { std::vector<char> last(1000); }
  };
  Job job("planning", {.bytes = kMiB}, nullptr, "", nullptr);
  const absl::Status over = job.Do([] {
    const Writes writes;
    return Hold(2 * kMiB);
  });
  EXPECT_EQ(over.code(), absl::StatusCode::kResourceExhausted);
}

TEST(Job, WorkInsideOfAJobIsPartOfIt) {
  Job outer("planning", {.bytes = kMiB}, nullptr, "", nullptr);
  Job inner("import", {.bytes = 100 * kMiB}, nullptr, "", nullptr);
  const absl::Status over = outer.Do([&] { return inner.Do([] { return Hold(2 * kMiB); }); });
  EXPECT_THAT(std::string(over.message()), HasSubstr("planning"));
}

// Holds so much for a job until it is told to let go.
class Holder {
 public:
  Holder(JobMemory* memory, const std::string& owner, int64_t bytes)
      : job_("planning", {.bytes = 100 * kMiB}, memory, owner, nullptr) {
    thread_ = std::thread([this, bytes] {
      status_ = job_.Do([&] {
        std::vector<std::unique_ptr<char[]>> held;
        for (int64_t i = 0; i < bytes; i += 4096) {
          held.push_back(std::make_unique<char[]>(4096));
          Job::Step();
        }
        holds_ = true;
        while (!let_go_) Job::Step();
        return absl::OkStatus();
      });
      holds_ = true;
    });
    while (!holds_) std::this_thread::yield();
  }
  ~Holder() { Join().IgnoreError(); }
  absl::Status Join() {
    let_go_ = true;
    if (thread_.joinable()) thread_.join();
    return status_;
  }
  // Once it has ended by itself.
  absl::Status Await() {
    if (thread_.joinable()) thread_.join();
    return status_;
  }

 private:
  std::atomic<bool> holds_{false}, let_go_{false};
  Job job_;
  absl::Status status_;
  std::thread thread_;
};

TEST(JobMemory, WhoHoldsMostLosesHisLargestJob) {
  JobMemory memory(30 * kMiB);
  Holder large(&memory, "greedy", 9 * kMiB);
  Holder quiet(&memory, "quiet", 6 * kMiB);
  Holder other(&memory, "quiet", 8 * kMiB);
  EXPECT_EQ(memory.ended(), 0);
  Holder late(&memory, "greedy", 8 * kMiB);  // 31 MiB, of which greedy has 17
  const absl::Status over = large.Await();
  EXPECT_EQ(over.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(RetryAfterOf(over).has_value());
  EXPECT_EQ(memory.ended(), 1);
  EXPECT_TRUE(late.Join().ok());
  EXPECT_TRUE(quiet.Join().ok());
  EXPECT_TRUE(other.Join().ok());
}

TEST(JobMemory, ANewcomerIsServedAtTheCostOfTheHeaviest) {
  JobMemory memory(30 * kMiB);
  Holder heavy(&memory, "heavy", 25 * kMiB);
  Holder other(&memory, "other", 10 * kMiB);
  EXPECT_EQ(heavy.Await().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(other.Join().ok());
}

// As a table that an operator makes: without a step of the job.
TEST(JobMemory, ALargeBlockIsToldBeforeItIsTaken) {
  JobMemory memory(30 * kMiB);
  Job large("import", {.bytes = 100 * kMiB}, &memory, "other", nullptr);
  EXPECT_TRUE(large
                  .Do([&] {
                    const std::vector<char> block(static_cast<size_t>(20 * kMiB));
                    EXPECT_GE(memory.used_bytes(), 20 * kMiB);
                    return absl::OkStatus();
                  })
                  .ok());
  Holder holder(&memory, "other", 20 * kMiB);
  const absl::Status over = large.Do([&] {
    const AtNode at("resize", "Resize");
    const std::vector<char> block(static_cast<size_t>(25 * kMiB));
    ADD_FAILURE() << "there was no room for it";
    return absl::OkStatus();
  });
  EXPECT_EQ(over.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(over.message()), HasSubstr("node \"resize\" (Resize)"));
  EXPECT_TRUE(RetryAfterOf(over).has_value()) << over;
  EXPECT_TRUE(holder.Join().ok());
}

TEST(JobMemory, ALargeBlockIsRefusedWhereNobodyWaits) {
  FakeClock clock;
  const CancelToken cancel(clock, std::chrono::seconds(5));
  clock.Advance(std::chrono::seconds(6));
  Job job("import", {}, nullptr, "", &cancel);
  const absl::Status over = job.Do([&] {
    const std::vector<char> block(static_cast<size_t>(2 * kMiB));
    ADD_FAILURE() << "nobody waits for it";
    return absl::OkStatus();
  });
  EXPECT_EQ(over.code(), absl::StatusCode::kDeadlineExceeded);
}

TEST(JobMemory, CountsJobsThatAreThere) {
  JobMemory memory(100 * kMiB);
  {
    Holder holder(&memory, "", 10 * kMiB);
    EXPECT_NEAR(static_cast<double>(memory.used_bytes()), 10.0 * kMiB, 2.0 * kMiB);
    EXPECT_TRUE(holder.Join().ok());
  }
  EXPECT_EQ(memory.used_bytes(), 0);
}

}  // namespace
}  // namespace fusion
