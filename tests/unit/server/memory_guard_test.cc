#include "server/admission/memory_guard.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <thread>

namespace fusion {
namespace {

constexpr int64_t kLimitBytes = int64_t{64} << 20;

// Memory of this process that is in use.
class Resident {
 public:
  explicit Resident(size_t bytes)
      : bytes_(bytes),
        begin_(mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0)) {}
  ~Resident() { munmap(begin_, bytes_); }
  Resident(const Resident&) = delete;
  Resident& operator=(const Resident&) = delete;

 private:
  const size_t bytes_;
  void* const begin_;
};

class MemoryGuardTest : public testing::Test {
 protected:
  void SetUp() override {
    auto listener = ConnectionListener::Open({"127.0.0.1:0"}, /*limit=*/100);
    ASSERT_TRUE(listener.ok()) << listener.status();
    listener_ = *std::move(listener);
    listener_->Start(
        [this](size_t /*address*/, int /*listener*/, UniqueFd /*connection*/) { ++taken_; });
    guard_ = std::make_unique<MemoryGuard>(
        kLimitBytes,
        MemoryGuard::Reasons{.flooded = [] { return false; },
                             .cached = [this] { return cached_.load(); },
                             .jobs = [this] { return jobs_.load(); },
                             .make_room = [this] { ++rooms_made_; },
                             .requests = [](bool) { return ConnectionListener::BytesByPeer(); }},
        *listener_, Logger::Silent());
  }

  // It looks a hundred times a second.
  static bool Soon(const std::function<bool()>& condition) {
    for (int i = 0; i < 500; ++i) {
      if (condition()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }

  // Whether a new connection is let in.
  bool LetsIn() {
    const int64_t before = taken_;
    const int64_t refused = listener_->refused();
    UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const std::string& address = listener_->addresses()[0];
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    to.sin_port = htons(static_cast<uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
    EXPECT_EQ(connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof(to)), 0);
    while (taken_ == before && listener_->refused() == refused) std::this_thread::yield();
    return taken_ > before;
  }

  std::atomic<int64_t> taken_{0};
  std::atomic<int64_t> cached_{0};
  std::atomic<int64_t> jobs_{0};
  std::atomic<int64_t> rooms_made_{0};
  std::unique_ptr<ConnectionListener> listener_;
  std::unique_ptr<MemoryGuard> guard_;
};

TEST_F(MemoryGuardTest, LetsNobodyInWhileMuchMoreIsInUseThanUsual) {
  EXPECT_TRUE(LetsIn());
  {
    const Resident more(8 * kLimitBytes);
    EXPECT_TRUE(Soon([&] { return !LetsIn(); }));
  }
  EXPECT_TRUE(Soon([&] { return LetsIn(); }));
}

TEST_F(MemoryGuardTest, WhatJobsHoldIsNoReasonNorWhatTheyHeldLately) {
  std::vector<std::unique_ptr<Resident>> held;
  for (int i = 0; i < 32; ++i) {
    held.push_back(std::make_unique<Resident>(kLimitBytes / 4));
    jobs_ += kLimitBytes / 4;
    EXPECT_TRUE(LetsIn()) << i;
    std::this_thread::sleep_for(std::chrono::milliseconds(40));
  }
  // The allocator gives it back later.
  jobs_ = 0;
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(LetsIn()) << i;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

TEST_F(MemoryGuardTest, CachesMakeRoomWhileJobsHoldMuch) {
  jobs_ = kLimitBytes / 4;
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(rooms_made_, 0);
  jobs_ = kLimitBytes / 4 + 1;
  EXPECT_TRUE(Soon([&] { return rooms_made_ == 1; })) << "at once";
  EXPECT_TRUE(Soon([&] { return rooms_made_ == 2; })) << "and again a second later";
  jobs_ = 0;
  EXPECT_TRUE(LetsIn());
}

TEST_F(MemoryGuardTest, CachesThatFillAreNoReason) {
  // As fast as caches are: their growth is looked at once a second.
  std::vector<std::unique_ptr<Resident>> entries;
  for (int i = 0; i < 6; ++i) {
    entries.push_back(std::make_unique<Resident>(kLimitBytes / 2));
    cached_ += kLimitBytes / 2;
    std::this_thread::sleep_for(std::chrono::milliseconds(1100));
    EXPECT_TRUE(LetsIn()) << i;
  }
}

}  // namespace
}  // namespace fusion
