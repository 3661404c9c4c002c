#include "core/base/parse/host_port.h"

#include <gtest/gtest.h>

namespace fusion {
namespace {

TEST(HostPort, IsTakenApart) {
  EXPECT_EQ(ParseHostPort("127.0.0.1:80")->host, "127.0.0.1");
  EXPECT_EQ(ParseHostPort("127.0.0.1:80")->port, 80);
  EXPECT_EQ(ParseHostPort("[::1]:0")->host, "::1");
  EXPECT_EQ(ParseHostPort("name.example:65535")->port, 65535);
  for (const char* bad :
       {"", ":", "80", ":80", "host:", "host:65536", "host:-1", "host:8x", "::1:80", "host:80 "}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseHostPort(bad).status())) << bad;
  }
}

TEST(HostPort, NamesOfHosts) {
  for (const char* name : {"a", "fusiond.example", "a_b-c.d1"}) EXPECT_TRUE(IsHostName(name));
  for (const char* name : {"", "a:80", "http://a", "a b", "*", "*.example", "a/", "\xff"}) {
    EXPECT_FALSE(IsHostName(name)) << name;
  }
  EXPECT_FALSE(IsHostName(std::string(254, 'a')));
}

TEST(HostPort, IpAddresses) {
  for (const char* ip : {"127.0.0.1", "::1", "fe80::1"}) EXPECT_TRUE(IsIpAddress(ip)) << ip;
  for (const char* no : {"", "1.2.3", "localhost", "[::1]"}) EXPECT_FALSE(IsIpAddress(no)) << no;
}

}  // namespace
}  // namespace fusion
