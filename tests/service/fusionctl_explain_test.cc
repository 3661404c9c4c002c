// fusionctl explain and fusionctl diff, as people run them.
#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/match.h"
#include "tests/service/dot_syntax.h"
#include "tests/service/fusionctl_fixture.h"

namespace fusion {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

class ExplainCommandTest : public FusionctlTest {
 protected:
  static ModelParams SmallBert() {
    return {.seq = 16, .layers = 2, .hidden = 32, .heads = 2, .kv_heads = 2, .ff = 64};
  }
  std::string Bert() { return Write("bert_tiny", SmallBert()); }
  static std::string ReadAll(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::stringstream out;
    out << file.rdbuf();
    return out.str();
  }
  // The first place of the first pair with nodes on both sides.
  static Json FirstPair(const Json& explained) {
    for (const Json& d : explained["decisions"]) {
      if (d["subject"] != "pair" || d["code"] == "view") continue;
      return d["places"][0];
    }
    ADD_FAILURE() << "no pair";
    return {};
  }
};

TEST_F(ExplainCommandTest, SaysWhyNoPlanWasThere) {
  const std::string model = Bert();
  ASSERT_EQ(Ctl({"plan", model, "--plan-only", "--threads", "3"}).code, 0);
  const Json there = CtlJson({"explain", model, "--miss", "--threads", "3"});
  EXPECT_EQ(there["cache"], "memory");
  const Json missed = CtlJson({"explain", model, "--miss", "--threads", "5"});
  EXPECT_EQ(missed["cache"], "planned");
  EXPECT_EQ(missed["nearest_plan_key"], there["plan_key"]);
  ASSERT_THAT(missed["differences"], SizeIs(1));
  EXPECT_EQ(missed["differences"][0]["field"], "device");
  const ProgramResult text = Ctl({"explain", model, "--miss", "--threads", "7"});
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, AllOf(HasSubstr("no plan was there: "), HasSubstr("nearest of "),
                              HasSubstr("\ndevice\n  asked   "), HasSubstr("\n  stored  ")));
}

