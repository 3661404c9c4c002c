// Loops of a plan through the real programs.
#include "tests/service/fusionctl_fixture.h"
#include "tests/support/test_model.h"

namespace fusion {
namespace {

using testing::HasSubstr;

class LoopsCommandTest : public FusionctlTest {
 protected:
  // Random numbers; more bytes than are sent with a request.
  static HostTensor Large(Dims dims) {
    HostTensor out(DType::kF32, std::move(dims));
    for (int64_t i = 0; i < out.elements(); ++i) {
      out.SetDouble(i, 0.01 * static_cast<double>(i % 17));
    }
    return out;
  }

  // sum = sum + row, row by row of x: f32[40,320].
  static TestModel RunningSum(bool weights) {
    TestModel body;
    body.Input("sum", {320}).Input("row", {320}).Node("Add", {"sum", "row"}, {"next"}, "add");
    body.Node("Identity", {"next"}, {"seen"}).Output("next").Output("seen");
    TestModel m;
    if (weights) m.Initializer("begin", Large({320})).Initializer("x", Large({40, 320}));
    if (!weights) m.Input("begin", {320}).Input("x", {40, 320});
    m.Input("more", {320});
    m.Node("Scan", {"begin", "x"}, {"last", "all"}, "scan").AttrGraph("body", body);
    m.Attr("num_scan_inputs", 1);
    m.Node("Add", {"last", "more"}, {"y"}, "add").Output("y").Output("all");
    return m;
  }

