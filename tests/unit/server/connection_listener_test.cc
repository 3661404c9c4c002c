#include "server/transport/connection_listener.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdio>
#include <thread>

#include "core/base/files/file.h"
#include "server/transport/socket_hooks.h"

namespace fusion {
namespace {

/// A caller over IPv4.
class Caller {
 public:
  explicit Caller(int port) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<uint16_t>(port));
    auto* any = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(connect(fd_.get(), any, sizeof(address)), 0);
    socklen_t length = sizeof(address);
    EXPECT_EQ(getsockname(fd_.get(), any, &length), 0);
    name_ = StrCat("127.0.0.1:", ntohs(address.sin_port));
  }
  void Send(size_t bytes) {
    const std::string data(bytes, 'x');
    EXPECT_EQ(send(fd_.get(), data.data(), bytes, 0), static_cast<ssize_t>(bytes));
  }
  bool IsHungUpOn() const {
    pollfd polled = {fd_.get(), POLLIN, 0};
    return poll(&polled, 1, /*timeout=*/5000) == 1;
  }
  bool IsLeftAlone() const {
    pollfd polled = {fd_.get(), POLLIN, 0};
    return poll(&polled, 1, /*timeout=*/100) == 0;
  }
  // As the server sees it.
  const std::string& name() const { return name_; }

 private:
  UniqueFd fd_;
  std::string name_;
};

