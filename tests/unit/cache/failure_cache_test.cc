#include "core/cache/memory/failure_cache.h"

#include <gtest/gtest.h>

#include "tests/support/fake_clock.h"

namespace fusion {
namespace {

using std::chrono::seconds;

TEST(FailureCache, RemembersTheReasonForAWhile) {
  FakeClock clock;
  FailureCache failures(10, clock);
  Digest key = Sha256("kernel");
  EXPECT_FALSE(failures.Find(key).has_value());
  failures.Remember(key, {Internal("does not compile")}, seconds(60));
  clock.Advance(seconds(59));
  EXPECT_EQ(failures.Find(key)->why, Internal("does not compile"));
  clock.Advance(seconds(1));
  EXPECT_FALSE(failures.Find(key).has_value());
  EXPECT_EQ(failures.size(), 0);
}

TEST(FailureCache, ForgetsWhatItIsToldTo) {
  FakeClock clock;
  FailureCache failures(10, clock);
  for (const char* key : {"a", "b", "c"}) {
    failures.Remember(Sha256(key), {Internal("does not compile")}, seconds(60));
  }
  EXPECT_TRUE(failures.Forget(Sha256("a")));
  EXPECT_FALSE(failures.Forget(Sha256("a")));
  EXPECT_FALSE(failures.Find(Sha256("a")).has_value());
  EXPECT_EQ(failures.ForgetAll(), 2);
  EXPECT_FALSE(failures.Find(Sha256("b")).has_value());
  failures.Remember(Sha256("b"), {Internal("again")}, seconds(60));
  EXPECT_EQ(failures.size(), 1);
}

TEST(FailureCache, IsBounded) {
  FakeClock clock;
  FailureCache failures(3, clock);
  for (int i = 0; i < 10; ++i) failures.Remember(Sha256(StrCat(i)), {Internal("x")}, seconds(60));
  EXPECT_EQ(failures.size(), 3);
  EXPECT_FALSE(failures.Find(Sha256("6")).has_value());
  EXPECT_TRUE(failures.Find(Sha256("7")).has_value());
}

}  // namespace
}  // namespace fusion
