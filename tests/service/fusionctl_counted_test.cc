// Models whose outputs have as many elements as a run decides.
#include "core/op/body/loop_body.h"
#include "core/tensor/npy.h"
#include "tests/service/fusionctl_fixture.h"
#include "tests/support/test_model.h"

namespace fusion {
namespace {

using testing::HasSubstr;

class CountedOutputsTest : public FusionctlTest {
 protected:
  // The end of a detector: the boxes that are kept, and their rows of the input.
  std::string WriteDetector() {
    TestModel m;
    m.Input("boxes", {1, 24, 4}).Input("scores", {1, 3, 24});
    m.Ints("most", {6}).Ints("box", {2}).Ints("one", {1});
    m.Initializer("overlap", HostTensor::FromValues(DType::kF32, {1}, {0.3}));
    m.Initializer("least", HostTensor::FromValues(DType::kF32, {1}, {0.4}));
    m.Node("NonMaxSuppression", {"boxes", "scores", "most", "overlap", "least"}, {"kept"}, "nms");
    m.Node("Gather", {"kept", "box"}, {"column"}).Attr("axis", 1);
    m.Node("Squeeze", {"column", "one"}, {"number"});
    m.Node("Gather", {"boxes", "number"}, {"rows"}).Attr("axis", 1);
    m.Node("Exp", {"rows"}, {"root"});
    m.Output("kept", {"n", 3}, DType::kI64).Output("root", {1, "n", 4});
    return Write(m.proto());
  }
  // Of output 0 of a run.
  static Dims Extents(const Json& run) {
    const auto type = run["outputs"][0]["type"].get<std::string>();
    Lexer in(type);
    return TensorType::Parse(in).value().shape.ToDims();
  }
  std::string WriteMask() {
    TestModel m;
    m.Input("x", {5, 7}).Node("Relu", {"x"}, {"above"}).Node("NonZero", {"above"}, {"at"});
    m.Output("at");
    return Write(m.proto());
  }
};

TEST_F(CountedOutputsTest, AreThoseOfTheEvaluator) {
  const std::string model = WriteDetector();
  for (const char* seed : {"1", "2", "3"}) {
    Json report = CtlJson({"verify", model, "--seed", seed});
    EXPECT_TRUE(report["pass"]) << report;
    EXPECT_EQ(report["outputs"].size(), 2U);
    EXPECT_EQ(report["outputs"][0]["name"], "kept");
  }
}

TEST_F(CountedOutputsTest, OfRandomInputsAreSomeOfThoseThatThereCanBe) {
  Json report = CtlJson({"verify", WriteMask()});
  EXPECT_TRUE(report["pass"]) << report;
  Json run = CtlJson({"run", WriteMask()});
  const int64_t found = Extents(run)[1];
  EXPECT_GT(found, 0);
  EXPECT_LT(found, 35) << "half of them are below 0";
  Json boxes = CtlJson({"run", WriteDetector()});
  const int64_t kept = Extents(boxes)[0];
  EXPECT_GT(kept, 0);
  EXPECT_LT(kept, 18);
}

TEST_F(CountedOutputsTest, AreComparedAndExportedAndReplayed) {
  const std::string model = WriteDetector();
  EXPECT_EQ(Ctl({"run", model, "--compare"}).code, 0);
  EXPECT_EQ(Ctl({"export", model, "--fused", "--out", dir_.path("fused.onnx")}).code, 0);
  Json again = CtlJson({"verify", dir_.path("fused.onnx"), "--allow-fused"});
  EXPECT_TRUE(again["pass"]) << again;
  EXPECT_EQ(Ctl({"repro", model, "--out", dir_.path("r.tar.gz")}).code, 0);
  EXPECT_EQ(Ctl({"repro", "--replay", dir_.path("r.tar.gz")}).code, 0);
}

TEST_F(CountedOutputsTest, HaveTheExtentOfTheRun) {
  const std::string model = WriteMask();
  for (int64_t ones : {0, 1, 35}) {
    HostTensor x(DType::kF32, {5, 7});
    for (int64_t i = 0; i < ones; ++i) x.SetDouble(34 - i, 1);
    ASSERT_TRUE(WriteFile(dir_.path("x.npy"), ToNpy(x)).ok());
    Json run = CtlJson({"run", model, "--input", "x=" + dir_.path("x.npy")});
    ASSERT_EQ(run["outputs"].size(), 1U);
    EXPECT_THAT(run["outputs"][0].dump(), HasSubstr(StrCat("[2,", ones, "]")));
  }
}

TEST_F(CountedOutputsTest, AreFusedAndShownAndTimed) {
  const std::string model = WriteDetector();
  Json plan = CtlJson({"plan", model, "--plan-only"});
  EXPECT_LT(plan["totals"]["kernels"], 60) << "some 100 primitive ops";
  EXPECT_EQ(Ctl({"bench", model, "--seconds", "0.05"}).code, 0);
  EXPECT_EQ(Ctl({"explain", model}).code, 0);
}

TEST_F(CountedOutputsTest, WhatNeedsAllOfThemIsNamed) {
  TestModel m;
  m.Input("x", {5, 7}).Node("NonZero", {"x"}, {"at"}).Node("Shape", {"at"}, {"s"}, "how_many");
  m.Output("s");
  ProgramResult result = Ctl({"plan", Write(m.proto()), "--plan-only"});
  EXPECT_EQ(result.code, 3);
  EXPECT_THAT(result.err, HasSubstr("node \"how_many\" (Shape): a run decides how many elements"));
}

}  // namespace
}  // namespace fusion
