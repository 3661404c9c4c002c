// A server whose compiler is missing, comes and goes, or makes kernels that kill their workers.
#include "core/base/files/server_state.h"
#include "core/wire/error_details.h"
#include "fusion/v1/fusion_admin.pb.h"
#include "tests/service/server_fixture.h"

namespace fusion {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

class CompilerTest : public ServerTest {
 protected:
  grpc::Status Compile(TestModel model) {
    v1::PlanFusionResponse response;
    return caller_->Plan(RequestFor(model.proto()), &response);
  }
  v1::GetCapabilitiesResponse Capabilities() {
    v1::GetCapabilitiesResponse capabilities;
    grpc::ClientContext context;
    EXPECT_TRUE(caller_->stub().GetCapabilities(&context, {}, &capabilities).ok());
    return capabilities;
  }
};

TEST_F(CompilerTest, WithoutACompilerPlansAreMadeAndKernelsRefusedByName) {
  Start({"--allow-compiler", "/nowhere/g++"});
  EXPECT_TRUE(daemon_->WaitForOutput("no_compiler"));
  EXPECT_TRUE(caller_->Healthy());
  v1::PlanFusionResponse plan =
      caller_->Plan(RequestFor(LinearReluModel().proto(), v1::PLAN_MODE_PLAN_ONLY));
  EXPECT_GT(plan.plan().kernels_size(), 0);
  const grpc::Status refused = Compile(LinearReluModel());
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(refused.error_message(),
              HasSubstr("nothing can be compiled here: --compiler: no compiler found; looked for "
                        "/nowhere/g++"));
  absl::Status decoded = FailedPrecondition("");
  DecodeErrorDetails(refused.error_details(), &decoded);
  EXPECT_TRUE(IsOfServerState(decoded)) << "not the request's fault";
  EXPECT_THAT(Capabilities().compiler(), IsEmpty());
  EXPECT_THAT(Status()["toolchain"]["missing"], HasSubstr("/nowhere/g++"));
}

TEST_F(CompilerTest, WhatIsNoCompilerIsAsGoodAsNone) {
  Start({"--allow-compiler", "/bin/true"});
  EXPECT_THAT(Compile(LinearReluModel()).error_message(), HasSubstr("neither GCC nor clang"));
}

TEST_F(CompilerTest, StoredKernelsAreDeliveredWithoutTheCompilerThatMadeThem) {
  const std::string compiler = WriteCompiler("#!/bin/sh\nexec /usr/bin/g++ \"$@\"\n");
  const std::vector<std::string> args = {"--store", dir_.path("store"), "--allow-compiler",
                                         compiler};
  Start(args);
  EXPECT_EQ(Capabilities().compiler().substr(0, 3), "g++");
  ASSERT_TRUE(Compile(LinearReluModel()).ok());
  daemon_->Stop();
  std::filesystem::remove(compiler);
  Start(args);
  v1::PlanFusionResponse response = caller_->Plan(RequestFor(LinearReluModel().proto()));
  EXPECT_EQ(response.kernels(0).state(), v1::KERNEL_STATE_READY);
  EXPECT_TRUE(response.kernels(0).cached());
  const grpc::Status refused = Compile(LinearReluModel(3));
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(refused.error_message(), HasSubstr("--compiler: no compiler found"));
}

TEST_F(CompilerTest, ACompilerThatIsGoneForAWhileIsNobodysFault) {
  const std::string text = "#!/bin/sh\nexec /usr/bin/g++ \"$@\"\n";
  const std::string compiler = WriteCompiler(text);
  Start({"--allow-compiler", compiler, "--sandbox", "auto"});
  std::filesystem::remove(compiler);
  const grpc::Status refused = Compile(LinearReluModel());
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(refused.error_message(), HasSubstr(StrCat("no compiler now: ", compiler)));
  EXPECT_THAT(Status()["toolchain"]["missing"], HasSubstr(compiler));
  WriteCompiler(text);
  const grpc::Status made = Compile(LinearReluModel());
  EXPECT_TRUE(made.ok()) << made.error_message();
  EXPECT_EQ(Status()["workers"]["failures_remembered"], 0);
}

TEST_F(CompilerTest, AKernelThatKillsTwoWorkersStaysInQuarantineOverARestart) {
  const std::vector<std::string> args = {"--store",          dir_.path("store"),
                                         "--allow-compiler", WriteCompiler(kBombingCompiler),
                                         "--workers",        "1",
                                         "--sandbox",        "none"};
  Start(args);  // its probes only compile
  dir_.Write("bomb", "");
  EXPECT_THAT(Compile(LinearReluModel()).error_message(), HasSubstr("worker failed in stage"));
  const nlohmann::json quarantine = Status()["quarantine"];
  ASSERT_THAT(quarantine, Not(SizeIs(0)));
  EXPECT_THAT(quarantine[0]["reason"], HasSubstr("killed by signal 4"));
  EXPECT_GT(quarantine[0]["since_unix_ms"], 1e12);
  EXPECT_THAT(HttpGet(daemon_->admin_address(), "/metrics").body,
              HasSubstr(StrCat("fusion_quarantined_kernels ", quarantine.size())));
  const int64_t crashed = Status()["workers"]["crashed"];
  EXPECT_EQ(crashed, static_cast<int64_t>(quarantine.size()));
  daemon_->Stop();

  std::filesystem::remove(dir_.path("bomb"));
  Start(args);
  EXPECT_EQ(Status()["quarantine"], quarantine);
  EXPECT_THAT(Compile(LinearReluModel()).error_message(), HasSubstr("in quarantine since 20"));
  EXPECT_EQ(Status()["workers"]["crashed"], 0) << "no worker was tried";
  daemon_->Stop();

  std::filesystem::remove_all(dir_.path("store/quarantine"));
  Start(args);
  const grpc::Status made = Compile(LinearReluModel());
  EXPECT_TRUE(made.ok()) << made.error_message();
}

TEST_F(CompilerTest, AKernelOverWhichTwoWorkersHadToBeKilledGoesIntoQuarantine) {
  Start({"--allow-compiler", WriteCompiler(kBombingCompiler), "--sandbox", "none",
         "--compile-seconds", "2", "--failure-ttl-seconds", "0"});
  dir_.Write("hang", "");
  EXPECT_THAT(Compile(LinearReluModel()).error_message(), HasSubstr("killed after 6 s in stage"));
  EXPECT_THAT(Status()["quarantine"], SizeIs(0)) << "a slow moment does not decide for ever";
  std::filesystem::remove(dir_.path("hang"));
  EXPECT_TRUE(Compile(LinearReluModel()).ok());
  std::string gone;
  v1::InvalidateRequest all;
  all.set_all(true);
  auto forget = [&] {
    return admin_->CallBytes("/fusion.v1.FusionAdmin/Invalidate", all.SerializeAsString(), &gone);
  };
  ASSERT_TRUE(forget().ok());
  dir_.Write("hang", "");
  EXPECT_THAT(Compile(LinearReluModel()).error_message(), HasSubstr("killed after 6 s in stage"));
  EXPECT_THAT(Status()["quarantine"], SizeIs(0));
  ASSERT_TRUE(forget().ok());
  EXPECT_THAT(Compile(LinearReluModel()).error_message(), HasSubstr("killed after 6 s in stage"));
  EXPECT_THAT(Status()["quarantine"], SizeIs(0)) << "an operator let it be tried again";
  EXPECT_THAT(Compile(LinearReluModel()).error_message(), HasSubstr("killed after 6 s in stage"));
  EXPECT_THAT(Status()["quarantine"], Not(SizeIs(0)));
  std::filesystem::remove(dir_.path("hang"));
  EXPECT_THAT(Compile(LinearReluModel()).error_message(), HasSubstr("in quarantine since 20"));
}

TEST_F(CompilerTest, AFailureIsForgottenAfterItsTime) {
  const std::string compiler = WriteCompiler(
      "#!/bin/sh\ncase \"$1\" in --version|-print-prog-name=*) exec /usr/bin/g++ \"$@\";; esac\n"
      "grep -q fusion_probe kernel.cc && exec /usr/bin/g++ \"$@\"\n"
      "echo 'kernel.cc:1: error: not today'\nexit 1\n");
  for (const auto& [seconds, tried] : {std::pair{"600", false}, {"0", true}}) {
    Start({"--allow-compiler", compiler, "--failure-ttl-seconds", seconds});
    EXPECT_THAT(Compile(LinearReluModel()).error_message(), HasSubstr("not today"));
    const int64_t once = Status()["workers"]["failed"];
    EXPECT_GT(once, 0);
    EXPECT_THAT(Compile(LinearReluModel()).error_message(), HasSubstr("not today"));
    EXPECT_EQ(Status()["workers"]["failed"] > once, tried) << seconds;
    daemon_->Stop();
  }
}

TEST_F(CompilerTest, TheSandboxIsShownEverywhere) {
  Start();
  const std::string level = Status()["workers"]["sandbox"];
  EXPECT_THAT(level, testing::EndsWith("no_new_privs rlimits"));
  EXPECT_EQ(Capabilities().sandbox(), level);
  EXPECT_THAT(daemon_->output(), HasSubstr(level));
  daemon_->Stop();
  Start({"--sandbox", "none"});
  EXPECT_EQ(Status()["workers"]["sandbox"], "no_new_privs rlimits");
  EXPECT_THAT(daemon_->output(), HasSubstr("weak_sandbox"));
}

}  // namespace
}  // namespace fusion
