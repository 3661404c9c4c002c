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

TEST_F(LoopsCommandTest, AreShownExplainedAndHaveNoLock) {
  const std::string model = Write(RunningSum(false).proto());
  for (const char* what : {"graph", "program", "smg", "schedule", "plan", "source"}) {
    EXPECT_EQ(Ctl({"show", model, what}).code, 0) << what;
  }
  EXPECT_THAT(Ctl({"plan", model}).out, HasSubstr("runs in 40 passes"));
  EXPECT_THAT(Ctl({"explain", model}).out, HasSubstr("a part is a loop"));
  ProgramResult locked = Ctl({"plan", model, "--write-lock", dir_.path("lock")});
  EXPECT_NE(locked.code, 0);
  EXPECT_THAT(locked.err, HasSubstr("the plan has 1 loop, of whose bodies a lock says nothing"));
}

}  // namespace
}  // namespace fusion
