#include "server/transport/allowed_hosts.h"

#include <gtest/gtest.h>

namespace fusion {
namespace {

TEST(AllowedHosts, AreAddressesLocalhostTheOwnNameAndWhatIsListed) {
  const AllowedHosts hosts("fusiond.example:9464", {"Metrics.Example", "other"});
  for (const char* host : {"127.0.0.1", "127.0.0.1:9464", "10.1.2.3:80", "[::1]:9464", "[fe80::1]",
                           "localhost", "LocalHost:9464", "localhost.", "fusiond.example",
                           "FUSIOND.example:1", "metrics.example", "other.:9464"}) {
    EXPECT_TRUE(hosts.Allow(host)) << host;
  }
  for (const char* host :
       {"evil.example", "evil.example:9464", "127.0.0.1.evil.example", "localhost.evil.example",
        "xlocalhost", "", ":9464", "[evil.example]", "[::1", "[::1x]:1", "127.0.0.1 evil",
        "metrics.example.evil", "*", "0x7f.1", "localhost\r"}) {
    EXPECT_FALSE(hosts.Allow(host)) << host;
  }
}

TEST(AllowedHosts, AStarAllowsAll) {
  const AllowedHosts hosts("127.0.0.1:0", {"*"});
  EXPECT_TRUE(hosts.Allow("evil.example"));
  EXPECT_TRUE(hosts.Allow(""));
}

}  // namespace
}  // namespace fusion
