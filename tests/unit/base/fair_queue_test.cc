#include "core/base/threads/fair_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace fusion {
namespace {

using testing::ElementsAre;

using Queue = FairQueue<std::string>;

std::string PopAndEnd(Queue* queue) {
  std::optional<Queue::Taken> taken = queue->Pop();
  if (!taken.has_value()) return "";
  queue->Done(taken->owner);
  return taken->item;
}

std::vector<std::string> Drain(Queue* queue) {
  std::vector<std::string> out;
  while (queue->size() > 0) out.push_back(PopAndEnd(queue));
  return out;
}

TEST(FairQueue, OfOneOwnerIsFirstInFirstOut) {
  Queue queue;
  for (const char* item : {"1", "2", "3"}) queue.Push({}, item);
  EXPECT_THAT(Drain(&queue), ElementsAre("1", "2", "3"));
  EXPECT_EQ(queue.Pop(), std::nullopt);
}

TEST(FairQueue, TenantsTakeTurnsHoweverManyOneHas) {
  Queue queue;
  for (const char* item : {"a1", "a2", "a3", "a4"}) queue.Push({"a"}, item);
  queue.Push({"b"}, "b1");
  queue.Push({"b"}, "b2");
  EXPECT_THAT(Drain(&queue), ElementsAre("a1", "b1", "a2", "b2", "a3", "a4"));
}

TEST(FairQueue, WhoHasLessUnderWayComesFirst) {
  Queue queue;
  for (const char* item : {"a1", "a2", "a3"}) queue.Push({"a"}, item);
  EXPECT_EQ(queue.Pop()->item, "a1");
  EXPECT_EQ(queue.Pop()->item, "a2");
  queue.Push({"b"}, "b1");
  queue.Push({"b"}, "b2");
  EXPECT_EQ(queue.Pop()->item, "b1") << "a has two under way";
  EXPECT_EQ(queue.Pop()->item, "b2") << "a has two under way, b one";
  EXPECT_EQ(queue.Pop()->item, "a3");
}

TEST(FairQueue, BackgroundWorkWaitsForWorkThatIsWaitedFor) {
  Queue queue;
  queue.Push({"a", /*background=*/true}, "later");
  queue.Push({"b"}, "now");
  queue.Push({"a"}, "now too");
  EXPECT_THAT(Drain(&queue), ElementsAre("now too", "now", "later"));
}

TEST(FairQueue, BackgroundWorkNeverStarves) {
  Queue queue;
  queue.Push({"a", /*background=*/true}, "later");
  for (int i = 0; i < 3 * Queue::kBackgroundTurn; ++i) queue.Push({"b"}, "now");
  int before = 0;
  while (PopAndEnd(&queue) == "now") ++before;
  EXPECT_EQ(before, Queue::kBackgroundTurn - 1);
}

auto Anything() {
  return [](const std::string&) { return true; };
}

TEST(FairQueue, TheLongestQueueGivesWay) {
  Queue queue;
  for (const char* item : {"a1", "a2", "a3"}) queue.Push({"a"}, item);
  queue.Push({"b"}, "b1");
  EXPECT_EQ(queue.Displace({"b"}, Anything())->item, "a3") << "the newest of the longest";
  queue.Push({"b"}, "b2");
  EXPECT_EQ(queue.Displace({"b"}, Anything()), std::nullopt) << "b would have more than a";
  EXPECT_EQ(queue.Displace({"a"}, Anything()), std::nullopt) << "nobody has more than a would have";
  EXPECT_EQ(queue.Displace({"c"}, Anything())->item, "a2");
  EXPECT_THAT(Drain(&queue), ElementsAre("a1", "b1", "b2"));
}

TEST(FairQueue, BackgroundWorkGivesWayToWorkOfItsOwnTenant) {
  Queue queue;
  queue.Push({"a", /*background=*/true}, "later");
  EXPECT_EQ(queue.Displace({"a", /*background=*/true}, Anything()), std::nullopt);
  EXPECT_EQ(queue.Displace({"a"}, Anything())->item, "later");
  EXPECT_EQ(queue.size(), 0);
  EXPECT_EQ(queue.Displace({"a"}, Anything()), std::nullopt) << "there is nothing";
}

TEST(FairQueue, BackgroundWorkPutsOutNothingThatIsWaitedFor) {
  Queue queue;
  for (const char* item : {"a1", "a2", "a3"}) queue.Push({"a"}, item);
  EXPECT_EQ(queue.Displace({"b", /*background=*/true}, Anything()), std::nullopt);
  for (const char* item : {"c1", "c2"}) queue.Push({"c", /*background=*/true}, item);
  EXPECT_EQ(queue.Displace({"b", /*background=*/true}, Anything())->item, "c2");
  EXPECT_EQ(queue.Displace({"d"}, Anything())->item, "c1") << "before what is waited for";
  EXPECT_EQ(queue.Displace({"d"}, Anything())->item, "a3");
}

TEST(FairQueue, WhatMayNotGoDoesNotShieldWhatMay) {
  Queue queue;
  for (const char* item : {"a1", "a2", "a stays"}) queue.Push({"a"}, item);
  auto may_go = [](const std::string& item) { return item != "a stays"; };
  EXPECT_EQ(queue.Displace({"b"}, may_go)->item, "a2");
  for (const char* item : {"c stays", "c stays", "c stays", "c stays"}) queue.Push({"c"}, item);
  auto no_c = [](const std::string& item) { return item[0] != 'c'; };
  EXPECT_EQ(queue.Displace({"b"}, no_c)->item, "a stays") << "the next longest, then";
}

TEST(FairQueue, WhatIsGoneIsTakenOutWhoseverItIs) {
  Queue queue;
  queue.Push({"a"}, "x");
  queue.Push({"a"}, "keep");
  queue.Push({"b", /*background=*/true}, "x");
  queue.Push({"c"}, "x");
  EXPECT_EQ(queue.TakeIf([](const std::string& item) { return item == "x"; }).size(), 3);
  EXPECT_THAT(Drain(&queue), ElementsAre("keep"));
}

TEST(FairQueue, KnowsWhatComesBefore) {
  Queue queue;
  EXPECT_EQ(queue.Ahead({"b"}), 0);
  for (const char* item : {"a1", "a2", "a3", "a4"}) queue.Push({"a"}, item);
  EXPECT_EQ(queue.Ahead({"a"}), 4);
  EXPECT_EQ(queue.Ahead({"b"}), 1) << "they take turns";
  queue.Push({"b"}, "b1");
  EXPECT_EQ(queue.Ahead({"b"}), 3) << "a1, b1, a2";
  EXPECT_EQ(queue.Ahead({"c", /*background=*/true}), 5);
  queue.Push({"a", /*background=*/true}, "a5");
  EXPECT_EQ(queue.Ahead({"b"}), 3) << "what is not waited for comes after it";
  EXPECT_EQ(queue.Ahead({"c", /*background=*/true}), 6);
}

TEST(FairQueue, WhoHasTooMuchUnderWayIsLeftOut) {
  Queue queue;
  for (const char* item : {"a1", "a2"}) queue.Push({"a"}, item);
  EXPECT_EQ(queue.Pop(/*below=*/1)->item, "a1");
  EXPECT_EQ(queue.Pop(/*below=*/1), std::nullopt);
  queue.Push({"b", /*background=*/true}, "b1");
  EXPECT_EQ(queue.Pop(/*below=*/1)->item, "b1") << "background work where nothing else may";
  EXPECT_EQ(queue.Pop()->item, "a2");
}

TEST(FairQueue, WhatMayNotGoStays) {
  Queue queue;
  for (const char* item : {"a1", "a2", "a3"}) queue.Push({"a"}, item);
  EXPECT_EQ(queue.Displace({"b"}, [](const std::string&) { return false; }), std::nullopt);
  EXPECT_EQ(queue.size(), 3);
}

}  // namespace
}  // namespace fusion
