// Rules as people use them: fusionctl --rules, and fusiond --rules-file.
#include "tests/service/fusionctl_fixture.h"

namespace fusion {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class RulesCommandTest : public FusionctlTest {
 protected:
  std::string Mlp() { return Write("mlp", SmallMlp()); }

  // A product and the sum behind it, or Tanh of a reshaped product.
  std::string RulesFile(const std::string& action) {
    return dir_.Write("rules.textproto", StrCat(R"(# about linears
rules {
  name: "linear"
  pattern {
    nodes { id: "m" ops: ["MatMul", "Gemm"] }
    nodes { id: "n" ops: "*" }
    edges { from: "m" to: "n" }
  }
  )",
                                                action, "\n}\n"));
  }
};

TEST_F(RulesCommandTest, AForbidIsFollowedByEveryCommandAndExplained) {
  std::string model = Mlp();
  std::string rules = RulesFile("forbid {}");
  Json plain = CtlJson({"plan", model});
  Json ruled = CtlJson({"plan", model, "--rules", rules});
  EXPECT_NE(ruled["plan_key"], plain["plan_key"]);
  EXPECT_GT(ruled["totals"]["kernels"], plain["totals"]["kernels"]);
  EXPECT_EQ(CtlJson({"plan", model, "--rules", rules})["plan_key"], ruled["plan_key"]);
  EXPECT_TRUE(CtlJson({"verify", model, "--rules", rules})["pass"]);
  Json bench = CtlJson({"bench", model, "--rules", rules, "--pairs", "2", "--no-report"});
  EXPECT_EQ(bench["fused"]["plan_key"], ruled["plan_key"]);
  EXPECT_EQ(bench["op_by_op"]["plan_key"],
            CtlJson({"plan", model, "--fusion", "op-by-op"})["plan_key"])
      << "the baseline follows no rules";

  Json explained = CtlJson({"explain", model, "--rules", rules});
  EXPECT_EQ(explained["plan_key"], ruled["plan_key"]);
  int forbidden = 0;
  for (const Json& d : explained["decisions"]) {
    if (d["code"] != "rule") continue;
    ++forbidden;
    EXPECT_EQ(d["verdict"], "forbidden");
    EXPECT_THAT(d["reason"].get<std::string>(), HasSubstr("rule \"linear\" forbids one kernel"));
    Json place = d["places"][0];
    std::string a = StrCat("#", place["first_nodes"].back().get<int>());
    std::string b = StrCat("#", place["second_nodes"][0].get<int>());
    ProgramResult why = Ctl({"explain", model, "--rules", rules, "--why-not", a, b});
    EXPECT_EQ(why.code, 0) << why.err;
    EXPECT_THAT(why.out, AllOf(HasSubstr("rule \"linear\""), HasSubstr(" us")));
  }
  EXPECT_GT(forbidden, 0);
}

TEST_F(RulesCommandTest, ForcingWhatIsIllegalIsBadInputWithTheReason) {
  // All of four BERT layers in one kernel.
  ModelParams params{.seq = 16, .layers = 4, .hidden = 32, .heads = 2, .kv_heads = 2, .ff = 64};
  std::string model = Write("bert_tiny", params);
  std::string rules = dir_.Write("force.textproto", R"(
rules {
  name: "everything"
  pattern {
    nodes { id: "a" ops: "*" }
    nodes { id: "b" ops: "*" }
    edges { from: "a" to: "b" }
  }
  force {}
})");
  ProgramResult result = Ctl({"plan", model, "--rules", rules});
  EXPECT_EQ(result.code, 3);
  EXPECT_THAT(result.err,
              AllOf(HasSubstr("rule \"everything\" forces node \""), HasSubstr(" into one kernel"),
                    HasSubstr("there is no such kernel: "),
                    testing::ContainsRegex("kernel: [a-z-]+: .*[0-9]")));
  ExpectOneErrorLine(result);
  Json error = CtlJson({"plan", model, "--rules", rules}, 3);
  EXPECT_EQ(error["error"]["code"], "FAILED_PRECONDITION");
  EXPECT_EQ(Ctl({"plan", model, "--rules", rules, "--fusion", "op-by-op"}).code, 0);
}

TEST_F(RulesCommandTest, BadFilesNameFileAndLine) {
  std::string model = Mlp();
  struct {
    std::string action;
    const char* message;
  } const kCases[] = {
      {"force {", "rules.textproto:11: column "},
      {"", "rules.textproto:2: rules[0] \"linear\": action: missing"},
      {"bias { factor: 1000 }", "bias.factor: 1000; expected 0.01..100"},
      {"forbid {} when: 'l1_usage < 0.8 * l1_capcity'",
       "when[0]: line 1, column 18: expected a term"},
  };
  for (const auto& bad : kCases) {
    ProgramResult result = Ctl({"plan", model, "--rules", RulesFile(bad.action)});
    EXPECT_EQ(result.code, 3) << bad.action;
    EXPECT_THAT(result.err, AllOf(HasSubstr("--rules: "), HasSubstr(bad.message)));
    ExpectOneErrorLine(result);
  }
  ProgramResult absent = Ctl({"plan", model, "--rules", dir_.path("none.textproto")});
  EXPECT_EQ(absent.code, 3);
  EXPECT_THAT(absent.err, HasSubstr("none.textproto"));
  // Operators are the service's to know.
  std::string file = dir_.Write("op.textproto",
                                "# one\nrules { name: 'x' pattern { nodes { id: 'a' ops: 'Fly' } } "
                                "force {} }");
  ProgramResult unknown = Ctl({"plan", model, "--rules", file});
  EXPECT_EQ(unknown.code, 3);
  EXPECT_THAT(unknown.err,
              HasSubstr(StrCat("--rules: ", file,
                               ":2: rule \"x\": ops of node \"a\": \"Fly\" is no operator")));
  EXPECT_EQ(Ctl({"plan", model, "--rules", ""}).code, 2);
}

TEST_F(RulesCommandTest, AServersFileIsForEveryRequest) {
  std::string model = Mlp();
  std::string rules = RulesFile("forbid {}");
  Json ruled = CtlJson({"plan", model, "--rules", rules, "--plan-only"});
  auto other = TestDaemon::Start(FUSIOND, {"--rules-file", rules});
  ASSERT_TRUE(other.ok()) << other.status();
  ProgramResult result =
      BareCtl({"plan", model, "--server", (*other)->address(), "--plan-only", "--json"});
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(Json::parse(result.out)["plan_key"], ruled["plan_key"]);
  Json status = Json::parse(HttpGet((*other)->admin_address(), "/statusz").body);
  EXPECT_EQ(status["config"]["rules-file"], rules);
}

// The fault of who keeps the service: not of a caller's file, even if there is one.
TEST_F(RulesCommandTest, AServersRuleThatForcesTheImpossibleIsNoBadInput) {
  ModelParams params{.seq = 16, .layers = 4, .hidden = 32, .heads = 2, .kv_heads = 2, .ff = 64};
  std::string model = Write("bert_tiny", params);
  auto force = [](const char* name) {
    return StrCat("rules { name: '", name, R"(' pattern {
    nodes { id: "a" ops: "*" } nodes { id: "b" ops: "*" } edges { from: "a" to: "b" } } force {} })");
  };
  std::string theirs = dir_.Write("theirs.textproto", force("theirs"));
  std::string own = dir_.Write("own.textproto",
                               "rules { name: 'own' pattern { nodes { id: 'a' ops: 'Relu' } } "
                               "bias { factor: 0.9 } }");
  ASSERT_EQ(Ctl({"plan", model, "--rules", theirs, "--plan-only"}).code, 3);
  auto other = TestDaemon::Start(FUSIOND, {"--rules-file", theirs});
  ASSERT_TRUE(other.ok()) << other.status();
  for (std::vector<std::string> more : {std::vector<std::string>{}, {"--rules", own}}) {
    std::vector<std::string> words = {"plan", model, "--plan-only", "--server",
                                      (*other)->address()};
    words.insert(words.end(), more.begin(), more.end());
    ProgramResult result = BareCtl(words);
    EXPECT_EQ(result.code, 4) << result.err;
    EXPECT_THAT(result.err, HasSubstr("a rule of this service (--rules-file): "));
    EXPECT_THAT(result.err, HasSubstr("rule \"theirs\" forces node \""));
    EXPECT_THAT(result.err, testing::Not(HasSubstr("own.textproto")));
  }
}

