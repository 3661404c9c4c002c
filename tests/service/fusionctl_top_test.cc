// fusionctl top against a real fusiond.
#include <signal.h>

#include <thread>

#include "tests/service/fusionctl_fixture.h"

namespace fusion {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class TopTest : public FusionctlTest {
 protected:
  // A server with two plans and their latencies. This process is its administrator.
  void Serve(std::vector<std::string> args = {}) {
    server_ = TestDaemon::Start(FUSIOND, std::move(args)).value();
    const std::string model = Write("mlp", SmallMlp());
    for (const char* fusion : {"fused", "op-by-op"}) {
      const ProgramResult bench =
          RunProgram({FUSIONCTL, "bench", model, "--fusion", fusion, "--pairs", "3", "--kernels",
                      "--server", server_->local_address()});
      ASSERT_EQ(bench.code, 0) << bench.err;
    }
  }
  std::vector<std::string> Top(const std::vector<std::string>& more) const {
    std::vector<std::string> words = {FUSIONCTL, "top", "--server", server_->local_address()};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  std::unique_ptr<TestDaemon> server_;
};

TEST_F(TopTest, OnceShowsCallsQueueWorkersAndPlans) {
  Serve();
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{}, std::vector<std::string>{"--once"}}) {
    const ProgramResult shown = RunProgram(Top(more));
    EXPECT_EQ(shown.code, 0) << shown.err;
    EXPECT_THAT(shown.out,
                AllOf(HasSubstr("fusiond 0."), HasSubstr("ready"), HasSubstr("on average over"),
                      HasSubstr("PlanFusion"), HasSubstr("OK"), HasSubstr(" planned"),
                      HasSubstr("compile "), HasSubstr("memory: ")));
    EXPECT_THAT(shown.out, AllOf(HasSubstr("measured / estimate"), HasSubstr("model")));
    EXPECT_THAT(shown.out, Not(HasSubstr("\x1b"))) << "nobody looks at a terminal";
  }
}

TEST_F(TopTest, JsonHasTheSame) {
  Serve();
  const ProgramResult result = RunProgram(Top({"--json"}));
  ASSERT_EQ(result.code, 0) << result.err;
  const Json top = Json::parse(result.out);
  EXPECT_EQ(top["ready"], true);
  EXPECT_GT(top["codes"]["OK"]["total"], 0);
  EXPECT_GT(top["methods"]["PlanFusion"]["mean_us"], 0);
  EXPECT_GE(top["plans"]["planned"], 2);
  EXPECT_GT(top["workers"]["done"], 0);
  EXPECT_EQ(top["tiers"][0]["name"], "memory");
  EXPECT_EQ(top["measured_plans"], 2) << "fused, and op by op";
  ASSERT_EQ(top["top_plans"].size(), 2u);
  const Json& first = top["top_plans"][0];
  EXPECT_EQ(first["plan_key"].get<std::string>().size(), 64u);
  EXPECT_TRUE(first["model_name"].get<std::string>().ends_with("model"));
  EXPECT_GT(first["median_us"], 0);
  EXPECT_GT(first["estimated_us"], 0);
  EXPECT_GE(
      first["median_us"].get<double>() * first["calls"].get<double>(),
      top["top_plans"][1]["median_us"].get<double>() * top["top_plans"][1]["calls"].get<double>());
  EXPECT_GT(top["rates_over_seconds"], 0);
}

TEST_F(TopTest, ItsOptionsAreChecked) {
  EXPECT_THAT(BareCtl({"top"}).err, HasSubstr("expected --server ADDRESS"));
  EXPECT_EQ(BareCtl({"top"}).code, 2);
  for (const char* interval : {"0", "0.1", "-2", "x", "4000", "nan"}) {
    const ProgramResult result = Ctl({"top", "--interval", interval});
    EXPECT_EQ(result.code, 2) << interval << result.err;
    EXPECT_THAT(result.err, HasSubstr("--interval")) << interval;
  }
  // Over TCP without tokens nobody is an administrator.
  const ProgramResult refused = Ctl({"top", "--once"});
  EXPECT_EQ(refused.code, 4);
  EXPECT_THAT(refused.err, HasSubstr("the role admin"));
  EXPECT_EQ(BareCtl({"top", "--server", "127.0.0.1:1"}).code, 4) << "nobody listens";
}

// On a terminal, until Ctrl-C; a server that goes away is shown meanwhile.
TEST_F(TopTest, ATerminalShowsItUntilCtrlC) {
  Serve();
  // The shell ends the server, later `top`, as somebody at the terminal does.
  const std::string script =
      StrCat("(sleep 1; kill -KILL ", server_->pid(), "; sleep 2; kill -INT $$) & exec ",
             StrJoin(Top({"--interval", "0.2"}), " "));
  const ProgramResult shown = RunOnTerminal({"/bin/sh", "-c", script});
  EXPECT_EQ(shown.code, 0) << shown.out;
  EXPECT_THAT(shown.out,
              AllOf(HasSubstr("\x1b[?25l"), HasSubstr("\x1b[H"), HasSubstr("no answer for")));
  EXPECT_TRUE(shown.out.find("\x1b[?25h") > shown.out.rfind("\x1b[H")) << "the cursor is back";
  // Frames have rates over the time since the one before.
  EXPECT_THAT(shown.out, HasSubstr(" a second, over "));
}

}  // namespace
}  // namespace fusion
