#include "core/base/trace.h"

#include <gtest/gtest.h>

#include <future>

#include "core/base/threads/thread_pool.h"

namespace fusion {
namespace {

TEST(TraceTest, TraceIdsAreThoseOfTheStandard) {
  const std::string id = "4bf92f3577b34da6a3ce929d0e0e4736";
  EXPECT_EQ(TraceIdOf("00-" + id + "-00f067aa0ba902b7-01"), id);
  EXPECT_EQ(TraceIdOf("cc-" + id + "-00f067aa0ba902b7-01-more"), id) << "of a later version";
  for (const std::string& bad :
       {std::string(), std::string("x"), "00-" + id + "-00f067aa0ba902b7-01-more",
        "ff-" + id + "-00f067aa0ba902b7-01", "00-" + std::string(32, '0') + "-00f067aa0ba902b7-01",
        "00-" + std::string(32, 'A') + "-00f067aa0ba902b7-01"}) {
    EXPECT_EQ(TraceIdOf(bad), "") << bad;
  }
}

TEST(TraceTest, ANewTraceIsOfTheStandardAndOfItsOwn) {
  const std::string made = TraceparentOrNew("none");
  EXPECT_EQ(TraceIdOf(made).size(), 32u);
  EXPECT_NE(TraceIdOf(made), TraceIdOf(TraceparentOrNew("none")));
  EXPECT_EQ(TraceparentOrNew(made), made) << "one that is of the standard stays";
}

TEST(TraceTest, ATaskBelongsToTheTraceOfWhoGaveIt) {
  ThreadPool pool("test", 1, 8);
  auto traced = [&pool](const std::string& trace) {
    const ScopedTrace scope(trace);
    std::promise<std::string> seen;
    EXPECT_TRUE(pool.Submit([&seen] { seen.set_value(ScopedTrace::Current()); }).ok());
    return seen.get_future().get();
  };
  EXPECT_EQ(traced("abc"), "abc");
  EXPECT_EQ(traced(""), "");
  EXPECT_EQ(ScopedTrace::Current(), "");
}

}  // namespace
}  // namespace fusion