// Products that read one tensor run side by side; who forbids it is told, with what it costs.
TEST_F(RulesCommandTest, AForbidOfGroupsSideBySideIsExplained) {
  std::string model = Write("bert_layer");
  std::string rules = dir_.Write("qk.textproto", R"(
rules {
  name: "apart"
  pattern {
    nodes { id: "q" ops: "MatMul" }
    nodes { id: "k" ops: "MatMul" }
    inputs { nodes: ["q", "k"] input: 0 }
  }
  forbid {}
})");
  std::vector<std::string> pair = {"query/MatMul", "key/MatMul"};
  Json told = CtlJson({"explain", model, "--target", "generic-avx2", "--threads", "2", "--rules",
                       rules, "--why-not", pair[0], pair[1]});
  std::string saw;
  for (const Json& d : told["decisions"]) {
    if (d["code"] != "rule") continue;
    EXPECT_EQ(d["subject"], "siblings");
    EXPECT_THAT(d["reason"].get<std::string>(), HasSubstr("rule \"apart\" forbids one kernel"));
    ASSERT_FALSE(d["flips"].empty());
    saw = d["flips"][0]["words"];
    EXPECT_GT(d["benefit_us"].get<double>(), 0) << "side by side is faster";
  }
  EXPECT_THAT(saw,
              testing::ContainsRegex("possible without the rule: .* us together, .* us apart"));
  ProgramResult text = Ctl({"explain", model, "--target", "generic-avx2", "--threads", "2",
                            "--rules", rules, "--why-not", pair[0], pair[1]});
  EXPECT_THAT(text.out, AllOf(HasSubstr("two kernels that read the same"), HasSubstr("  rule: ")));
  ProgramResult all =
      Ctl({"explain", model, "--target", "generic-avx2", "--threads", "2", "--rules", rules});
  EXPECT_THAT(all.out, HasSubstr("why groups that read the same are two\n"));
}

