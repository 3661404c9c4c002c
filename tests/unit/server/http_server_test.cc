#include "server/transport/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <thread>

#include "server/admission/event.h"
#include "tests/support/http.h"

namespace fusion {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr char kAskForSlow[] = "GET /slow HTTP/1.1\r\nHost: localhost\r\n\r\n";

class HttpServerTest : public testing::Test {
 protected:
  ~HttpServerTest() override { gate_.Set(); }
  void Start(const HttpLimits& limits = {}) {
    std::vector<HttpPage> pages = {
        {.path = "/now",
         .about = "at <once>",
         .immediate = true,
         .make = [](const HttpQuestion&) { return HttpReply{.body = "now"}; }},
        {.path = "/slow",
         .about = "waits",
         .make =
             [this](const HttpQuestion&) {
               ++begun_;
               gate_.WaitFor(std::chrono::minutes(10));
               return HttpReply{.body = "slow"};
             }},
        {.path = "/echo/",
         .about = "says it again",
         .make = [](const HttpQuestion& asked) { return HttpReply{.body = asked.rest}; }},
        {.path = "/asked", .about = "what was asked", .make = [](const HttpQuestion& asked) {
           std::string body = asked.authorization;
           for (const auto& [name, value] : asked.query) body += StrCat(" ", name, "=", value);
           return HttpReply{.body = body, .headers = {{"X-Further", "one"}}};
         }}};
    absl::StatusOr<std::unique_ptr<HttpServer>> server =
        HttpServer::Start("127.0.0.1:0", std::move(pages), {"named"}, limits);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  const std::string& address() const { return server_->address(); }
  bool Comes(const std::function<bool()>& what) const {
    for (int i = 0; i < 6000 && !what(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return what();
  }

  Event gate_;
  std::atomic<int> begun_{0};
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpServerTest, ImmediatePagesDoNotWaitForOthers) {
  Start();
  std::vector<UniqueFd> waiting;
  for (int i = 0; i < 40; ++i) {
    waiting.push_back(HttpConnect(address()));
    ASSERT_TRUE(HttpSend(waiting.back(), kAskForSlow));
  }
  ASSERT_TRUE(Comes([&] { return begun_ == 2; })) << "each thread has one";
  EXPECT_EQ(HttpGet(address(), "/now").body, "now");
  // Another peer's takes the place of one of these.
  UniqueFd other = HttpConnect(address(), "127.0.0.2");
  ASSERT_TRUE(HttpSend(other, kAskForSlow));
  EXPECT_EQ(HttpGet(address(), "/now").body, "now");
  gate_.Set();
  std::map<int, int> codes;
  for (const UniqueFd& connection : waiting) ++codes[HttpRead(connection).code];
  EXPECT_EQ(codes[200] + codes[503], 40);
  EXPECT_GE(codes[200], 2);
  EXPECT_GE(codes[503], 20) << "more than may wait";
  EXPECT_EQ(HttpRead(other).body, "slow");
}

TEST_F(HttpServerTest, AStopAnswersWhatIsUnderWay) {
  Start();
  UniqueFd asked = HttpConnect(address());
  ASSERT_TRUE(HttpSend(asked, kAskForSlow));
  UniqueFd silent = HttpConnect(address());
  ASSERT_TRUE(HttpSend(silent, "GET"));
  ASSERT_TRUE(Comes([&] { return begun_ == 1; }));
  std::thread stop([&] { server_.reset(); });
  gate_.Set();
  EXPECT_EQ(HttpRead(asked).body, "slow");
  EXPECT_EQ(HttpRead(silent).code, 0);
  stop.join();
}

TEST_F(HttpServerTest, APeerThatWentAwayIsNotAnswered) {
  Start();
  for (int i = 0; i < 5; ++i) HttpSend(HttpConnect(address()), kAskForSlow);
  ASSERT_TRUE(Comes([&] { return begun_ == 2; }));
  gate_.Set();
  EXPECT_TRUE(Comes([&] { return server_->counts().open == 0; }));
}

TEST_F(HttpServerTest, AConnectionBeyondThePeersLimitTakesTheOldestsPlace) {
  Start({.per_peer = 4, .all = 8, .asking = std::chrono::minutes(10)});
  std::vector<UniqueFd> held;
  for (int i = 0; i < 12; ++i) {
    held.push_back(HttpConnect(address()));
    ASSERT_TRUE(HttpSend(held.back(), "GET /now HT"));
  }
  EXPECT_EQ(HttpRead(held[0]).code, 0) << "hung up on";
  EXPECT_EQ(HttpGet(address(), "/now").code, 200);
  ASSERT_TRUE(HttpSend(held[11], "TP/1.1\r\nHost: localhost\r\n\r\n"));
  EXPECT_EQ(HttpRead(held[11]).body, "now") << "the newest is left alone";
  EXPECT_GE(server_->counts().crowded, 8);
  EXPECT_LE(server_->counts().open, 4);
}

TEST_F(HttpServerTest, ConnectionsThatDoNotAskInTimeAreClosed) {
  Start({.asking = std::chrono::milliseconds(50)});
  UniqueFd connection = HttpConnect(address());
  ASSERT_TRUE(HttpSend(connection, "GET /now HTTP/1.1\r\nHost: localhost\r\n"));
  EXPECT_EQ(HttpRead(connection).code, 0);
  // It is counted a moment after it is closed.
  for (int i = 0; i < 2000 && server_->counts().late < 1; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_GE(server_->counts().late, 1);
}

// The system keeps it to itself at first; that counts too.
TEST_F(HttpServerTest, SilentConnectionsHaveNoMoreTimeThanOthers) {
  Start({.asking = std::chrono::milliseconds(3200)});
  UniqueFd silent = HttpConnect(address());
  std::this_thread::sleep_for(std::chrono::seconds(1));
  UniqueFd slow = HttpConnect(address());
  ASSERT_TRUE(HttpSend(slow, "GET"));
  EXPECT_EQ(HttpRead(slow).code, 0);
  // It was opened later, so the other one is over by now, or in this moment.
  pollfd closed{silent.get(), POLLIN, 0};
  EXPECT_EQ(poll(&closed, 1, /*timeout=*/3000), 1);
  EXPECT_EQ(HttpRead(silent).code, 0);
}

TEST_F(HttpServerTest, AnswersThatAreNotReadInTimeAreCutOff) {
  Start({.answering = std::chrono::milliseconds(50)});
  // Fills what the system takes for a reader.
  UniqueFd connection = HttpConnect(address());
  ASSERT_TRUE(HttpSend(connection, StrCat("GET /echo/", std::string(9000, 'x'),
                                          " HTTP/1.1\r\nHost: localhost\r\n\r\n")));
  EXPECT_TRUE(Comes([&] { return server_->counts().open == 0; }));
}

TEST_F(HttpServerTest, RequestsAreReadAsHttpSays) {
  Start();
  EXPECT_EQ(HttpGet(address(), "/echo/a%20b?c=d").body, "a b");
  EXPECT_EQ(HttpGet(address(), "/echo/").body, "");
  EXPECT_EQ(HttpGet(address(), "/now/").code, 404);
  EXPECT_EQ(HttpGet(address(), "/elsewhere").code, 404);
  EXPECT_EQ(HttpAsk(address(), "GET /now HTTP/1.0\r\n\r\n").body, "now");
  EXPECT_EQ(
      HttpAsk(address(), "GET /now HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc")
          .body,
      "now");
  const HttpAnswer posted =
      HttpAsk(address(), "POST /now HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc");
  EXPECT_EQ(posted.code, 405);
  EXPECT_THAT(posted.headers, HasSubstr("Allow: GET, HEAD"));
  EXPECT_NE(HttpAsk(address(), StrCat("GET /now HTTP/1.1\r\nHost: localhost\r\nX: ",
                                      std::string(60000, 'x'), "\r\n\r\n"))
                .code,
            200);
  for (const char* garbage : {"\r\n\r\n", "\x16\x03\x01\x02", "GET\r\n\r\n",
                              "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "GET /now HTTP/9.9\r\n\r\n"}) {
    UniqueFd connection = HttpConnect(address());
    HttpSend(connection, garbage);
    connection.Reset();
  }
  EXPECT_EQ(HttpGet(address(), "/now").code, 200);
}

TEST_F(HttpServerTest, PagesSeeTheQueryAndTheAuthorization) {
  Start();
  const HttpAnswer answer =
      HttpAsk(address(),
              "GET /asked?b=2%26&a=1&b=3&c HTTP/1.1\r\nHost: localhost\r\nAuthorization: Basic "
              "eA==\r\n\r\n");
  EXPECT_EQ(answer.body, "Basic eA== a=1 b=3 c=");
  EXPECT_THAT(answer.headers, HasSubstr("X-Further: one"));
  EXPECT_EQ(HttpGet(address(), "/asked").body, "");
}

TEST_F(HttpServerTest, HeadHasTheHeadersOfGetAndNoBody) {
  Start();
  const HttpAnswer got = HttpGet(address(), "/now");
  const HttpAnswer head = HttpAsk(address(), "HEAD /now HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_EQ(head.code, 200);
  EXPECT_THAT(head.headers, HasSubstr("Content-Length: 3"));
  EXPECT_EQ(head.body, "");
  EXPECT_EQ(got.body, "now");
  EXPECT_EQ(HttpAsk(address(), "HEAD /echo/abcd HTTP/1.1\r\nHost: localhost\r\n\r\n").body, "");
}

TEST_F(HttpServerTest, TheIndexListsThePages) {
  Start();
  const HttpAnswer index = HttpGet(address(), "/");
  EXPECT_EQ(index.code, 200);
  EXPECT_THAT(index.headers, HasSubstr("text/html"));
  EXPECT_THAT(index.body, HasSubstr("<a href=\"/now\">/now</a></td><td>at &lt;once&gt;<"));
  EXPECT_THAT(index.body, HasSubstr("/echo/..."));
  EXPECT_THAT(index.body, Not(HasSubstr("href=\"/echo/")));
}

TEST_F(HttpServerTest, ARequestToAnotherHostIsRefused) {
  Start();
  auto code = [this](const std::string& lines) {
    return HttpAsk(address(), StrCat("GET /now HTTP/1.1\r\n", lines, "\r\n")).code;
  };
  EXPECT_EQ(code("Host: evil.example\r\n"), 421);
  EXPECT_EQ(code("Host: evil.example:80\r\nX: localhost\r\n"), 421);
  EXPECT_EQ(code("hOsT:named\r\n"), 200);
  EXPECT_EQ(code(StrCat("Host: ", address(), "\r\n")), 200);
  EXPECT_EQ(HttpAsk(address(), "GET /now HTTP/1.0\r\n\r\n").code, 200) << "a simple probe";
  EXPECT_EQ(HttpAsk(address(), "HEAD / HTTP/1.1\r\nHost: evil\r\n\r\n").code, 421);
  EXPECT_NE(HttpAsk(address(), "GET http://evil/now HTTP/1.1\r\nHost: evil\r\n\r\n").code, 200);
}

TEST(HttpServerStartTest, APageMayTakeThePlaceOfTheIndex) {
  auto server =
      HttpServer::Start("127.0.0.1:0", {{.path = "/", .about = "", .make = [](const HttpQuestion&) {
                                           return HttpReply{.body = "home"};
                                         }}});
  ASSERT_TRUE(server.ok());
  EXPECT_EQ(HttpGet((*server)->address(), "/").body, "home");
  EXPECT_EQ(HttpGet((*server)->address(), "/elsewhere").code, 404) << "it is no prefix";
}

TEST(HttpServerStartTest, WhatCannotBeListenedOnIsSaid) {
  EXPECT_THAT(std::string(HttpServer::Start("nowhere", {}).status().message()),
              HasSubstr("expected HOST:PORT"));
  auto first = HttpServer::Start("127.0.0.1:0", {});
  ASSERT_TRUE(first.ok());
  EXPECT_THAT(std::string(HttpServer::Start((*first)->address(), {}).status().message()),
              HasSubstr("cannot listen on"));
}

}  // namespace
}  // namespace fusion