class ConnectionListenerTest : public testing::Test {
 protected:
  // False if this machine has no such addresses.
  bool Listen(const std::string& address) {
    auto listener = ConnectionListener::Open({address}, /*limit=*/100);
    if (!listener.ok()) return false;
    listener_ = *std::move(listener);
    listener_->Start([this](size_t /*address*/, int /*listener*/, UniqueFd connection) {
      MutexLock lock(&mutex_);
      taken_.push_back(std::move(connection));
    });
    const std::string& real = listener_->addresses()[0];
    if (!real.starts_with("unix:")) port_ = std::stoi(real.substr(real.rfind(':') + 1));
    return true;
  }
  std::unique_ptr<Caller> Call() {
    auto caller = std::make_unique<Caller>(port_);
    EXPECT_TRUE(AwaitTaken(++callers_));
    return caller;
  }
  // Until so many connections were handed on, for some seconds at most.
  bool AwaitTaken(size_t count) {
    for (int i = 0; i < 5000; ++i) {
      {
        MutexLock lock(&mutex_);
        if (taken_.size() >= count) return true;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return false;
  }
  // The next look at who sent most, which may be before all has come.
  std::optional<ConnectionListener::Closed> CloseHeaviest(
      int64_t bytes, const ConnectionListener::BytesByPeer& known = {}) {
    for (int i = 0; i < 500; ++i) {
      auto closed = listener_->CloseHeaviest(bytes, known);
      if (closed.has_value()) return closed;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return std::nullopt;
  }

  Mutex mutex_;
  std::vector<UniqueFd> taken_ ABSL_GUARDED_BY(mutex_);
  size_t callers_ = 0;
  int port_ = 0;
  std::unique_ptr<ConnectionListener> listener_;
};

TEST_F(ConnectionListenerTest, WhoSentMostForNothingIsHungUpOn) {
  ASSERT_TRUE(Listen("127.0.0.1:0"));
  auto honest = Call(), attacker = Call(), idle = Call();
  honest->Send(60'000);
  attacker->Send(30'000);
  auto closed = CloseHeaviest(20'000, {{honest->name(), 60'000}});
  ASSERT_TRUE(closed.has_value());
  EXPECT_EQ(closed->peer, attacker->name());
  EXPECT_EQ(closed->bytes, 30'000);
  EXPECT_TRUE(attacker->IsHungUpOn());
  EXPECT_TRUE(honest->IsLeftAlone());
  EXPECT_TRUE(idle->IsLeftAlone());
  // Who is hung up on is not looked at again, though gRPC has not let go of it.
  EXPECT_FALSE(listener_->CloseHeaviest(20'000, {{honest->name(), 60'000}}).has_value());
  closed = CloseHeaviest(20'000);
  ASSERT_TRUE(closed.has_value());
  EXPECT_EQ(closed->peer, honest->name());
}

TEST_F(ConnectionListenerTest, WhoSentMostOverASocketFileIsHungUpOnAndNobodyElse) {
  const TempDir dir = TempDir::Create(testing::TempDir(), "listen-").value();
  ASSERT_TRUE(Listen(StrCat("unix:", dir.path(), "/s")));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::snprintf(address.sun_path, sizeof(address.sun_path), "%s/s", dir.path().c_str());
  std::vector<UniqueFd> callers;
  for (size_t i = 0; i < 3; ++i) {
    callers.emplace_back(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(connect(callers[i].get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    ASSERT_TRUE(AwaitTaken(i + 1));
  }
  std::string data(30'000, 'x');
  for (size_t i : {0, 1}) {
    data.resize(i == 0 ? 10'000 : 30'000);
    ASSERT_EQ(send(callers[i].get(), data.data(), data.size(), 0),
              static_cast<ssize_t>(data.size()));
    MutexLock lock(&mutex_);
    iovec room = {data.data(), data.size()};
    msghdr message{};
    message.msg_iov = &room;
    message.msg_iovlen = 1;
    // As gRPC reads.
    ASSERT_EQ(recvmsg(taken_[i].get(), &message, 0), static_cast<ssize_t>(data.size()));
  }
  EXPECT_FALSE(listener_->CloseHeaviest(30'001).has_value());
  auto closed = listener_->CloseHeaviest(20'000);
  ASSERT_TRUE(closed.has_value());
  const std::string who = StrCat("unix:uid=", geteuid(), ",pid=", getpid(), ",connection=");
  EXPECT_EQ(closed->peer, who + "2");
  EXPECT_EQ(closed->bytes, 30'000);
  auto hung_up_on = [&callers](size_t i, int timeout) {
    pollfd polled = {callers[i].get(), POLLIN, 0};
    return poll(&polled, 1, timeout) == 1;
  };
  EXPECT_TRUE(hung_up_on(1, /*timeout=*/5000));
  EXPECT_FALSE(hung_up_on(0, /*timeout=*/100));
  EXPECT_FALSE(hung_up_on(2, /*timeout=*/100));
  EXPECT_TRUE(listener_->Close(who + "3")) << "by name";
  EXPECT_TRUE(hung_up_on(2, /*timeout=*/5000));
  // A later connection is not charged with what came over an earlier one that had its number.
  EXPECT_TRUE(listener_->Close(who + "1"));
  {
    MutexLock lock(&mutex_);
    taken_.clear();
  }
  callers.emplace_back(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(connect(callers[3].get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  ASSERT_TRUE(AwaitTaken(1));
  EXPECT_FALSE(listener_->CloseHeaviest(1).has_value());
}

TEST_F(ConnectionListenerTest, GrpcIsToldTheNameOfACallerOfASocketFile) {
  int pair[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
  const UniqueFd one(pair[0]), other(pair[1]);
  auto name_of = [](const UniqueFd& fd) {
    sockaddr_un address{};
    socklen_t length = sizeof(address);
    EXPECT_EQ(getpeername(fd.get(), reinterpret_cast<sockaddr*>(&address), &length), 0);
    EXPECT_EQ(address.sun_family, AF_UNIX);
    return std::string(address.sun_path);
  };
  {
    const PeerNameOverride named(one.get(), "uid=0,pid=1,connection=2");
    EXPECT_EQ(name_of(one), "uid=0,pid=1,connection=2");
    EXPECT_EQ(name_of(other), "");
    std::thread([&] { EXPECT_EQ(name_of(one), "") << "another thread"; }).join();
  }
  EXPECT_EQ(name_of(one), "");
}

TEST_F(ConnectionListenerTest, WhoIsGoneDoesNotStandForOthers) {
  ASSERT_TRUE(Listen("127.0.0.1:0"));
  auto other = Call(), gone = Call();
  other->Send(30'000);
  {
    // gRPC has closed its connection, and another file has its number.
    MutexLock lock(&mutex_);
    ASSERT_GE(dup3(taken_[0].get(), taken_[1].get(), O_CLOEXEC), 0);
  }
  auto closed = CloseHeaviest(20'000);
  ASSERT_TRUE(closed.has_value());
  EXPECT_EQ(closed->peer, other->name());
  EXPECT_TRUE(other->IsHungUpOn());
  EXPECT_FALSE(listener_->Close(gone->name()));
}

TEST_F(ConnectionListenerTest, HangsUpWithoutAFurtherFileDescriptor) {
  ASSERT_TRUE(Listen("127.0.0.1:0"));
  auto caller = Call();
  rlimit usual{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &usual), 0);
  rlimit few = usual;
  few.rlim_cur = 64;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  std::vector<UniqueFd> rest;
  do {
    rest.emplace_back(fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0));
  } while (rest.back().valid());
  const bool closed = listener_->Close(caller->name());
  rest.clear();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &usual), 0);
  EXPECT_TRUE(closed);
  EXPECT_TRUE(caller->IsHungUpOn());
}

TEST_F(ConnectionListenerTest, AnIpv4CallerOfASocketForBothIsNamedAsSuch) {
  if (!Listen("[::]:0")) GTEST_SKIP() << "no IPv6 on this machine";
  auto caller = Call();
  EXPECT_TRUE(listener_->Close(caller->name()));
  EXPECT_TRUE(caller->IsHungUpOn());
}

}  // namespace
}  // namespace fusion