TEST_F(RulesCommandTest, TheShippedFileFailsNoRequest) {
  std::string rules = StrCat(FUSION_SOURCE_DIR, "/deploy/rules/autofusion.textproto");
  for (const char* name : {"bert_tiny", "mha", "llama_small_decode", "layernorm", "mlp"}) {
    ModelParams params = FindModel(name)->defaults;
    params.hidden = std::min<int64_t>(params.hidden, 256);
    params.heads = params.kv_heads = 4;
    params.ff = std::min<int64_t>(params.ff, 512);
    std::string model = Write(name, params);
    for (const char* target : {"generic-avx2", "h100", "ascend_910b"}) {
      ProgramResult result =
          Ctl({"plan", model, "--rules", rules, "--plan-only", "--target", target});
      EXPECT_EQ(result.code, 0) << name << " on " << target << ": " << result.err;
    }
  }
}

TEST_F(RulesCommandTest, HelpAndCompletionKnowTheOption) {
  for (const char* command : {"plan", "run", "bench", "verify", "explain", "diff"}) {
    EXPECT_THAT(BareCtl({command, "--help"}).out, HasSubstr("--rules FILE")) << command;
  }
  EXPECT_THAT(BareCtl({"completion", "bash"}).out, HasSubstr("--rules"));
}

}  // namespace
}  // namespace fusion
