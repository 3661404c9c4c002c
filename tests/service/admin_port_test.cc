// The admin port of a real fusiond beside peers that are slow or hostile.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include "tests/service/server_fixture.h"
#include "tests/support/test_model.h"

namespace fusion {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class AdminPortTest : public ServerTest {
 protected:
  const std::string& admin() const { return daemon_->admin_address(); }
  HttpAnswer Ask(const std::string& path, const std::string& header) const {
    return HttpAsk(admin(),
                   StrCat("GET ", path, " HTTP/1.1\r\nHost: localhost\r\n", header, "\r\n\r\n"));
  }
};

TEST_F(AdminPortTest, HealthIsAnsweredBesideHundredsOfSlowConnections) {
  Start();
  std::vector<UniqueFd> slow;
  std::vector<bool> trickles;
  const auto hold = [&](int kind) {
    slow.push_back(HttpConnect(admin()));
    // Nothing, a beginning, or a request whose answer nobody reads.
    if (kind == 1) HttpSend(slow.back(), "GET /metr");
    if (kind == 2) HttpSend(slow.back(), "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
    trickles.push_back(kind == 1);
  };
  for (int i = 0; i < 300; ++i) hold(i % 3);
  for (int round = 0; round < 100; ++round) {
    EXPECT_EQ(HttpGet(admin(), "/healthz").body, "ok\n") << round;
    EXPECT_EQ(HttpGet(admin(), "/readyz").body, "ready\n") << round;
    // A byte on each, and new ones for those that were closed.
    for (size_t i = 0; i < slow.size(); ++i) {
      if (!trickles[i] || HttpSend(slow[i], "x")) continue;
      slow[i] = HttpConnect(admin());
      HttpSend(slow[i], "GET /");
    }
  }
  slow.clear();
  EXPECT_TRUE(Eventually([&] { return Metric("fusion_admin_connections") == 1; }));
  EXPECT_GT(Metric("fusion_admin_connections_closed_total{reason=\"crowded\"}"), 0);
}

TEST_F(AdminPortTest, TheOverviewLeadsToEveryPageAndHeadIsAnswered) {
  Start();
  const std::string index = HttpGet(admin(), "/").body;
  const std::regex link("href=\"(/[^\"]*)\"");
  int pages = 0;
  for (std::sregex_iterator at(index.begin(), index.end(), link), end; at != end; ++at, ++pages) {
    const std::string path = (*at)[1];
    EXPECT_EQ(HttpGet(admin(), path).code, 200) << path;
    const HttpAnswer head =
        HttpAsk(admin(), StrCat("HEAD ", path, " HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    EXPECT_EQ(head.code, 200) << path;
    EXPECT_THAT(head.headers, AllOf(HasSubstr("Content-Length: "), HasSubstr("Content-Type: ")))
        << path;
    EXPECT_EQ(head.body, "") << path;
  }
  // Seven for people, four for programs, and this one again.
  EXPECT_EQ(pages, 12);
  EXPECT_EQ(HttpGet(admin(), "/compile_log/abc").code, 400);
  EXPECT_EQ(HttpGet(admin(), StrCat("/compile_log/", std::string(64, '0'))).code, 404);
}

TEST_F(AdminPortTest, OnlyNamesOfThisServerAreAnswered) {
  Start({"--admin-host", "fusiond.example", "--admin-host", "metrics"});
  auto code = [this](const std::string& host, const std::string& path) {
    return HttpAsk(admin(), StrCat("GET ", path, " HTTP/1.1\r\nHost: ", host, "\r\n\r\n")).code;
  };
  for (const char* path : {"/", "/healthz", "/readyz", "/metrics", "/statusz"}) {
    EXPECT_EQ(code("evil.example", path), 421) << path << ", as after DNS rebinding";
    EXPECT_EQ(code("fusiond.example:9464", path), 200) << path;
    EXPECT_EQ(code(admin(), path), 200) << path;
  }
  const HttpAnswer refused = HttpAsk(admin(), "GET /statusz HTTP/1.1\r\nHost: evil\r\n\r\n");
  EXPECT_THAT(refused.body, HasSubstr("--admin-host"));
  EXPECT_EQ(HttpAsk(admin(), "GET /healthz HTTP/1.0\r\n\r\n").code, 200);
  EXPECT_EQ(Status()["config"]["admin-host"], nlohmann::json({"fusiond.example", "metrics"}));
}

TEST_F(AdminPortTest, MetricsArePackedForClientsThatTakeGzip) {
  Start();
  const HttpAnswer plain = Ask("/metrics", "Accept: */*");
  EXPECT_THAT(plain.headers,
              AllOf(HasSubstr("Vary: Accept-Encoding"), Not(HasSubstr("Content-Encoding"))));
  const HttpAnswer packed = Ask("/metrics", "Accept-Encoding: deflate, gzip;q=0.8");
  EXPECT_THAT(packed.headers,
              AllOf(HasSubstr("Content-Encoding: gzip"), HasSubstr("text/plain; version=0.0.4")));
  EXPECT_TRUE(packed.body.starts_with("\x1f\x8b")) << "gzip's magic number";
  EXPECT_LT(packed.body.size(), plain.body.size() / 2);
  EXPECT_THAT(Ask("/metrics", "Accept-Encoding: gzip;q=0").headers,
              Not(HasSubstr("Content-Encoding")));
  EXPECT_THAT(Ask("/healthz", "Accept-Encoding: gzip").body, "ok\n") << "too short to be worth it";
}

TEST_F(AdminPortTest, MethodsThatNobodyCalledHaveNoSeries) {
  Start();
  EXPECT_THAT(Metrics(), Not(HasSubstr("grpc_server_started_total{")));
  caller_->Plan(RequestFor(LinearReluModel().proto()));
  int series = 0;
  const std::string metrics = Metrics();
  for (std::string_view line : StrSplit(metrics, '\n')) {
    if (!line.starts_with("grpc_") || line.find("_bucket{") != std::string_view::npos) continue;
    ++series;
    EXPECT_THAT(std::string(line), HasSubstr("grpc_method=\"PlanFusion\"")) << line;
    EXPECT_FALSE(line.ends_with(" 0")) << line;
  }
  // Started, received, sent, handled OK; sum and count of the time.
  EXPECT_EQ(series, 6);
}

}  // namespace
}  // namespace fusion
