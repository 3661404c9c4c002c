// Who may call a real fusiond, how it proves who it is, and what it signs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <filesystem>
#include <regex>

#include "absl/strings/str_replace.h"
#include "client/admin_client.h"
#include "client/client.h"
#include "client/detect_target.h"
#include "core/base/files/file.h"
#include "core/wire/basics/scalars.h"
#include "fusion/v1/fusion_service.grpc.pb.h"
#include "tests/service/run_program.h"
#include "tests/service/server_fixture.h"
#include "tests/support/test_certificates.h"
#include "tests/support/test_model.h"

namespace fusion {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kServerNames = "DNS:localhost,IP:127.0.0.1";

std::string Token(const std::string& name, const std::string& secret, const std::string& more) {
  return StrCat("tokens { name: '", name, "' sha256: '", Sha256(secret).ToHex(), "' ", more,
                " }\n");
}

FusionRequest ModelRequest(PlanMode mode = PlanMode::kPlanOnly) {
  FusionRequest request;
  request.onnx_model = LinearReluModel().Bytes();
  request.target = DetectTarget(1);
  request.mode = mode;
  return request;
}

class AuthTest : public ServerTest {
 protected:
  absl::StatusOr<std::unique_ptr<Client>> Connect(ClientOptions options = {}) const {
    options.connect_timeout = std::chrono::seconds(20);
    return Client::Connect(daemon_->address(), options);
  }
  // What one plan call as this client ends with.
  absl::Status TryPlan(const ClientOptions& options) const {
    absl::StatusOr<std::unique_ptr<Client>> client = Connect(options);
    if (!client.ok()) return client.status();
    return (*client)->PlanFusion(ModelRequest()).status();
  }
  absl::Status TryWithToken(const std::string& token) const { return TryPlan({.token = token}); }
  std::string Path(const std::string& name) const { return dir_.path(name); }

  // Replaces a file as tools that rotate do it: whole, or not at all.
  void Rotate(const std::string& name, const std::string& text) {
    std::string fresh = dir_.Write(name + ".new", text);
    std::filesystem::rename(fresh, Path(name));
  }

  void WriteIdentity(const std::string& name, const TestIdentity& identity) {
    Rotate(name + ".key", identity.key);
    Rotate(name + ".crt", identity.certificate);
  }
  std::vector<std::string> TlsArgs() {
    WriteIdentity("server", ca_.Issue("server one", kServerNames));
    return {"--tls-cert", Path("server.crt"), "--tls-key", Path("server.key")};
  }
  std::vector<std::string> MtlsArgs() {
    std::vector<std::string> args = TlsArgs();
    args.insert(args.end(), {"--tls-client-ca", dir_.Write("ca.crt", ca_.certificate())});
    return args;
  }
  ClientOptions Trusting(const TestCa& ca, const TestIdentity& identity = {}) const {
    return {.tls = ClientTls{ca.certificate(), identity.certificate, identity.key, ""}};
  }