TEST_F(ExplainCommandTest, SaysHowFarBlocksOfAnImageReach) {
  ModelParams image = {.depth = 1, .channels = 32, .image = 56};
  std::string model = Write("preactivation", image);
  int cut = 0;
  // Of a device whose numbers are the same everywhere.
  auto explain = [&](std::vector<std::string> more) {
    std::vector<std::string> words = {"explain", model,      "--threads",
                                      "4",       "--target", "generic-avx2"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  const size_t groups = CtlJson(explain({}))["groups"].size();
  for (size_t g = 0; g < groups; ++g) {
    ProgramResult text = Ctl(explain({"--group", StrCat(g)}));
    EXPECT_EQ(text.code, 0) << text.err;
    EXPECT_THAT(text.out, HasSubstr("\n  cut "));
    cut += absl::StrContains(text.out, "halo ");
  }
  EXPECT_EQ(cut, 2) << "groups whose blocks reach into their neighbours";
}

TEST_F(ExplainCommandTest, SaysHowAStreamedFormWasDerived) {
  // As many keys as leave no room for all scores of a block.
  ModelParams params = FindModel("mha")->defaults;
  params.seq = 2048;
  params.hidden = 128;
  params.heads = params.kv_heads = 2;
  std::string model = Write("mha", params);
  Json json = CtlJson({"explain", model});
  int streamed = 0;
  for (size_t g = 0; g < json["groups"].size(); ++g) {
    const Json& group = json["groups"][g];
    ProgramResult text = Ctl({"explain", model, "--group", StrCat(g)});
    EXPECT_EQ(text.code, 0) << text.err;
    bool derived = !group["derivation"].empty();
    EXPECT_EQ(text.out.find("\n  derived: ") != std::string::npos, derived) << text.out;
    if (group["tiles"].get<std::string>().find("streams") == std::string::npos) continue;
    ++streamed;
    EXPECT_TRUE(derived) << group;
    // What partial results are multiplied by, and from when.
    EXPECT_THAT(text.out, AllOf(HasSubstr("\n  derived: op "), HasSubstr("times e^(new - old) of "),
                                HasSubstr("before the first tile clamped to finite numbers\n")));
    // By the name of a node, too.
    ProgramResult why = Ctl({"explain", model, "--why", StrCat("#", group["nodes"][0].get<int>())});
    EXPECT_THAT(why.out, HasSubstr("times e^(new - old) of "));
  }
  EXPECT_EQ(streamed, 1) << json;
}

TEST_F(ExplainCommandTest, ShowsWhyGroupsAreOneKernelAndPairsAreTwo) {
  std::string model = Bert();
  ProgramResult text = Ctl({"explain", model});
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, AllOf(HasSubstr("why each group is one kernel"), HasSubstr("MatMul"),
                              HasSubstr("why groups that read from each other are two"),
                              HasSubstr("no-gain: one kernel is estimated to be no faster"),
                              HasSubstr("candidates; --candidates lists them")));
  EXPECT_THAT(text.out, Not(HasSubstr("\x1b")));
  EXPECT_THAT(Ctl({"explain", model, "--candidates"}).out, HasSubstr("what the search weighed"));

  Json json = CtlJson({"explain", model});
  std::set<int> explained;
  for (const Json& d : json["decisions"]) {
    EXPECT_NE(d["subject"], "candidate");
    if (d["subject"] != "group") continue;
    for (const Json& place : d["places"]) explained.insert(place["first_group"].get<int>());
  }
  EXPECT_EQ(explained.size(), json["groups"].size()) << "every group answers";
  EXPECT_GT(CtlJson({"explain", model, "--candidates"})["decisions"].size(),
            json["decisions"].size());
  EXPECT_EQ(json["plan_key"], CtlJson({"plan", model, "--plan-only"})["plan_key"]);
}

TEST_F(ExplainCommandTest, TellsWhyTwoNodesAreInTwoKernels) {
  std::string model = Bert();
  Json json = CtlJson({"explain", model});
  Json place = FirstPair(json);
  std::string a = json["node_names"][place["first_nodes"][0].get<size_t>()];
  std::string b = json["node_names"][place["second_nodes"].back().get<size_t>()];
  ProgramResult text = Ctl({"explain", model, "--why-not", a, b});
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, AllOf(HasSubstr("two kernels"), HasSubstr("first: "), HasSubstr(Quote(a)),
                              HasSubstr(Quote(b)), HasSubstr("on chip"), HasSubstr(" us")));
  // By position, of the stored plan alone.
  std::string key = json["plan_key"];
  std::string first = StrCat("#", place["first_nodes"][0].get<int>());
  std::string second = StrCat("#", place["second_nodes"].back().get<int>());
  Json by_key = CtlJson({"explain", key.substr(0, 12), "--why", first, second});
  ASSERT_THAT(by_key["decisions"], SizeIs(1));
  EXPECT_EQ(by_key["decisions"][0]["subject"], "pair");
  EXPECT_THAT(by_key["node_names"], IsEmpty());
  EXPECT_THAT(Ctl({"explain", key, "--why", first, second}).out, HasSubstr(first));
}

TEST_F(ExplainCommandTest, EveryNodeOfEveryGroupAnswers) {
  std::string model = Write("mlp", SmallMlp());
  Json json = CtlJson({"explain", model});
  for (size_t g = 0; g < json["groups"].size(); ++g) {
    ProgramResult group = Ctl({"explain", model, "--group", StrCat(g)});
    EXPECT_EQ(group.code, 0) << group.err;
    EXPECT_THAT(group.out, HasSubstr(StrCat("group ", g, ", "))) << g;
    for (const Json& node : json["groups"][g]["nodes"]) {
      std::string name = json["node_names"][node.get<size_t>()];
      ProgramResult why = Ctl({"explain", model, "--why", name});
      EXPECT_EQ(why.code, 0) << why.err;
      EXPECT_THAT(why.out, HasSubstr("one kernel")) << name;
    }
  }
}

TEST_F(ExplainCommandTest, NodesThatDoNotMeetAreFarApart) {
  std::string model = Bert();
  // One kernel a node: the first and the last have all the others between them.
  Json json = CtlJson({"explain", model, "--fusion", "op-by-op"});
  std::string last = StrCat("#", json["nodes"].get<int>() - 1);
  ProgramResult far = Ctl({"explain", model, "--fusion", "op-by-op", "--why", "#0", last});
  EXPECT_EQ(far.code, 0) << far.err;
  EXPECT_THAT(far.out, AllOf(HasSubstr("neither reads from the other"),
                             HasSubstr("between them on the shortest way")));
}

