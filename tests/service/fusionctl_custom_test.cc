// Ops that a request defines, and inputs whose values are known: through the real programs.
#include <fstream>

#include "tests/service/fusionctl_fixture.h"
#include "tests/support/test_model.h"

namespace fusion {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class CustomOpsCommandTest : public FusionctlTest {
 protected:
  std::string WriteText(const std::string& name, const std::string& text) {
    std::ofstream(dir_.path(name), std::ios::binary) << text;
    return dir_.path(name);
  }
  // A convolution with an activation that nobody knows behind it.
  static TestModel ConvSnake() {
    TestModel m;
    m.Input("x", {1, 3, 17, 19}).Input("w", {5, 3, 3, 3});
    m.Node("Conv", {"x", "w"}, {"c"}, "conv");
    m.Node("Snake", {"c"}, {"y"}, "act").Domain("acme").AttrFloat("a", 0.5F).Output("y");
    return m;
  }
};

TEST_F(CustomOpsCommandTest, FuseBehindAConvolution) {
  const std::string model = Write(ConvSnake().proto());
  const std::string ops = WriteText("ops.txt",
                                    "op acme.Snake(x) {a: float = 1.0} =\n"
                                    "  let s = sin(a * x);\n"
                                    "  x + s * s / a\n");
  Json verified = CtlJson({"verify", model, "--custom-ops", ops});
  EXPECT_EQ(verified["pass"], true);
  EXPECT_EQ(verified["groups"].size(), 1u) << verified;
  // Written otherwise it is the same plan.
  const std::string same = WriteText("same.txt",
                                     "op acme.Snake(v) {a: float} = # by hand\n"
                                     "  v + sin(a * v) * sin(a * v) / a\n");
  EXPECT_EQ(CtlJson({"plan", model, "--custom-ops", ops})["plan_key"],
            CtlJson({"plan", model, "--custom-ops", same})["plan_key"]);
}

TEST_F(CustomOpsCommandTest, MistakesAreShownInTheirPlace) {
  const std::string model = Write(ConvSnake().proto());
  const std::string typo =
      WriteText("typo.txt", "op acme.Snake(x) {a: float} =\n  x + sine(a * x)\n");
  ProgramResult result = Ctl({"plan", model, "--custom-ops", typo});
  EXPECT_EQ(result.code, 3);
  EXPECT_THAT(result.err, HasSubstr("typo.txt\": line 2, column 7: unknown function \"sine\"\n"
                                    "    x + sine(a * x)\n"
                                    "        ^\n"));
  const std::string lacking = WriteText("lacking.txt", "op acme.Other(x) = x");
  ProgramResult unknown = Ctl({"plan", model, "--custom-ops", lacking});
  EXPECT_EQ(unknown.code, 3);
  EXPECT_THAT(unknown.err, AllOf(HasSubstr("op \"Snake\" of domain \"acme\""),
                                 HasSubstr("--custom-ops defines others")));
  EXPECT_EQ(Ctl({"plan", model, "--custom-ops", dir_.path("none.txt")}).code, 3);
}

TEST_F(CustomOpsCommandTest, AnInputOfAKnownValueIsAConstant) {
  // x doubled n times.
  TestModel body;
  body.Input("i", {}, DType::kI64).Input("going", {}, DType::kBool).Input("v", {2});
  body.Node("Add", {"v", "v"}, {"next"}, "twice").Output("going").Output("next");
  TestModel m;
  m.Input("n", {}, DType::kI64).Input("x", {2});
  m.Node("Loop", {"n", "", "x"}, {"y"}, "loop").AttrGraph("body", body).Output("y");
  const std::string model = Write(m.proto());
  EXPECT_EQ(CtlJson({"plan", model})["loops"].size(), 1u) << "a run says how often";
  EXPECT_EQ(CtlJson({"plan", model, "--fix", "n=3"})["loops"].size(), 0u);
  EXPECT_EQ(CtlJson({"verify", model, "--fix", "n=3"})["pass"], true);
  Json run = CtlJson({"run", model, "--fix", "n=0"});
  EXPECT_EQ(run["outputs"].size(), 1u) << run;
  ProgramResult none = Ctl({"plan", model, "--fix", "m=3"});
  EXPECT_EQ(none.code, 3);
  EXPECT_THAT(none.err, HasSubstr("--fix \"m\": the model has no such input"));
  ProgramResult real = Ctl({"plan", model, "--fix", "n=2.5"});
  EXPECT_EQ(real.code, 3);
  EXPECT_THAT(real.err, HasSubstr("--fix \"n\""));
  EXPECT_EQ(Ctl({"plan", model, "--fix", "n"}).code, 2);
}

}  // namespace
}  // namespace fusion
