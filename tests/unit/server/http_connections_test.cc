#include "server/transport/http_connections.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

#include <cstring>

namespace fusion {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;
using State = HttpConnections::State;

constexpr HttpLimits kLimits = {
    .per_peer = 3, .all = 5, .asking = seconds(5), .answering = seconds(10)};

TEST(HttpConnectionsTest, TheOldestOfAPeerMakesRoomForItsNext) {
  HttpConnections connections(kLimits);
  for (int fd : {10, 11, 12}) {
    EXPECT_FALSE(connections.MakeRoom("a").victim.has_value());
    connections.Add(fd, "a", seconds(0));
  }
  connections.Remove(11);
  connections.Add(11, "a", seconds(0));  // the newest, though its number was there before
  EXPECT_EQ(connections.MakeRoom("a").victim, 10);
  EXPECT_FALSE(connections.MakeRoom("b").victim.has_value()) << "another peer has room";
  connections.Add(20, "a", seconds(0));
  EXPECT_EQ(connections.MakeRoom("a").victim, 12) << "10 counts as closed";
  connections.Remove(10);
  connections.Remove(12);
  EXPECT_EQ(connections.size(), 2);
}

TEST(HttpConnectionsTest, ThePeerWithTheMostMakesRoomForAnother) {
  HttpConnections connections(kLimits);
  for (int fd : {1, 2}) connections.Add(fd, "few", seconds(0));
  for (int fd : {3, 4, 5}) connections.Add(fd, "many", seconds(0));
  EXPECT_EQ(connections.MakeRoom("new").victim, 3);
  connections.Add(6, "new", seconds(0));
  EXPECT_EQ(connections.size(), 5);
}

TEST(HttpConnectionsTest, WhatIsBeingWorkedForIsNotClosed) {
  HttpConnections connections(kLimits);
  for (int fd : {1, 2, 3}) {
    connections.Add(fd, "a", seconds(0));
    connections.SetState(fd, State::kWorking, seconds(1));
  }
  EXPECT_EQ(connections.busy(), 3);
  EXPECT_FALSE(connections.MakeRoom("a").room);
  EXPECT_TRUE(connections.MakeRoom("b").room);
  EXPECT_THAT(connections.TakeLate(seconds(1000)), IsEmpty());
  connections.SetState(2, State::kAnswering, seconds(1000));
  EXPECT_EQ(connections.MakeRoom("a").victim, 2);
}

TEST(HttpConnectionsTest, WhoDoesNotAskOrReadInTimeIsLate) {
  HttpConnections connections(kLimits);
  connections.Add(1, "a", seconds(0));
  connections.Add(2, "a", seconds(3));
  connections.SetState(2, State::kAnswering, seconds(3));
  connections.Add(3, "b", seconds(4));
  EXPECT_THAT(connections.TakeLate(seconds(4)), IsEmpty());
  EXPECT_THAT(connections.TakeLate(seconds(5)), ElementsAre(1));
  EXPECT_THAT(connections.TakeLate(seconds(13)), UnorderedElementsAre(2, 3));
  EXPECT_THAT(connections.TakeLate(seconds(99)), IsEmpty()) << "once each";
  EXPECT_EQ(connections.size(), 0);
}

sockaddr_storage Address(int family, const char* text) {
  sockaddr_storage out{};
  out.ss_family = static_cast<sa_family_t>(family);
  if (family == AF_INET) {
    inet_pton(family, text, &reinterpret_cast<sockaddr_in*>(&out)->sin_addr);
  } else {
    inet_pton(family, text, &reinterpret_cast<sockaddr_in6*>(&out)->sin6_addr);
  }
  return out;
}

TEST(HttpConnectionsTest, APeerIsAnAddressOrANetworkOfOneHost) {
  const std::string one = HttpPeer(Address(AF_INET, "192.0.2.1"));
  EXPECT_NE(one, HttpPeer(Address(AF_INET, "192.0.2.2")));
  EXPECT_EQ(one, HttpPeer(Address(AF_INET6, "::ffff:192.0.2.1")));
  const std::string six = HttpPeer(Address(AF_INET6, "2001:db8:1:2::3"));
  EXPECT_EQ(six, HttpPeer(Address(AF_INET6, "2001:db8:1:2:ffff::4")));
  EXPECT_NE(six, HttpPeer(Address(AF_INET6, "2001:db8:1:3::3")));
}

}  // namespace
}  // namespace fusion