  // v = v + p, `n` times, where p is what a run appends `new` to `past` of.
  static TestModel ReadsACache() {
    TestModel body;
    body.Input("i", {}, DType::kI64).Input("going", {}, DType::kBool).Input("v", {4, 8});
    body.Node("Add", {"v", "present"}, {"next"}, "add").Output("going").Output("next");
    TestModel m;
    m.Input("past", {3, 8}).Input("new", {1, 8}).Input("v", {4, 8});
    HostTensor passes(DType::kI64, {});
    passes.SetInt(0, 40);
    m.Initializer("n", passes);
    m.Node("Concat", {"past", "new"}, {"present"}, "append").Attr("axis", 0);
    m.Node("Loop", {"n", "", "v"}, {"y"}, "loop").AttrGraph("body", body);
    m.Output("present").Output("y");
    return m;
  }
};

TEST_F(LoopsCommandTest, GoAlongInputsAndWeights) {
  for (const bool weights : {false, true}) {
    const std::string model = Write(RunningSum(weights).proto());
    Json verified = CtlJson({"verify", model});
    EXPECT_EQ(verified["pass"], true) << verified;
    Json plan = CtlJson({"plan", model});
    ASSERT_EQ(plan["loops"].size(), 1u);
    EXPECT_EQ(plan["loops"][0]["most"], 40);
    EXPECT_EQ(plan["totals"]["launches"], 40 + plan["launches"].size() - 1);
    EXPECT_EQ(CtlJson({"run", model, "--compare"})["pass"], true);
  }
}

TEST_F(LoopsCommandTest, ReadWhatLiesInASharedBuffer) {
  const std::string model = Write(ReadsACache().proto());
  EXPECT_EQ(CtlJson({"verify", model})["pass"], true);
  EXPECT_EQ(CtlJson({"verify", model, "--share", "past=present@16"})["pass"], true);
}

TEST_F(LoopsCommandTest, DoNotWriteIntoSharedBuffers) {
  TestModel body;
  body.Input("row", {8}).Node("Neg", {"row"}, {"out"}, "neg").Output("out");
  TestModel m;
  m.Input("past", {3, 8}).Input("x", {40, 8}).Node("Scan", {"x"}, {"present"}, "scan");
  m.AttrGraph("body", body).Attr("num_scan_inputs", 1).Node("Neg", {"past"}, {"n"});
  m.Output("present").Output("n");
  ProgramResult shared = Ctl({"plan", Write(m.proto()), "--share", "past=present"});
  EXPECT_EQ(shared.code, 3);
  EXPECT_THAT(shared.err, HasSubstr("it is what a loop computes"));
}

TEST_F(LoopsCommandTest, AreShownExplainedAndPinned) {
  const std::string model = Write(RunningSum(false).proto());
  for (const char* what : {"graph", "program", "smg", "schedule", "plan", "source"}) {
    EXPECT_EQ(Ctl({"show", model, what}).code, 0) << what;
  }
  EXPECT_THAT(Ctl({"plan", model}).out, HasSubstr("runs in 40 passes"));
  EXPECT_THAT(Ctl({"explain", model}).out, HasSubstr("a part is a loop"));
  const std::string lock = dir_.path("lock");
  Json free = CtlJson({"plan", model, "--write-lock", lock});
  Json pinned = CtlJson({"plan", model, "--lock", lock, "--memory-pressure", "1"});
  EXPECT_EQ(pinned["launches"], free["launches"]);
  EXPECT_EQ(pinned["loops"], free["loops"]);
  EXPECT_EQ(CtlJson({"verify", model, "--lock", lock})["pass"], true);
}

TEST_F(LoopsCommandTest, OnePlanServesEveryLengthOfASequence) {
  ModelParams params = FindModel("lstm")->defaults;
  params.dynamic = true;
  params.hidden = 24;
  params.cols = 20;
  const std::string model = Write("lstm", params);
  const std::vector<std::string> open = {"--range", "seq=0..300", "--range", "batch=0..8"};
  auto with = [&](std::vector<std::string> words, const std::vector<std::string>& more) {
    words.insert(words.end(), open.begin(), open.end());
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  std::set<std::string> keys;
  for (const auto& [seq, batch] :
       {std::pair("0", "3"), {"1", "1"}, {"7", "8"}, {"300", "2"}, {"40", "0"}}) {
    Json report = CtlJson(with({"verify", model},
                               {"--bind", StrCat("seq=", seq), "--bind", StrCat("batch=", batch)}));
    EXPECT_TRUE(report["pass"]) << seq << " " << batch << " " << report;
    keys.insert(report["plan_key"].get<std::string>());
  }
  EXPECT_EQ(keys.size(), 1);
  EXPECT_THAT(Ctl(with({"plan", model}, {})).out, HasSubstr(" in seq passes"));
  const std::string lock = dir_.path("open.lock");
  Json free = CtlJson(with({"plan", model}, {"--write-lock", lock}));
  Json pinned = CtlJson(with({"plan", model}, {"--lock", lock}));
  EXPECT_EQ(pinned["launches"], free["launches"]);
}

// The body takes several launches; the memory between them is no polynomial of the dims.
TEST_F(LoopsCommandTest, BodiesOfOpenDimsHaveMemoryOfTheirOwn) {
  TestModel body;
  body.Input("h", {"b", 5}).Input("row", {"b", 7});
  body.Node("MatMul", {"row", "w"}, {"p"}, "p").Node("Add", {"p", "h"}, {"s"}, "s");
  body.Node("Softmax", {"s"}, {"e"}, "e").Attr("axis", 0);
  body.Node("MatMul", {"e", "r"}, {"q"}, "q").Node("Tanh", {"q"}, {"next"}, "next");
  body.Node("Identity", {"next"}, {"seen"}).Output("next").Output("seen");
  TestModel m;
  m.Initializer("w", Large({7, 5})).Initializer("r", Large({5, 5}));
  m.Input("begin", {"b", 5}).Input("x", {"s", "b", 7});
  m.Node("Scan", {"begin", "x"}, {"last", "all"}, "scan").AttrGraph("body", body);
  m.Attr("num_scan_inputs", 1).Output("last").Output("all");
  const std::string model = Write(m.proto());
  for (const auto& [s, b] : {std::pair("1", "1"), {"33", "0"}, {"100", "37"}, {"9", "13"}}) {
    Json report =
        CtlJson({"verify", model, "--fusion", "op-by-op", "--range", "s=1..100", "--range",
                 "b=0..37", "--bind", StrCat("s=", s), "--bind", StrCat("b=", b)});
    EXPECT_TRUE(report["pass"]) << s << " " << b << " " << report;
  }
}

// What the inner loop reads follows from shapes and a weight: every run makes it.
TEST_F(LoopsCommandTest, LoopsWithinLoopsMayBeOpenToo) {
  TestModel inner;
  inner.Input("h", {"b", 4}).Input("row", {"b", 4});
  inner.Node("Add", {"h", "spread"}, {"p"}, "p").Node("Tanh", {"p"}, {"t"}, "t");
  inner.Node("Add", {"t", "row"}, {"next"}, "n").Output("next");
  TestModel body;
  body.Input("state", {"b", 4}).Input("rows", {"k", "b", 4});
  body.Node("Scan", {"state", "rows"}, {"end"}, "inner").AttrGraph("body", inner);
  body.Attr("num_scan_inputs", 1).Node("Identity", {"end"}, {"seen"}).Output("end").Output("seen");
  TestModel m;
  m.Initializer("w", Large({1, 4})).Input("begin", {"b", 4}).Input("x", {"s", "k", "b", 4});
  m.Node("Shape", {"begin"}, {"shape"}).Node("Expand", {"w", "shape"}, {"wide"}, "wide");
  m.Node("Relu", {"wide"}, {"spread"}, "spread");
  m.Node("Scan", {"begin", "x"}, {"last", "all"}, "outer").AttrGraph("body", body);
  m.Attr("num_scan_inputs", 1).Output("last").Output("all");
  const std::string model = Write(m.proto());
  for (const auto& [s, k, b] : {std::tuple("1", "1", "1"), {"20", "9", "2"}, {"3", "2", "8"}}) {
    Json report =
        CtlJson({"verify", model, "--range", "s=0..20", "--range", "k=1..9", "--range", "b=1..8",
                 "--bind", StrCat("s=", s), "--bind", StrCat("k=", k), "--bind", StrCat("b=", b)});
    EXPECT_TRUE(report["pass"]) << s << " " << k << " " << b << " " << report;
  }
}

// What the inner loop reads follows from a weight alone and is an output of every pass too.
TEST_F(LoopsCommandTest, WhatABodyGivesMayBeReadByTheLoopWithin) {
  TestModel inner;
  inner.Input("h", {320}).Input("row", {320}).Node("Add", {"h", "row"}, {"p"}, "p");
  inner.Node("Add", {"p", "w2"}, {"next"}, "n").Output("next");
  TestModel body;
  body.Input("state", {320}).Input("rows", {20, 320}).Node("Relu", {"w"}, {"w2"}, "relu");
  body.Node("Scan", {"state", "rows"}, {"end"}, "inner").AttrGraph("body", inner);
  body.Attr("num_scan_inputs", 1).Output("end").Output("w2");
  TestModel m;
  m.Initializer("w", Large({320})).Input("begin", {320}).Input("x", {20, 20, 320});
  m.Node("Scan", {"begin", "x"}, {"last", "all"}, "outer").AttrGraph("body", body);
  m.Attr("num_scan_inputs", 1).Output("last").Output("all");
  EXPECT_EQ(CtlJson({"verify", Write(m.proto())})["pass"], true);
}

// Weights next to each other are packed once, whatever else is open.
TEST_F(LoopsCommandTest, StackedWeightsArePreparedOnce) {
  TestModel m;
  m.Input("x", {"s", 2, 64});
  for (const char* name : {"w", "r"}) {
    const std::string n = name;
    for (const char* i : {"0", "1"}) {
      m.Initializer(n + i, Large({1, 256, 64}));
    }
    m.Node("Concat", {n + "0", n + "1"}, {n}, n).Attr("axis", 0);
  }
  m.Node("LSTM", {"x", "w", "r"}, {"y"}, "lstm").Attr("hidden_size", 64);
  m.AttrString("direction", "bidirectional").Output("y");
  const std::string model = Write(m.proto());
  Json plan = CtlJson({"plan", model, "--range", "s=1..32"});
  EXPECT_FALSE(plan["prepare"].empty());
  for (const Json& group : plan["groups"]) {
    const bool once = group["kind"] == "prepare";
    EXPECT_TRUE(once || group.dump().find("Concat+") == std::string::npos) << group;
  }
  EXPECT_EQ(CtlJson({"verify", model, "--range", "s=1..32", "--bind", "s=9"})["pass"], true);
}

TEST_F(LoopsCommandTest, AnOpenDimMaySayHowOften) {
  TestModel body;
  body.Input("i", {}, DType::kI64).Input("going", {}, DType::kBool).Input("v", {8});
  body.Node("Add", {"v", "v"}, {"sum"}, "add").Node("Tanh", {"sum"}, {"next"}, "tanh");
  body.Output("going").Output("next");
  TestModel m;
  m.Input("x", {"rows", 8}).Input("v", {8});
  m.Node("Shape", {"x"}, {"shape"});
  HostTensor zero(DType::kI64, {});
  m.Initializer("zero", zero);
  m.Node("Gather", {"shape", "zero"}, {"n"}).Attr("axis", 0);
  m.Node("Loop", {"n", "", "v"}, {"y"}, "loop").AttrGraph("body", body);
  m.Node("Add", {"x", "y"}, {"z"}, "all").Output("z");
  const std::string model = Write(m.proto());
  for (const char* rows : {"1", "5", "40"}) {
    Json report =
        CtlJson({"verify", model, "--range", "rows=1..40", "--bind", StrCat("rows=", rows)});
    EXPECT_TRUE(report["pass"]) << rows << " " << report;
  }
  EXPECT_THAT(Ctl({"plan", model, "--range", "rows=1..40"}).out, HasSubstr(" in rows passes"));
  EXPECT_THAT(Ctl({"show", model, "plan", "--range", "rows=1..40"}).out,
              HasSubstr(" in s0 passes"));
  Json plan = CtlJson({"plan", model, "--range", "rows=1..40"});
  EXPECT_EQ(plan["loops"][0]["open_most"], "rows");
}

TEST_F(LoopsCommandTest, AScanMayGoAlongAnOpenDim) {
  TestModel m;
  TestModel body;
  body.Input("sum", {8}).Input("row", {8}).Node("Add", {"sum", "row"}, {"next"}, "add");
  body.Node("Identity", {"next"}, {"seen"}).Output("next").Output("seen");
  m.Input("begin", {8}).Input("x", {"rows", 8});
  m.Node("Scan", {"begin", "x"}, {"last", "all"}, "scan").AttrGraph("body", body);
  m.Attr("num_scan_inputs", 1).Attr("scan_input_directions", std::vector<int64_t>{1});
  m.Output("last").Output("all");
  const std::string model = Write(m.proto());
  for (const char* rows : {"1", "5", "40"}) {
    Json report =
        CtlJson({"verify", model, "--range", "rows=1..40", "--bind", StrCat("rows=", rows)});
    EXPECT_TRUE(report["pass"]) << rows << " " << report;
  }
}

}  // namespace
}  // namespace fusion
