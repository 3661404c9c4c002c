// The pages for people of a real fusiond with real plans.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/client.h"
#include "core/device/host_isa.h"
#include "tests/models/models.h"
#include "tests/service/run_program.h"
#include "tests/service/server_fixture.h"
#include "tests/support/page_checks.h"
#include "tests/support/test_model.h"

namespace fusion {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kPages[] = {"/",       "/plans", "/kernels", "/accuracy",
                                  "/epochs", "/queue", "/workers"};

class OperatorPagesTest : public ServerTest {
 protected:
  const std::string& admin() const { return daemon_->admin_address(); }
  HttpAnswer Ask(const std::string& path, const std::string& header) const {
    return HttpAsk(admin(), StrCat("GET ", path, " HTTP/1.1\r\nHost: localhost\r\n", header,
                                   header.empty() ? "" : "\r\n", "\r\n"));
  }
  // A plan with compiled kernels and reported latencies.
  FusionReply PlanAndReport(const ClientOptions& options = {}) {
    std::unique_ptr<Client> client = Client::Connect(daemon_->address(), options).value();
    FusionRequest request;
    request.onnx_model = LinearReluModel(64).Bytes();
    request.target.isa = HostIsaName();
    request.model_name = "a <b>model</b>";
    absl::StatusOr<FusionReply> reply = client->PlanFusion(request);
    EXPECT_TRUE(reply.ok()) << reply.status();
    const absl::StatusOr<int64_t> taken =
        client->ReportLatency({.plan_key = reply->plan_key,
                               .kernels = LaunchedKernels(reply->plan),
                               .launches = {{.launch = 0, .samples_us = {12, 10, 14}, .calls = 9}},
                               .run_samples_us = {20, 21, 22},
                               .threads = reply->plan.threads,
                               .device = "a <i>machine</i>"});
    EXPECT_TRUE(taken.ok()) << taken.status();
    return *std::move(reply);
  }
};

TEST_F(OperatorPagesTest, EveryPageShowsWhatIsThere) {
  StartWithStore();
  const FusionReply reply = PlanAndReport();
  const std::string key = reply.plan_key.ToHex();
  for (const char* path : kPages) {
    const HttpAnswer answer = HttpGet(admin(), path);
    EXPECT_EQ(answer.code, 200) << path;
    EXPECT_THAT(answer.headers, AllOf(HasSubstr("text/html"), HasSubstr("default-src 'none'"),
                                      HasSubstr("no-store")))
        << path;
    ExpectAccessible(answer.body);
    EXPECT_THAT(answer.body, Not(HasSubstr("<b>model"))) << path;
  }
  const std::string overview = HttpGet(admin(), "/").body;
  EXPECT_THAT(overview, AllOf(HasSubstr("PlanFusion"), HasSubstr("ReportLatency"),
                              HasSubstr("a &lt;b&gt;model"), HasSubstr(StrCat("/plans/", key)),
                              HasSubstr("21.0 us")));
  EXPECT_THAT(HttpGet(admin(), "/plans").body,
              AllOf(HasSubstr(StrCat("/plans/", key)), HasSubstr("a &lt;b&gt;model")));
  const std::string plan = HttpGet(admin(), StrCat("/plans/", key)).body;
  ExpectAccessible(plan);
  EXPECT_THAT(plan, AllOf(HasSubstr("a &lt;i&gt;machine"), HasSubstr("12.0 us"),
                          HasSubstr("Why each group is one kernel"), HasSubstr("chosen")));
  const std::string kernel =
      reply.plan.kernels[static_cast<size_t>(reply.plan.launches[0].kernel)].key.ToHex();
  EXPECT_THAT(HttpGet(admin(), "/kernels").body, HasSubstr(StrCat("/kernels/", kernel)));
  const std::string source = HttpGet(admin(), StrCat("/kernels/", kernel)).body;
  ExpectAccessible(source);
  EXPECT_THAT(source, AllOf(HasSubstr("equals the evaluator"),
                            HasSubstr("FUSION_KERNEL_ABI_VERSION"), HasSubstr("Compiler")));
  EXPECT_THAT(HttpGet(admin(), "/accuracy").body, HasSubstr("of the spec"));
  EXPECT_THAT(HttpGet(admin(), "/workers").body, HasSubstr("seccomp"));
  EXPECT_THAT(HttpGet(admin(), "/queue?refresh").body, HasSubstr("http-equiv=\"refresh\""));
  const std::string again = HttpGet(admin(), "/plans").body;
  EXPECT_THAT(again, Not(HasSubstr("Older plans")));
}

TEST_F(OperatorPagesTest, ThePictureHasTheGroups) {
  StartWithStore();
  const std::string key = PlanAndReport().plan_key.ToHex();
  const std::string page = HttpGet(admin(), StrCat("/plans/", key)).body;
  const HttpAnswer picture = HttpGet(admin(), StrCat("/plans/", key, ".svg"));
  if (RunProgram({"/usr/bin/env", "sh", "-c", "command -v dot"}).code != 0) {
    EXPECT_THAT(page, HasSubstr("graphviz, which draws it, is not installed"));
    EXPECT_EQ(picture.code, 404);
    return;
  }
  EXPECT_THAT(page, HasSubstr(StrCat("<img src=\"/plans/", key, ".svg\"")));
  EXPECT_EQ(picture.code, 200);
  EXPECT_THAT(picture.headers, AllOf(HasSubstr("image/svg+xml"), HasSubstr("sandbox")));
  EXPECT_THAT(picture.body,
              AllOf(HasSubstr("</svg>"), HasSubstr("after, this plan"), HasSubstr("group 1, "),
                    HasSubstr("MatMul"), HasSubstr("input 0")));
  EXPECT_EQ(HttpGet(admin(), StrCat("/plans/", key, ".svg")).body, picture.body) << "it is kept";
}

TEST_F(OperatorPagesTest, TheListOfPlansHasPages) {
  Start();
  for (int64_t width = 1; width <= 53; ++width) {
    v1::PlanFusionRequest request = RequestFor(LinearReluModel(width).proto());
    request.set_mode(v1::PLAN_MODE_PLAN_ONLY);
    caller_->Plan(request);
  }
  std::set<std::string> plans;
  std::string path = "/plans";
  int pages = 0;
  static const std::regex plan("href=\"/plans/([0-9a-f]{64})\"");
  static const std::regex older("href=\"(/plans\\?after=[^\"]+)\"");
  while (!path.empty() && pages < 10) {
    const HttpAnswer answer = HttpGet(admin(), path);
    ASSERT_EQ(answer.code, 200) << path;
    ExpectAccessible(answer.body);
    const std::vector<std::smatch> found = AllMatches(answer.body, plan);
    EXPECT_LE(found.size(), 50u);
    for (const std::smatch& one : found) EXPECT_TRUE(plans.insert(one[1]).second) << one[1];
    const std::vector<std::smatch> next = AllMatches(answer.body, older);
    path = next.empty() ? "" : std::string(next[0][1]);
    ++pages;
  }
  EXPECT_EQ(plans.size(), 53u);
  EXPECT_EQ(pages, 2);
}

TEST_F(OperatorPagesTest, WhatIsNotThereIsSaid) {
  Start();
  const std::string none(64, '0');
  for (const std::string& path :
       {StrCat("/plans/", none), StrCat("/plans/", none, ".svg"), StrCat("/kernels/", none)}) {
    const HttpAnswer answer = HttpGet(admin(), path);
    EXPECT_EQ(answer.code, 404) << path;
    ExpectAccessible(answer.body);
    EXPECT_THAT(answer.body, HasSubstr("not stored (any more)"));
  }
  for (const char* path :
       {"/plans/", "/plans/x", "/plans/x.svg", "/plans/../kernels", "/kernels/", "/kernels/%00",
        "/plans?after=", "/plans?after=x", "/plans?after=-1-", "/plans?after=1-%3Cscript%3E"}) {
    const HttpAnswer answer = HttpGet(admin(), path);
    EXPECT_EQ(answer.code, 400) << path;
    EXPECT_THAT(answer.body, AllOf(HasSubstr("expected"), Not(HasSubstr("<")))) << path;
  }
  const HttpAnswer other = HttpGet(admin(), "/accuracy?tenant=%3Cscript%3E");
  EXPECT_EQ(other.code, 200);
  EXPECT_THAT(other.body, HasSubstr("&lt;script&gt;"));
  ExpectAccessible(other.body);
}

TEST_F(OperatorPagesTest, WithTokensThePagesAreForAdministrators) {
  std::string tokens;
  for (const auto& [name, secret, role] :
       {std::tuple{"ops", "s3", "roles: 'admin'"},
        std::tuple{"ci", "other", "roles: 'plan' roles: 'report'"}}) {
    tokens +=
        StrCat("tokens { name: '", name, "' sha256: '", Sha256(secret).ToHex(), "' ", role, "}\n");
  }
  Start({"--tokens", dir_.Write("tokens", tokens)});
  const std::string key = PlanAndReport({.token = "other"}).plan_key.ToHex();
  std::vector<std::string> paths(std::begin(kPages), std::end(kPages));
  paths.push_back(StrCat("/plans/", key));
  paths.push_back(StrCat("/plans/", key, ".svg"));
  paths.push_back("/kernels/x");
  for (const std::string& path : paths) {
    const HttpAnswer stranger = Ask(path, "");
    EXPECT_EQ(stranger.code, 401) << path;
    EXPECT_THAT(stranger.headers, HasSubstr("WWW-Authenticate: Basic realm=\"fusiond\""));
    EXPECT_THAT(stranger.body, AllOf(HasSubstr("the role admin"), Not(HasSubstr(key))));
    EXPECT_EQ(Ask(path, "Authorization: Bearer wrong").code, 401) << path;
    EXPECT_EQ(Ask(path, "Authorization: Bearer other").code, 403) << path;
    const int wanted = path == "/kernels/x" ? 400 : 200;
    const int code = Ask(path, "Authorization: Bearer s3").code;
    // Whether there is a picture depends on graphviz.
    EXPECT_TRUE(code == wanted || (path.ends_with(".svg") && code == 404)) << path << ": " << code;
  }
  EXPECT_EQ(Ask("/", "Authorization: Basic YWRtaW46czM=").code, 200) << "admin:s3";
  for (const char* open : {"/healthz", "/readyz", "/metrics", "/statusz"}) {
    EXPECT_EQ(Ask(open, "").code, 200) << open;
  }
}

TEST_F(OperatorPagesTest, HealthIsAnsweredWhilePagesAreMade) {
  StartWithStore();
  const std::string key = PlanAndReport().plan_key.ToHex();
  std::vector<UniqueFd> asked;
  for (int i = 0; i < 30; ++i) {
    asked.push_back(HttpConnect(admin()));
    HttpSend(asked.back(), StrCat("GET ", i % 2 == 0 ? "/accuracy" : StrCat("/plans/", key, ".svg"),
                                  " HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    EXPECT_EQ(HttpGet(admin(), "/healthz").body, "ok\n") << i;
  }
  std::map<int, int> codes;
  for (const UniqueFd& connection : asked) ++codes[HttpRead(connection).code];
  EXPECT_GT(codes[200], 0);
  EXPECT_EQ(codes[200] + codes[503] + codes[404], 30);
}

}  // namespace
}  // namespace fusion
