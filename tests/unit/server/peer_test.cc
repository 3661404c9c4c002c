#include "server/transport/peer.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/files/unique_fd.h"

namespace fusion {
namespace {

TEST(PeerTest, IsCalledAsPeopleWriteAddresses) {
  EXPECT_EQ(PlainPeer("ipv4:127.0.0.1:4711"), "127.0.0.1:4711");
  EXPECT_EQ(PlainPeer("ipv6:%5B::1%5D:4711"), "[::1]:4711");
  EXPECT_EQ(PlainPeer("ipv6:%5Bfe80::1%25eth0%5D:4711"), "[fe80::1%eth0]:4711");
  EXPECT_EQ(PlainPeer("unix:"), "unix:");
  EXPECT_EQ(PlainPeer("unix:/tmp/somebody's name"), "unix:") << "a client may choose it";
  EXPECT_EQ(PlainPeer("unix-abstract:127.0.0.1:4711"), "unix:") << "and this one";
  EXPECT_EQ(PlainPeer("unix:uid=0,pid=4711,connection=17"), "unix:uid=0,pid=4711,connection=17");
  EXPECT_EQ(PlainPeer(""), "");
}

TEST(PeerTest, TheOwnerIsKnownOnUnixSocketsAlone) {
  int pair[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
  const UniqueFd one(pair[0]), other(pair[1]);
  EXPECT_TRUE(IsOwner(one.get()));
  const UniqueFd tcp(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* any = reinterpret_cast<sockaddr*>(&address);
  socklen_t length = sizeof(address);
  ASSERT_EQ(bind(tcp.get(), any, length), 0);
  ASSERT_EQ(listen(tcp.get(), 1), 0);
  ASSERT_EQ(getsockname(tcp.get(), any, &length), 0);
  const UniqueFd client(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(connect(client.get(), any, length), 0);
  const UniqueFd accepted(accept4(tcp.get(), nullptr, nullptr, SOCK_CLOEXEC));
  EXPECT_FALSE(IsOwner(accepted.get())) << "of this very process";
  EXPECT_FALSE(IsOwner(-1));
}

}  // namespace
}  // namespace fusion
