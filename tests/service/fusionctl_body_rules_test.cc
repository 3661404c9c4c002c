// Rules in the bodies of loops through the real programs.
#include "tests/service/fusionctl_fixture.h"
#include "tests/support/test_model.h"

namespace fusion {
namespace {

using testing::HasSubstr;

class BodyRulesCommandTest : public FusionctlTest {};

// Random numbers; more bytes than are sent with a request.
HostTensor Large(Dims dims) {
  HostTensor out(DType::kF32, std::move(dims));
  for (int64_t i = 0; i < out.elements(); ++i) {
    out.SetDouble(i, 0.01 * static_cast<double>(i % 17));
  }
  return out;
}

TEST_F(BodyRulesCommandTest, RulesReachIntoBodies) {
  TestModel body;
  body.Input("h", {"b", 24}).Input("row", {"b", 24});
  body.Node("MatMul", {"h", "w"}, {"p"}, "product").Node("Add", {"p", "row"}, {"s"}, "sum");
  body.Node("Reshape", {"s", "flat"}, {"f"}, "flat").Node("Reshape", {"f", "back"}, {"g"}, "back");
  body.Node("Tanh", {"g"}, {"next"}, "tanh");
  body.Node("Identity", {"next"}, {"seen"}).Output("next").Output("seen");
  TestModel m;
  m.Initializer("w", Large({24, 24}));
  m.Initializer("flat", HostTensor::FromValues<int64_t>(DType::kI64, {3}, {-1, 2, 12}));
  m.Initializer("back", HostTensor::FromValues<int64_t>(DType::kI64, {2}, {-1, 24}));
  m.Input("begin", {"b", 24}).Input("x", {"s", "b", 24});
  m.Node("Scan", {"begin", "x"}, {"last", "all"}, "scan").AttrGraph("body", body);
  m.Attr("num_scan_inputs", 1).Output("last").Output("all");
  const std::string model = Write(m.proto());
  auto rules = [&](const std::string& action) {
    return dir_.Write("rules.textproto", StrCat(R"(rules {
  name: "linear"
  pattern {
    nodes { id: "m" ops: "MatMul" }
    nodes { id: "a" ops: "Add" }
    edges { from: "m" to: "a" }
  }
  )",
                                                action, "\n}\n"));
  };
  const std::string forbid = rules("forbid {}");
  const std::vector<std::string> fixed = {"--bind", "s=40", "--bind", "b=3"};
  const std::vector<std::string> open = {"--range", "s=1..40", "--range", "b=1..5",
                                         "--bind",  "s=7",     "--bind",  "b=4"};
  for (const std::vector<std::string>& dims : {fixed, open}) {
    auto with = [&](std::vector<std::string> words, bool ruled = true) {
      words.insert(words.end(), dims.begin(), dims.end());
      if (ruled) words.insert(words.end(), {"--rules", forbid});
      return words;
    };
    const Json plain = CtlJson(with({"plan", model}, false));
    const Json ruled = CtlJson(with({"plan", model}));
    EXPECT_NE(plain["plan_key"], ruled["plan_key"]);
    EXPECT_EQ(ruled["loops"][0]["launches"], plain["loops"][0]["launches"].get<int>() + 1);
    const Json verified = CtlJson(with({"verify", model}));
    EXPECT_EQ(verified["plan_key"], ruled["plan_key"]);
    EXPECT_EQ(verified["pass"], true) << verified;
    const std::vector<std::string> explain = with({"explain", model});
    // The plan that serves best along open dims may be another one's.
    const std::string why = dims == fixed ? "possible without the rule: " : "1 > 2 ";
    EXPECT_THAT(Ctl(explain).out, HasSubstr(why));
    const std::vector<std::string> show = with({"show", model, "plan"});
    EXPECT_EQ(Ctl(show).code, 0);
    // What a lock pins needs no rules.
    const std::string lock = dir_.path("ruled.lock");
    CtlJson(with({"plan", model, "--write-lock", lock}));
    const Json pinned = CtlJson(with({"plan", model, "--lock", lock}, false));
    EXPECT_EQ(pinned["launches"], ruled["launches"]);
  }
}

TEST_F(BodyRulesCommandTest, WhatARuleForcesInABodyMustBeAKernel) {
  TestModel body;
  body.Input("row", {3, 20}).Node("Exp", {"row"}, {"e"}, "exp");
  body.Node("Reshape", {"e", "other"}, {"f"}, "view").Node("Tanh", {"f"}, {"out"}, "tanh");
  body.Output("out");
  TestModel m;
  m.Initializer("other", HostTensor::FromValues<int64_t>(DType::kI64, {2}, {4, 15}));
  m.Input("x", {40, 3, 20}).Node("Scan", {"x"}, {"all"}, "scan").AttrGraph("body", body);
  m.Attr("num_scan_inputs", 1).Output("all");
  const std::string model = Write(m.proto());
  const std::string rules = dir_.Write("force.textproto", R"(rules {
  name: "both"
  pattern {
    nodes { id: "a" ops: "Exp" }
    nodes { id: "b" ops: "Tanh" }
    edges { from: "a" to: "b" through: "Reshape" }
  }
  force {}
})");
  ProgramResult result = Ctl({"plan", model, "--rules", rules});
  EXPECT_EQ(result.code, 3);
  EXPECT_THAT(result.err, HasSubstr(StrCat("--rules: ", rules,
                                           ":1: rule \"both\" forces Exp, Tanh "
                                           "into one kernel in the body of node \"scan\" (")));
  EXPECT_THAT(result.err, HasSubstr("there is no such kernel: reshape: "));
  ExpectOneErrorLine(result);
}

}  // namespace
}  // namespace fusion