TEST_F(ExplainCommandTest, WordsThatNameNoNodeAreBadInput) {
  std::string model = Bert();
  struct {
    std::vector<std::string> words;
    int code;
    const char* message;
  } const kCases[] = {
      {{"explain", model, "--why", "nothing like it"}, 3, "no node has a name like it"},
      {{"explain", model, "--why", "MatMul"}, 3, " nodes fit: #"},
      {{"explain", model, "--why", "#99999"}, 3, "the plan has nodes #0..#"},
      {{"explain", model, "--why", "#1", "#1"}, 3, "are the same node"},
      {{"explain", model, "--group", "4000"}, 3, "group: 4000; the plan has groups 0.."},
      {{"explain", model, "--group", "1", "--why", "#1"}, 2, "--why"},
      {{"explain", "--why", "#1"}, 2, "PLAN"},
      {{"explain", "0123456789abcdef"}, 3, "no stored plan has a key that begins with"},
      {{"explain", "0123456789abcdef", "--threads", "2"}, 3, "says how a model is planned"},
      {{"explain", "no such thing"}, 3, "neither a file nor a plan key"},
      {{"diff", model}, 2, "OTHER"},
  };
  for (const auto& bad : kCases) {
    ProgramResult result = Ctl(bad.words);
    EXPECT_EQ(result.code, bad.code) << result.err;
    EXPECT_THAT(result.err, HasSubstr(bad.message));
  }
  std::string key = CtlJson({"explain", model})["plan_key"];
  EXPECT_THAT(Ctl({"explain", key, "--why", "MatMul"}).err, HasSubstr("give the model"));
  EXPECT_THAT(Ctl({"explain", key, "--dot", dir_.path("x.dot")}).err,
              HasSubstr("a picture is drawn of a model only"));
  EXPECT_THAT(BareCtl({"explain", key}).err, HasSubstr("expected --server ADDRESS or --store DIR"));
}

TEST_F(ExplainCommandTest, ASavedPlanNeedsNoService) {
  std::string model = Bert();
  std::string saved = dir_.path("bert.plan");
  ASSERT_EQ(Ctl({"explain", model, "--save", saved}).code, 0);
  ProgramResult text = BareCtl({"explain", saved});
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("why each group is one kernel"));
  ProgramResult json = BareCtl({"explain", saved, "--json"});
  Json live = CtlJson({"explain", model});
  EXPECT_EQ(Json::parse(json.out, nullptr, false), live);
  ProgramResult same = BareCtl({"diff", saved, saved, "--json"});
  EXPECT_EQ(same.code, 0) << same.err;
  EXPECT_TRUE(Json::parse(same.out, nullptr, false)["identical"]);

  // What is damaged is bad input, and said so.
  // How it was planned is settled: options would change nothing.
  for (std::vector<std::string> option : {std::vector<std::string>{"--fusion", "op-by-op"},
                                          {"--target", "h100"},
                                          {"--threads", "2"}}) {
    std::vector<std::string> words = {"explain", saved, option[0], option[1]};
    ProgramResult refused = BareCtl(words);
    EXPECT_EQ(refused.code, 3) << option[0];
    EXPECT_THAT(refused.err, AllOf(HasSubstr(StrCat(option[0], " says how a model is planned")),
                                   HasSubstr("bert.plan\" is a plan that was saved")));
    EXPECT_EQ(BareCtl({"diff", saved, saved, option[0], option[1]}).code, 3) << option[0];
  }
  EXPECT_EQ(Ctl({"diff", saved, model, "--fusion", "op-by-op"}).code, 0) << "of the model";
  std::string bytes = ReadAll(saved);
  ASSERT_TRUE(WriteFile(saved, bytes.substr(0, bytes.size() / 2)).ok());
  ProgramResult damaged = BareCtl({"explain", saved});
  EXPECT_EQ(damaged.code, 3);
  EXPECT_THAT(damaged.err, HasSubstr("bert.plan"));
  EXPECT_EQ(Ctl({"explain", model, "--save", dir_.path("no/such/dir")}).code, 3);
}