  TestCa ca_{"CA of the service"};
};

TEST_F(AuthTest, WithoutTokensAndCertificatesEverybodyMayPlanAndReport) {
  Start();
  Capabilities capabilities = Connect().value()->GetCapabilities().value();
  EXPECT_EQ(capabilities.authentication, "none");
  EXPECT_EQ(capabilities.tenant, "default");
  EXPECT_THAT(capabilities.roles, ElementsAre("plan", "report", "trusted-report"));
  EXPECT_TRUE(capabilities.signing_keys.empty());
  EXPECT_TRUE(TryWithToken("nobody looks at it").ok());
}

TEST_F(AuthTest, TheServersOwnUserIsItsAdministratorOnASocketFileAndNowhereElse) {
  for (const std::vector<std::string>& args : {std::vector<std::string>(), MtlsArgs()}) {
    Start(args);
    const std::unique_ptr<Client> owner = Client::Connect(daemon_->local_address(), {}).value();
    const Capabilities mine = owner->GetCapabilities().value();
    EXPECT_THAT(mine.roles, ElementsAre("plan", "report", "trusted-report", "admin"));
    EXPECT_EQ(mine.tenant, "default");
    EXPECT_TRUE(AdminClient(*owner).InvalidateAll("a test").ok());
    EXPECT_TRUE(daemon_->WaitForOutput("\"method\":\"Invalidate\""));
    EXPECT_THAT(daemon_->output(), HasSubstr("\"event\":\"admin\",\"identity\":\"owner\""));
    ClientOptions remote =
        args.empty() ? ClientOptions{} : Trusting(ca_, ca_.Issue("a", "URI:spiffe://d/a"));
    const std::unique_ptr<Client> other = Connect(remote).value();
    const absl::Status refused = AdminClient(*other).InvalidateAll("a test").status();
    EXPECT_TRUE(absl::IsPermissionDenied(refused)) << refused;
    EXPECT_THAT(std::string(Message(refused)),
                AllOf(HasSubstr("this call needs the role admin"), HasSubstr("--tokens"),
                      HasSubstr("a unix socket of it and its own user or root")));
  }
}

TEST_F(AuthTest, PlaintextStaysOnTheMachineUnlessForced) {
  ProgramEnd end = TestDaemon::RunToEnd(FUSIOND, {"--listen", "0.0.0.0:0"});
  EXPECT_EQ(end.exit_code, 1);
  EXPECT_THAT(end.output, AllOf(HasSubstr("0.0.0.0:0"), HasSubstr("--tls-cert"),
                                HasSubstr("--allow-plaintext")));
  Start({"--listen", "0.0.0.0:0", "--allow-plaintext"});
  Start({"--listen", "[::1]:0"});
}

TEST_F(AuthTest, ATokenSaysWhoCallsAndWhatHeMayDo) {
  std::string file =
      dir_.Write("tokens", StrCat(Token("planner", "secret-1", "tenant: 'shop' roles: 'plan'"),
                                  Token("reporter", "secret-2", "tenant: 'shop' roles: 'report'"),
                                  Token("old", "secret-3", "expires: '2020-01-01'")));
  Start({"--tokens", file});
  EXPECT_TRUE(TryWithToken("secret-1").ok()) << TryWithToken("secret-1");

  absl::Status none = TryPlan({});
  EXPECT_TRUE(absl::IsUnauthenticated(none)) << none;
  EXPECT_THAT(std::string(Message(none)), HasSubstr("authorization: Bearer TOKEN"));
  EXPECT_TRUE(absl::IsUnauthenticated(TryWithToken("secret-4")));
  absl::Status old = TryWithToken("secret-3");
  EXPECT_TRUE(absl::IsUnauthenticated(old)) << old;
  EXPECT_THAT(std::string(Message(old)), HasSubstr("has expired, on 2020-01-01T00:00:00Z"));
  absl::Status role = TryWithToken("secret-2");
  EXPECT_TRUE(absl::IsPermissionDenied(role)) << role;
  EXPECT_THAT(std::string(Message(role)),
              AllOf(HasSubstr("needs the role plan"), HasSubstr("has report")));
  LatencyReport report;
  report.runs = 1;
  EXPECT_TRUE(absl::IsPermissionDenied(
      Connect({.token = "secret-1"}).value()->ReportLatency(report).status()));
  EXPECT_TRUE(
      absl::IsNotFound(Connect({.token = "secret-2"}).value()->ReportLatency(report).status()))
      << "let in, and told that there is no such plan";

  Capabilities capabilities = Connect({.token = "secret-1"}).value()->GetCapabilities().value();
  EXPECT_EQ(capabilities.authentication, "token");
  EXPECT_EQ(capabilities.tenant, "shop");
  EXPECT_THAT(capabilities.roles, ElementsAre("plan"));
  EXPECT_THAT(daemon_->output(), testing::Not(HasSubstr("secret-")));
  EXPECT_GE(Metric("fusion_tenant_calls_total{tenant=\"shop\"}"), 3);
  EXPECT_EQ(Status()["access"]["tokens"], 3);
}

TEST_F(AuthTest, StreamsAndUnixSocketsAskForTheTokenToo) {
  std::string file = dir_.Write("tokens", Token("a", "secret-1", ""));
  Start({"--tokens", file, "--listen", StrCat("unix:", Path("socket"))});
  EXPECT_TRUE(absl::IsUnauthenticated(TryPlan({})));
  std::unique_ptr<Client> stranger = Connect().value();
  absl::StatusOr<FusionReply> streamed =
      stranger->PlanFusion(ModelRequest(), [](const PlanProgress&) {});
  EXPECT_TRUE(absl::IsUnauthenticated(streamed.status())) << streamed.status();
  EXPECT_TRUE(absl::IsUnauthenticated(stranger->GetKernels({Digest{}}).status()));
  EXPECT_TRUE(TryWithToken("secret-1").ok());
  EXPECT_TRUE(Connect({.token = "secret-1"})
                  .value()
                  ->PlanFusion(ModelRequest(), [](const PlanProgress&) {})
                  .ok());
}

TEST_F(AuthTest, AChangedTokenFileIsInForceAndABadOneIsNot) {
  std::string file = dir_.Write("tokens", Token("a", "secret-1", ""));
  Start({"--tokens", file});
  ASSERT_TRUE(TryWithToken("secret-1").ok());
  Rotate("tokens", Token("b", "secret-2", ""));
  ASSERT_TRUE(daemon_->WaitForOutput("\"event\":\"tokens_reloaded\""));
  EXPECT_TRUE(absl::IsUnauthenticated(TryWithToken("secret-1")));
  EXPECT_TRUE(TryWithToken("secret-2").ok());
  Rotate("tokens", "\ntokens { nam: 'c' }\n");
  ASSERT_TRUE(daemon_->WaitForOutput("\"event\":\"tokens_not_reloaded\""));
  EXPECT_THAT(daemon_->output(), HasSubstr(StrCat(file, ":2: column ")));
  EXPECT_TRUE(TryWithToken("secret-2").ok()) << "the old file stays in force";
}

TEST_F(AuthTest, ABadTokenFileIsAStartErrorWithItsLine) {
  std::string file = dir_.Write("tokens", "# ours\ntokens { name: 'a' sha256: 'abc' }\n");
  ProgramEnd end = TestDaemon::RunToEnd(FUSIOND, {"--listen", "127.0.0.1:0", "--tokens", file});
  EXPECT_EQ(end.exit_code, 1);
  EXPECT_THAT(end.output, HasSubstr(StrCat(file, ":2: tokens[0] \"a\": sha256: 3 bytes")));
}

TEST_F(AuthTest, FusionctlMakesATokenAndUsesIt) {
  ProgramResult made = RunProgram(
      {FUSIONCTL, "token", "ci", "--tenant", "shop", "--role", "plan", "--out", Path("ci.token")});
  ASSERT_EQ(made.code, 0) << made.err;
  struct stat status {};
  ASSERT_EQ(stat(Path("ci.token").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  Start({"--tokens", dir_.Write("tokens", made.out)});
  ProgramResult refused = RunProgram({FUSIONCTL, "capabilities", "--server", daemon_->address()});
  EXPECT_EQ(refused.code, 4);
  EXPECT_THAT(refused.err, HasSubstr("no token"));
  ProgramResult asked = RunProgram({FUSIONCTL, "capabilities", "--server", daemon_->address(),
                                    "--token-file", Path("ci.token"), "--priority", "background"});
  EXPECT_EQ(asked.code, 0) << asked.err;
  EXPECT_THAT(asked.out, HasSubstr("access:    token; you are tenant \"shop\", for plan"));
}

TEST_F(AuthTest, FusionctlStoreIsForWhoHasTheRoleAdmin) {
  Start({"--tokens", dir_.Write("tokens", StrCat(Token("ops", "secret-1", "roles: 'admin'"),
                                                 Token("ci", "secret-2", "roles: 'plan'")))});
  auto store = [&](const std::string& words, const std::string& token) {
    return RunProgram({FUSIONCTL, "store", words, "--server", daemon_->address(), "--token-file",
                       dir_.Write("token", token)});
  };
  ProgramResult stats = store("stats", "secret-1");
  EXPECT_EQ(stats.code, 0) << stats.err;
  ProgramResult refused = store("stats", "secret-2");
  EXPECT_EQ(refused.code, 4);
  EXPECT_THAT(refused.err, HasSubstr("needs the role admin"));
  // Streams too.
  const auto reason = [&](const std::string& token) {
    std::unique_ptr<Client> client = Connect({.token = token}).value();
    const AdminClient admin(*client);
    const absl::Status out =
        admin.ExportStore({}, [](std::string_view) { return absl::OkStatus(); });
    const absl::Status in =
        admin.ImportStore([]() -> absl::StatusOr<std::string> { return std::string(); }).status();
    return std::pair(absl::IsPermissionDenied(out), absl::IsPermissionDenied(in));
  };
  EXPECT_EQ(reason("secret-1"), std::pair(false, false));
  EXPECT_EQ(reason("secret-2"), std::pair(true, true));
}

TEST_F(AuthTest, TheLogHasTenantIdentityAndTrace) {
  Start({"--tokens", dir_.Write("tokens", Token("ci", "secret-1", "tenant: 'shop'"))});
  grpc::ClientContext context;
  context.AddMetadata("authorization", "Bearer secret-1");
  context.AddMetadata("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
  v1::GetCapabilitiesResponse response;
  ASSERT_TRUE(caller_->stub().GetCapabilities(&context, {}, &response).ok());
  EXPECT_TRUE(daemon_->WaitForOutput("\"trace_id\":\"4bf92f3577b34da6a3ce929d0e0e4736\""));
  EXPECT_THAT(daemon_->output(),
              testing::ContainsRegex(
                  "\"tenant\":\"shop\",\"identity\":\"ci\",\"peer\":\"127[.]0[.]0[.]1:[0-9]+\","
                  "\"trace_id\":\"4bf92f3577b34da6a3ce929d0e0e4736\""));
  grpc::ClientContext odd;
  odd.AddMetadata("authorization", "Bearer secret-1");
  odd.AddMetadata("x-fusion-priority", "urgent");
  grpc::Status status = caller_->stub().GetCapabilities(&odd, {}, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("expected interactive or background"));
}

TEST_F(AuthTest, OneTraceLeadsFromACallToItsCrashedWorker) {
  Start({"--allow-compiler", WriteCompiler(kBombingCompiler), "--sandbox", "none"});
  dir_.Write("bomb", "");
  TestModel softmax;
  softmax.Input("x", {8, 64}).Node("Softmax", {"x"}, {"y"}).Output("y");
  const std::string id = "4bf92f3577b34da6a3ce929d0e0e4736";
  const ProgramResult asked = RunProgram(
      {"/usr/bin/env", StrCat("TRACEPARENT=00-", id, "-00f067aa0ba902b7-01"), FUSIONCTL, "plan",
       dir_.Write("model.onnx", softmax.Bytes()), "--server", daemon_->address()});
  auto line = [this](std::string_view event) {
    const std::string log = daemon_->output();
    const size_t at = log.rfind(StrCat("\"event\":\"", event, "\""));
    return at == std::string::npos ? "" : log.substr(at, log.find('\n', at) - at);
  };
  const std::string traced = StrCat("\"trace_id\":\"", id, "\"");
  EXPECT_TRUE(daemon_->WaitForOutput(traced)) << asked.err;
  EXPECT_THAT(line("worker_crashed"), HasSubstr(traced));
  EXPECT_THAT(line("kernel_quarantined"), HasSubstr(traced));
  EXPECT_THAT(line("rpc"), HasSubstr(traced));
  // Who has none is given one.
  v1::PlanFusionResponse response;
  caller_->Plan(RequestFor(LinearReluModel(2).proto()), &response);
  EXPECT_THAT(line("worker_crashed"), testing::ContainsRegex("\"trace_id\":\"[0-9a-f]{32}\""));
  EXPECT_THAT(line("worker_crashed"), testing::Not(HasSubstr(id)));
}

TEST_F(AuthTest, OfUsualCallsAtMostSoManyASecondAreLoggedAndAllOthers) {
  for (const auto& [most, lines] : {std::pair("0", 2), std::pair("-1", 22)}) {
    Start({"--log-usual", most});
    v1::PlanFusionRequest request = RequestFor(LinearReluModel().proto(), v1::PLAN_MODE_PLAN_ONLY);
    for (int i = 0; i < 21; ++i) caller_->Plan(request);
    v1::PlanFusionResponse response;
    EXPECT_FALSE(caller_->Plan({}, &response).ok());
    ASSERT_TRUE(daemon_->WaitForOutput("INVALID_ARGUMENT"));
    std::string log = daemon_->output();
    int found = 0;
    for (size_t at = 0; (at = log.find("\"event\":\"rpc\"", at)) != std::string::npos; ++at) {
      ++found;
    }
    EXPECT_EQ(found, lines) << "the miss and the error, and of twenty hits none or all\n" << log;
  }
}

TEST_F(AuthTest, TlsProvesTheServer) {
  Start(TlsArgs());
  EXPECT_TRUE(TryPlan(Trusting(ca_)).ok()) << TryPlan(Trusting(ca_));
  TestCa other("another CA");
  ClientOptions fooled = Trusting(other);
  EXPECT_TRUE(absl::IsUnavailable(TryPlan(fooled))) << TryPlan(fooled);
  ClientOptions misnamed = Trusting(ca_);
  misnamed.tls->server_name = "elsewhere.example";
  EXPECT_TRUE(absl::IsUnavailable(TryPlan(misnamed)));
  EXPECT_TRUE(absl::IsUnavailable(TryPlan({}))) << "plain text on a port of TLS";
  EXPECT_GT(Metric("fusion_tls_certificate_expiry_seconds"), 1.7e9);
  EXPECT_EQ(Status()["access"]["certificate"]["subject"], "CN = server one");
}

TEST_F(AuthTest, FusionctlNamesTheFileOfTlsThatItCannotUse) {
  std::vector<std::string> args = TlsArgs();
  Start(args);
  const TestIdentity one = ca_.Issue("one", "DNS:a"), two = ca_.Issue("two", "DNS:b");
  const std::string ca = dir_.Write("ca.pem", ca_.certificate());
  const std::string rubbish = dir_.Write("rubbish", "no PEM\n");
  const std::string cut = dir_.Write("cut", ca_.certificate().substr(0, 200));
  const std::string certificate = dir_.Write("one.crt", one.certificate);
  const std::string key = dir_.Write("two.key", two.key);
  const auto status = [&](const std::vector<std::string>& flags) {
    std::vector<std::string> words = {FUSIONCTL, "status", "--server", daemon_->address()};
    words.insert(words.end(), flags.begin(), flags.end());
    return RunProgram(words);
  };
  EXPECT_EQ(status({"--ca", ca}).code, 0) << status({"--ca", ca}).err;
  for (const auto& [flags, said] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"--ca", rubbish}, StrCat("--ca: file \"", rubbish, "\": no certificate in PEM form")},
           {{"--ca", cut}, StrCat("--ca: file \"", cut, "\": ")},
           {{"--ca", ca, "--cert", rubbish, "--key", key}, StrCat("--cert: file \"", rubbish)},
           {{"--ca", ca, "--cert", certificate, "--key", rubbish},
            StrCat("--key: file \"", rubbish, "\": no private key in PEM form")},
           {{"--ca", ca, "--cert", certificate, "--key", key},
            StrCat("--key: file \"", key, "\": not the key of the certificate of --cert")}}) {
    const ProgramResult result = status(flags);
    EXPECT_EQ(result.code, 3) << result.err;
    EXPECT_THAT(result.err, HasSubstr(said));
  }
  const ProgramResult other =
      status({"--ca", dir_.Write("other.pem", TestCa("another CA").certificate())});
  EXPECT_EQ(other.code, 4);
  EXPECT_THAT(other.err,
              AllOf(HasSubstr("its certificate is not one that the given CA vouches for"),
                    Not(HasSubstr("error:"))));
}

TEST_F(AuthTest, ARotatedServerCertificateIsInForceWithoutAStop) {
  Start(TlsArgs());
  std::unique_ptr<Client> before = Connect(Trusting(ca_)).value();
  TestCa next("the next CA");
  TestIdentity second = next.Issue("server two", kServerNames);
  Rotate("server.crt", second.certificate);  // for a moment without its key
  ASSERT_TRUE(daemon_->WaitForOutput("\"event\":\"certificates_not_reloaded\""));
  EXPECT_TRUE(TryPlan(Trusting(ca_)).ok()) << "the old pair stays in force";
  Rotate("server.key", second.key);
  ASSERT_TRUE(daemon_->WaitForOutput("\"event\":\"certificates_reloaded\""));
  EXPECT_TRUE(TryPlan(Trusting(next)).ok()) << TryPlan(Trusting(next));
  EXPECT_TRUE(absl::IsUnavailable(TryPlan(Trusting(ca_)))) << "new connections get the new one";
  EXPECT_TRUE(before->PlanFusion(ModelRequest()).ok()) << "open connections go on";
  EXPECT_EQ(Status()["access"]["certificate"]["subject"], "CN = server two");
}

TEST_F(AuthTest, ARotatedClientCaIsInForceWithoutAStop) {
  Start(MtlsArgs());
  TestCa next("CA of tomorrow");
  const ClientOptions today = Trusting(ca_, ca_.Issue("client", "URI:spiffe://here/shop"));
  const ClientOptions tomorrow = Trusting(ca_, next.Issue("client", "URI:spiffe://here/shop"));
  ASSERT_TRUE(TryPlan(today).ok());
  ASSERT_FALSE(TryPlan(tomorrow).ok());
  Rotate("ca.crt", ca_.certificate() + next.certificate());
  EXPECT_TRUE(Eventually([&] { return TryPlan(tomorrow).ok(); }));
  EXPECT_TRUE(TryPlan(today).ok()) << "both, while clients change over";
  Rotate("ca.crt", next.certificate());
  EXPECT_TRUE(Eventually([&] { return !TryPlan(today).ok(); }));
  EXPECT_TRUE(TryPlan(tomorrow).ok());
}

TEST_F(AuthTest, SighupReadsCertificatesNow) {
  Start(TlsArgs());
  daemon_->Send(SIGHUP);
  EXPECT_TRUE(daemon_->WaitForOutput("\"event\":\"certificates_reloaded\""));
  EXPECT_TRUE(TryPlan(Trusting(ca_)).ok());
}

TEST_F(AuthTest, WhatIsWrongWithCertificatesIsNamed) {
  std::vector<std::string> args = TlsArgs();
  args.insert(args.end(), {"--listen", "127.0.0.1:0"});
  dir_.Write("server.key", ca_.Issue("stranger", "").key);
  ProgramEnd end = TestDaemon::RunToEnd(FUSIOND, args);
  EXPECT_EQ(end.exit_code, 1);
  EXPECT_THAT(end.output, HasSubstr("--tls-key: "));
  EXPECT_THAT(end.output, HasSubstr("not the key of the certificate"));
  WriteIdentity("server", ca_.Issue("past", kServerNames, /*days=*/-1));
  EXPECT_THAT(TestDaemon::RunToEnd(FUSIOND, args).output, HasSubstr("CN = past expired on "));
  TestIdentity sound = ca_.Issue("server", kServerNames);
  WriteIdentity("server", sound);
  const std::string cut = sound.certificate.substr(0, sound.certificate.size() / 2);
  dir_.Write("server.crt", sound.certificate + cut);
  EXPECT_THAT(TestDaemon::RunToEnd(FUSIOND, args).output,
              HasSubstr("server.crt: certificate 2 is damaged or cut"));
}

TEST_F(AuthTest, AClientCertificateSaysWhoCalls) {
  std::vector<std::string> args = MtlsArgs();
  std::string file = dir_.Write("tokens",
                                "identities { prefix: 'spiffe://shop/ops/' tenant: 'ops'"
                                " roles: 'plan' roles: 'admin' }\n");
  args.insert(args.end(), {"--tokens", file});
  Start(args);
  TestIdentity usual = ca_.Issue("a", "URI:spiffe://shop/tenant-a");
  Capabilities capabilities = Connect(Trusting(ca_, usual)).value()->GetCapabilities().value();
  EXPECT_EQ(capabilities.authentication, "token mtls");
  EXPECT_EQ(capabilities.tenant, "shop/tenant-a");
  EXPECT_THAT(capabilities.roles, ElementsAre("plan", "report"));
  TestIdentity mapped = ca_.Issue("b", "URI:spiffe://shop/ops/anna");
  capabilities = Connect(Trusting(ca_, mapped)).value()->GetCapabilities().value();
  EXPECT_EQ(capabilities.tenant, "ops");
  EXPECT_THAT(capabilities.roles, ElementsAre("plan", "admin"));

  EXPECT_TRUE(absl::IsUnavailable(TryPlan(Trusting(ca_)))) << "no certificate: no connection";
  TestCa other("another CA");
  EXPECT_TRUE(
      absl::IsUnavailable(TryPlan(Trusting(ca_, other.Issue("c", "URI:spiffe://shop/tenant-a")))));
  absl::Status nameless = TryPlan(Trusting(ca_, ca_.Issue("d", "")));
  EXPECT_TRUE(absl::IsUnauthenticated(nameless)) << nameless;
}

TEST_F(AuthTest, TokenAndCertificateMustNotContradict) {
  std::vector<std::string> args = MtlsArgs();
  args.insert(
      args.end(),
      {"--tokens", dir_.Write("tokens", Token("b", "secret-b", "tenant: 'shop/tenant-b'"))});
  Start(args);
  ClientOptions options = Trusting(ca_, ca_.Issue("a", "URI:spiffe://shop/tenant-a"));
  options.token = "secret-b";
  absl::Status status = TryPlan(options);
  EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
  options = Trusting(ca_, ca_.Issue("b", "URI:spiffe://shop/tenant-b"));
  options.token = "secret-b";
  EXPECT_TRUE(TryPlan(options).ok()) << TryPlan(options);
}

TEST_F(AuthTest, SignedPlansAndKernelsAreTakenAndOthersRefused) {
  TestKeyPair pair = NewEd25519();
  Start({"--signing-key", dir_.Write("2027-01.pem", pair.private_pem)});
  ClientOptions trusting;
  trusting.verify_keys = {SigningKey::Parse("2027-01", pair.public_pem).value()};
  std::unique_ptr<Client> client = Connect(trusting).value();
  absl::StatusOr<FusionReply> reply = client->PlanFusion(ModelRequest(PlanMode::kCompile));
  ASSERT_TRUE(reply.ok()) << reply.status();
  std::vector<Digest> keys;
  for (const KernelStatus& kernel : reply->kernels) keys.push_back(kernel.key);
  ASSERT_FALSE(keys.empty());
  EXPECT_TRUE(client->GetKernels(keys).ok()) << client->GetKernels(keys).status();
  EXPECT_TRUE(client->PlanFusion(ModelRequest(PlanMode::kCompile), [](const PlanProgress&) {}).ok())
      << "of a stream";
  EXPECT_THAT(client->GetCapabilities()->signing_keys, ElementsAre("2027-01"));

  ClientOptions wary;  // the id is right, the key is not
  wary.verify_keys = {SigningKey::Parse("2027-01", NewEd25519().public_pem).value()};
  client = Connect(wary).value();
  absl::Status wrong = client->PlanFusion(ModelRequest()).status();
  EXPECT_TRUE(absl::IsDataLoss(wrong)) << wrong;
  EXPECT_THAT(std::string(Message(wrong)), HasSubstr("not that of the key \"2027-01\""));
  EXPECT_TRUE(
      absl::IsDataLoss(client->PlanFusion(ModelRequest(), [](const PlanProgress&) {}).status()));
  EXPECT_TRUE(absl::IsDataLoss(client->GetKernels(keys).status()));
  wary.verify_keys = {SigningKey::Parse("2026-01", pair.public_pem).value()};
  EXPECT_THAT(std::string(Message(TryPlan(wary))), HasSubstr("none of those that are trusted"));
}

TEST_F(AuthTest, WhatIsNotSignedIsRefusedBySomeoneWhoAsksForIt) {
  Start();
  ClientOptions options;
  options.verify_keys = {SigningKey::Parse("k", std::string(64, 'a')).value()};
  absl::Status status = TryPlan(options);
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(std::string(Message(status)), HasSubstr("not signed"));
}

TEST_F(AuthTest, FusionctlTakesOnlyWhatItsKeySigned) {
  const std::string secret(64, 'b');
  Start({"--signing-key", dir_.Write("shared.key", secret + "\n")});
  TestModel relu;
  relu.Input("x", {8, 64}).Node("Relu", {"x"}, {"y"}).Output("y");
  std::string model = dir_.Write("model.onnx", relu.Bytes());
  auto plan = [&](const std::string& key) {
    return RunProgram({FUSIONCTL, "plan", model, "--plan-only", "--server", daemon_->address(),
                       "--verify-key", key});
  };
  EXPECT_EQ(plan(Path("shared.key")).code, 0) << plan(Path("shared.key")).err;
  std::filesystem::create_directory(Path("other"));
  ProgramResult refused = plan(dir_.Write("other/shared.key", std::string(64, 'c')));
  EXPECT_EQ(refused.code, 4);
  EXPECT_THAT(refused.err, HasSubstr("the signature is not that of the key"));
}

TEST_F(AuthTest, WithNamespacesTenantsShareAndSeeNothingOfEachOther) {
  std::string file = dir_.Write("tokens", StrCat(Token("a", "secret-a", "tenant: 'a'"),
                                                 Token("b", "secret-b", "tenant: 'b'")));
  Start({"--tokens", file, "--tenant-namespaces"});
  std::unique_ptr<Client> a = Connect({.token = "secret-a"}).value();
  std::unique_ptr<Client> b = Connect({.token = "secret-b"}).value();
  FusionReply first = a->PlanFusion(ModelRequest(PlanMode::kCompile)).value();
  std::vector<Digest> keys;
  for (const KernelStatus& kernel : first.kernels) keys.push_back(kernel.key);
  ASSERT_FALSE(keys.empty());

  EXPECT_TRUE(absl::IsNotFound(b->GetStoredPlan(first.plan_key).status()));
  EXPECT_TRUE(absl::IsNotFound(b->ExplainPlan(first.plan_key).status()));
  EXPECT_TRUE(absl::IsNotFound(b->GetReport(first.plan_key).status()));
  EXPECT_TRUE(absl::IsNotFound(b->GetKernelTexts(keys[0]).status()));
  EXPECT_TRUE(absl::IsNotFound(b->GetKernels({keys[0]}).status()));
  EXPECT_EQ(b->ListPlans()->size(), 0u);
  EXPECT_EQ(a->ListPlans()->size(), 1u);
  EXPECT_TRUE(a->GetKernels(keys).ok());

  FusionReply second = b->PlanFusion(ModelRequest(PlanMode::kCompile)).value();
  EXPECT_EQ(second.cache, CacheOutcome::kMiss);
  EXPECT_NE(second.plan_key, first.plan_key);
  for (const KernelStatus& kernel : second.kernels) {
    EXPECT_FALSE(kernel.cached) << "that would say that somebody has it";
  }
  EXPECT_EQ(b->PlanFusion(ModelRequest(PlanMode::kCompile))->cache, CacheOutcome::kHitMemory);
}

TEST_F(AuthTest, TheAccuracyIsThatOfTheCallersOwnReports) {
  std::string file = dir_.Write("tokens", StrCat(Token("a", "secret-a", "tenant: 'a'"),
                                                 Token("b", "secret-b", "tenant: 'b'")));
  Start({"--tokens", file});
  std::unique_ptr<Client> a = Connect({.token = "secret-a"}).value();
  std::unique_ptr<Client> b = Connect({.token = "secret-b"}).value();
  const FusionReply reply = a->PlanFusion(ModelRequest(PlanMode::kPlanOnly)).value();
  const LatencyReport report{.plan_key = reply.plan_key,
                             .launches = {{.launch = 0, .samples_us = {5, 6, 7}}},
                             .threads = reply.plan.threads,
                             .device = "the machine of a"};
  EXPECT_EQ(a->ReportLatency(report).value(), 3);
  ASSERT_EQ(a->GetAccuracy()->size(), 1u);
  EXPECT_EQ(a->GetAccuracy()->at(0).machines.at(0).machine, "the machine of a");
  EXPECT_EQ(a->GetAccuracy()->at(0).machines.at(0).tenant, "a");
  EXPECT_TRUE(b->GetAccuracy()->empty()) << "though both see the plan";
}

TEST_F(AuthTest, WithNamespacesNobodySeesWhatIsBeingMadeOrFailsForAnother) {
  std::string tokens = dir_.Write("tokens", StrCat(Token("a", "secret-a", "tenant: 'a'"),
                                                   Token("b", "secret-b", "tenant: 'b'")));
  StartGated({"--tokens", tokens, "--tenant-namespaces"});
  CloseGate();
  std::unique_ptr<Client> a = Connect({.token = "secret-a"}).value();
  std::unique_ptr<Client> b = Connect({.token = "secret-b"}).value();
  const FusionReply pending = a->PlanFusion(ModelRequest(PlanMode::kByDeadline)).value();
  const Digest key = pending.kernels.at(0).key;
  const std::string unknown(Message(b->GetKernels({Digest{}}).status()));
  auto as_unknown = [&] {
    absl::Status status = b->GetKernels({key}).status();
    EXPECT_TRUE(absl::IsNotFound(status)) << status;
    EXPECT_EQ(absl::StrReplaceAll(std::string(Message(status)), {{key.ToHex(), Digest{}.ToHex()}}),
              unknown);
  };
  as_unknown();  // at once: it would wait for its own
  dir_.Write("broken", "");
  OpenGate();
  EXPECT_TRUE(Eventually([&] { return Status()["workers"]["failed"].get<int64_t>() > 0; }));
  EXPECT_TRUE(absl::IsInternal(a->GetKernels({key}).status())) << a->GetKernels({key}).status();
  as_unknown();
}

TEST_F(AuthTest, WithNamespacesListsAndReportsCountTheCallersOwn) {
  std::string tokens = dir_.Write("tokens", StrCat(Token("a", "secret-a", "tenant: 'a'"),
                                                   Token("b", "secret-b", "tenant: 'b'")));
  Start({"--tokens", tokens, "--tenant-namespaces", "--store", dir_.path("store")});
  auto plan = [&](const std::string& secret, int64_t rows) {
    FusionRequest request = ModelRequest(PlanMode::kCompile);
    request.onnx_model = LinearReluModel(rows).Bytes();
    std::unique_ptr<Client> client = Connect({.token = secret}).value();
    const FusionReply reply = client->PlanFusion(request).value();
    LatencyReport report{.plan_key = reply.plan_key,
                         .kernels = LaunchedKernels(reply.plan),
                         .launches = {},
                         .run_samples_us = {100}};
    EXPECT_TRUE(client->ReportLatency(report).ok());
    return reply.plan_key;
  };
  const Digest oldest = plan("secret-b", 3);
  std::set<std::string> others;
  for (int64_t rows = 10; rows < 14; ++rows) others.insert(plan("secret-a", rows).ToHex());
  const Digest newest = plan("secret-b", 4);
  for (int64_t rows = 14; rows < 16; ++rows) others.insert(plan("secret-a", rows).ToHex());

  std::unique_ptr<Client> b = Connect({.token = "secret-b"}).value();
  EXPECT_EQ(b->GetReport(std::nullopt, 1).value().at(0).plan_key, newest) << "of its own";
  FusionCaller caller(daemon_->address());
  std::vector<std::string> listed, tokens_seen;
  v1::ListPlansRequest request;
  request.set_page_size(1);
  do {
    grpc::ClientContext context;
    context.AddMetadata("authorization", "Bearer secret-b");
    v1::ListPlansResponse page;
    ASSERT_TRUE(caller.stub().ListPlans(&context, request, &page).ok());
    for (const v1::PlanSummary& summary : page.plans()) listed.push_back(summary.plan_key());
    request.set_page_token(page.next_page_token());
    tokens_seen.push_back(page.next_page_token());
  } while (!request.page_token().empty());
  EXPECT_THAT(listed, ElementsAre(DigestToWire(newest), DigestToWire(oldest)));
  EXPECT_GE(tokens_seen.size(), 2u) << "or no token was looked at";
  for (const std::string& token : tokens_seen) {
    for (const std::string& other : others) EXPECT_THAT(token, Not(HasSubstr(other)));
  }
  EXPECT_EQ(Connect({.token = "secret-a"}).value()->ListPlans()->size(), 6u);
}

}  // namespace
}  // namespace fusion
