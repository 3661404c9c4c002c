#include "server/rpc/progress_queue.h"

#include <gtest/gtest.h>

namespace fusion {
namespace {

PlanProgress Of(const std::string& stage, int done = 0) {
  return {.stage = stage, .elapsed = Nanoseconds(0), .done = done, .total = 1000};
}

TEST(ProgressQueue, OnlyTheLatestNewsOfAStageWait) {
  ProgressQueue queue;
  EXPECT_FALSE(queue.Pop().has_value());
  queue.Push(Of("plan"));
  for (int done = 0; done < 5; ++done) queue.Push(Of("compile", done));
  EXPECT_EQ(queue.Pop()->stage, "plan");
  EXPECT_EQ(queue.Pop()->done, 4);
  EXPECT_FALSE(queue.Pop().has_value());
}

TEST(ProgressQueue, HoldsSoManyAtMostTheNewest) {
  ProgressQueue queue;
  for (int i = 0; i < 1000; ++i) queue.Push(Of(StrCat("stage ", i)));
  size_t waiting = 0;
  std::string last;
  while (std::optional<PlanProgress> progress = queue.Pop()) {
    last = progress->stage;
    ++waiting;
  }
  EXPECT_EQ(waiting, ProgressQueue::kMost);
  EXPECT_EQ(last, "stage 999");
}

}  // namespace
}  // namespace fusion