TEST_F(ExplainCommandTest, PicturesShowTheGraphBeforeAndAfter) {
  std::string model = Bert();
  std::string dot = dir_.path("plan.dot");
  std::string svg = dir_.path("plan.svg");
  ProgramResult result = Ctl({"explain", model, "--dot", dot, "--svg", svg});
  ASSERT_EQ(result.code, 0) << result.err;
  std::string text = ReadAll(dot);
  EXPECT_EQ(DotError(text), "");
  EXPECT_THAT(text, AllOf(HasSubstr("before, one kernel a node: "), HasSubstr("after, this plan: "),
                          HasSubstr("fillcolor=\"#a6cee3\"")));
  Json plan = CtlJson({"plan", model, "--plan-only"});
  for (size_t g = 0; g < plan["groups"].size(); ++g) {
    bool drawn = text.find(StrCat("cluster_after_", g, " ")) != std::string::npos;
    EXPECT_EQ(drawn, !plan["groups"][g]["nodes"].empty()) << g;
  }
  EXPECT_THAT(ReadAll(svg),
              AllOf(HasSubstr("<svg"), HasSubstr("after, this plan"), HasSubstr("</svg>")));
  EXPECT_EQ(Ctl({"explain", model, "--svg", dir_.path("no/such/dir")}).code, 3);
}

TEST_F(ExplainCommandTest, ADiffSaysWhichGroupsChangedAndWhy) {
  std::string model = Bert();
  std::string fused = dir_.path("fused.plan");
  std::string apart = dir_.path("apart.plan");
  std::string bitwise = dir_.path("bitwise.plan");
  ASSERT_EQ(Ctl({"explain", model, "--save", fused}).code, 0);
  ASSERT_EQ(Ctl({"explain", model, "--fusion", "op-by-op", "--save", apart}).code, 0);
  ASSERT_EQ(Ctl({"explain", model, "--numerics", "bitwise", "--save", bitwise}).code, 0);
  ProgramResult text = BareCtl({"diff", apart, fused});
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, AllOf(HasSubstr("kernels"), HasSubstr("estimate"), HasSubstr("part of "),
                              HasSubstr("gains "), HasSubstr(" more, ")));
  Json json = Json::parse(BareCtl({"diff", apart, fused, "--json"}).out, nullptr, false);
  EXPECT_FALSE(json["identical"]);
  EXPECT_GT(json["removed"].size(), json["added"].size());
  for (const char* list : {"removed", "added"}) {
    for (const Json& change : json[list]) EXPECT_NE(change["why"], "") << change;
  }
  EXPECT_LT(json["second"]["totals"]["kernels"], json["first"]["totals"]["kernels"]);
  // The other way round.
  Json back = Json::parse(BareCtl({"diff", fused, apart, "--json"}).out, nullptr, false);
  EXPECT_EQ(back["added"].size(), json["removed"].size());
  EXPECT_THAT(back["removed"].dump(), HasSubstr("op-by-op: the request asked for one kernel"));
  // The same groups, other kernels.
  Json changed = Json::parse(BareCtl({"diff", fused, bitwise, "--json"}).out, nullptr, false);
  EXPECT_FALSE(changed["changed"].empty() && changed["added"].empty()) << changed;

  // A key and a model, both of one service.
  std::string key = CtlJson({"explain", model, "--fusion", "op-by-op"})["plan_key"];
  Json mixed = CtlJson({"diff", key, model});
  EXPECT_EQ(mixed["removed"].size(), json["removed"].size());
  EXPECT_TRUE(CtlJson({"diff", key, model, "--fusion", "op-by-op"})["identical"]);
  std::string other = Write("mlp", SmallMlp());
  ProgramResult different = Ctl({"diff", key, other});
  EXPECT_EQ(different.code, 3);
  EXPECT_THAT(different.err, HasSubstr("the plans are of different graphs: "));
}

TEST_F(ExplainCommandTest, ExplainsPlansForDevicesWithoutACodeGenerator) {
  std::string model = Bert();
  Json json = CtlJson({"explain", model, "--target", "a100"});
  EXPECT_EQ(json["target"], "a100");
  EXPECT_FALSE(json["decisions"].empty());
}

}  // namespace
}  // namespace fusion
