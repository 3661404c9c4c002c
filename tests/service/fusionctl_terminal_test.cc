// What people see: output that fits their terminal, messages in their words, names that do nothing.
#include <algorithm>
#include <filesystem>
#include <limits>

#include "tests/service/fusionctl_fixture.h"
#include "tests/support/test_model.h"

namespace fusion {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class TerminalTest : public FusionctlTest {
 protected:
  std::string WriteAs(const std::string& name, const onnx::ModelProto& model) {
    const std::string path = dir_.path(name);
    FUSION_CHECK(SaveModel(model, path).ok(), "a file of a test");
    return path;
  }
  std::string Open(const char* dim) {
    TestModel m;
    m.Input("x", {dim, 64}).Input("y", {dim, 64}).Node("Add", {"x", "y"}, {"z"}).Output("z");
    return WriteAs("open.onnx", m.proto());
  }
};

// The most cells that a line takes, sequences of colours aside. A line may be drawn several times,
// each behind a '\r'.
size_t Cells(std::string_view line) {
  size_t cells = 0;
  size_t most = 0;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\x1b') {
      while (i < line.size() && line[i] != 'm' && line[i] != 'K') ++i;
    } else if (line[i] == '\r') {
      cells = 0;
    } else {
      most = std::max(most, ++cells);
    }
  }
  return most;
}

TEST_F(TerminalTest, CommandsFitATerminalOf80Columns) {
  const std::string model = WriteAs(
      std::string(180, 'L') + ".onnx",
      GenerateModel(*FindModel("bert_tiny"),
                    {.seq = 16, .layers = 1, .hidden = 32, .heads = 2, .kv_heads = 2, .ff = 64})
          ->model);
  const std::string store = dir_.path("store");
  const std::vector<std::vector<std::string>> commands = {
      {"plan", model, "--nodes", "--store", store},
      {"bench", model, "--pairs", "3", "--kernels", "--store", store},
      {"verify", model, "--store", store},
      {"diff", model, model, "--store", store},
      {"list", "--store", store},
      {"report", "--store", store},
      {"kernels", model, "--store", store},
      {"explain", model, "--store", store},
      {"show", model, "plan", "--store", store},
      {"store", "stats", "--store", store},
  };
  for (std::vector<std::string> words : commands) {
    words.insert(words.begin(), FUSIONCTL);
    words.emplace_back("--quiet");
    const ProgramResult shown = RunOnTerminal(words);
    EXPECT_EQ(shown.code, 0) << words[1] << ": " << shown.out;
    for (std::string_view line : StrSplit(shown.out, '\n')) {
      EXPECT_LE(Cells(line), 80u) << words[1] << ": " << line;
    }
  }
  // Nothing is cut where nobody looks.
  const std::string piped = BareCtl({"list", "--store", store}).out;
  EXPECT_THAT(piped, AllOf(HasSubstr("target"), HasSubstr("pinned"), HasSubstr("fusion")));
}

TEST_F(TerminalTest, ListAndReportSayWhichModelAPlanIsOf) {
  const std::string store = dir_.path("store");
  const std::string model =
      WriteAs("encoder layer.onnx", GenerateModel(*FindModel("mlp"), SmallMlp())->model);
  ASSERT_EQ(BareCtl({"bench", model, "--pairs", "3", "--store", store}).code, 0);
  EXPECT_THAT(BareCtl({"list", "--store", store}).out, HasSubstr("  encoder layer  "));
  EXPECT_THAT(BareCtl({"report", "--store", store}).out, HasSubstr(" of encoder layer for "));
  const std::string page = dir_.path("page.html");
  const ProgramResult json = BareCtl({"report", "--store", store, "--json", "--html", page});
  EXPECT_EQ(Json::parse(json.out)["plans"][0]["model"], "encoder layer");
  EXPECT_THAT(ReadFile(page, 1 << 20).value(),
              HasSubstr("<h1>Reported latencies of <bdi>encoder layer</bdi></h1>"));
  // Files that are all called alike are told apart by their folders.
  std::filesystem::create_directory(dir_.path("decoder"));
  ModelParams wider = SmallMlp();
  wider.rows = 6;
  const std::string other =
      WriteAs("decoder/model.onnx", GenerateModel(*FindModel("mlp"), wider)->model);
  ASSERT_EQ(BareCtl({"plan", other, "--store", store}).code, 0);
  EXPECT_THAT(BareCtl({"list", "--store", store}).out, HasSubstr("  decoder/model  "));
}

TEST_F(TerminalTest, NamesOfOthersDoNothingToATerminal) {
  const std::string store = dir_.path("store");
  const std::string evil = "m\x1b[31m\x1b]0;owned\x07\xe2\x80\xae\nplan 0123 of y.onnx";
  const std::string model = WriteAs(evil, GenerateModel(*FindModel("mlp"), SmallMlp())->model);
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"bench", model, "--pairs", "3", "--store", store},
        {"plan", model, "--store", store},
        {"list", "--store", store},
        {"report", "--store", store},
        {"verify", model, "--store", store},
        {"show", model, "graph", "--store", store},
        {"report", "--store", store, "--json"},
        {"plan", model + "\x1b[2Jnot there"},
        {"run", model, "--input", "\x1b[31m=x.npy"}}) {
    const ProgramResult said = BareCtl(words);
    for (const std::string& text : {said.out, said.err}) {
      EXPECT_THAT(text, Not(HasSubstr("\x1b"))) << words[0];
      EXPECT_THAT(text, Not(HasSubstr("\x07"))) << words[0];
      EXPECT_THAT(text, Not(HasSubstr("\xe2\x80\xae"))) << words[0];
      EXPECT_THAT(text, Not(HasSubstr("\nplan 0123"))) << words[0];
    }
  }
  EXPECT_EQ(Json::parse(BareCtl({"list", "--store", store, "--json"}).out)["plans"][0]["model"],
            evil.substr(0, evil.size() - 5))
      << "programs get the name itself";
}

TEST_F(TerminalTest, NamesThatAreNotAsciiAreShownAsTheyAre) {
  const std::string store = dir_.path("store");
  const std::string model = "\xe3\x83\xa2\xe3\x83\x87\xe3\x83\xab";
  TestModel m;
  m.Input("x", {"\xe3\x83\x90", 64})
      .Node("Softmax", {"x"}, {"\xe5\xb1\xa4"})
      .Output("\xe5\xb1\xa4");
  const std::string path = WriteAs(model + ".onnx", m.proto());
  const ProgramResult open = BareCtl({"plan", path, "--store", store});
  EXPECT_THAT(open.err, HasSubstr("dim \"\xe3\x83\x90\""));
  ASSERT_EQ(BareCtl({"plan", path, "--bind", "\xe3\x83\x90=5", "--store", store}).code, 0);
  EXPECT_THAT(BareCtl({"list", "--store", store}).out, HasSubstr("  " + model + "  "));
  TestModel bad;
  bad.Input("x", {4, 8}).Input("y", {5, 7}).Node("\x41\x64\x64", {"x", "y"}, {"\xe5\xb1\xa4"});
  bad.Output("\xe5\xb1\xa4");
  const ProgramResult refused = BareCtl({"plan", WriteAs("bad.onnx", bad.proto())});
  EXPECT_EQ(refused.code, 3);
  EXPECT_THAT(refused.err, Not(HasSubstr("\\x")));
}

// What no format can say is refused where it arises: a step of a node here.
TEST_F(TerminalTest, StepsBeyondEveryLimitAreNamed) {
  const int64_t long_one = int64_t{1} << 30;
  TestModel m(23);
  for (const char* name : {"q", "k", "v"}) m.Input(name, {1, 1, long_one, 8});
  m.Node("Attention", {"q", "k", "v"}, {"y"}).Output("y");
  TestModel image(18);
  image.Input("x", {1, int64_t{1} << 30, 1}).Ints("size", {32768, 32768});
  image.Node("Col2Im", {"x", "size", "size"}, {"y"}).Output("y");
  for (const auto& [name, model] :
       {std::pair("Attention", m.proto()), std::pair("Col2Im", image.proto())}) {
    const ProgramResult refused = BareCtl({"kernels", WriteAs("large.onnx", model)});
    EXPECT_EQ(refused.code, 3) << refused.err;
    EXPECT_THAT(refused.err, AllOf(HasSubstr(StrCat("(", name, ")")), HasSubstr("too large"),
                                   HasSubstr("expected at most")));
  }
}

TEST_F(TerminalTest, AnOpenDimIsNamedAsTheModelDoesWithTheOptionsThatHelp) {
  const ProgramResult plan = Ctl({"plan", Open("N")});
  EXPECT_EQ(plan.code, 3);
  ExpectOneErrorLine(plan);
  EXPECT_THAT(plan.err, AllOf(HasSubstr("input \"x\" is f32[N,64]"), HasSubstr("dim \"N\""),
                              HasSubstr("--bind"), HasSubstr("--range"), HasSubstr("--batch")));
  EXPECT_THAT(plan.err, AllOf(Not(HasSubstr("s0")), Not(HasSubstr("dim_"))));
}

TEST_F(TerminalTest, ANodeThatDoesNotFitNamesItsInputs) {
  TestModel m;
  m.Input("rows", {4, 8})
      .Input("weights", {9, 3})
      .Node("MatMul", {"rows", "weights"}, {"z"})
      .Output("z");
  const ProgramResult plan = Ctl({"plan", WriteAs("bad.onnx", m.proto())});
  EXPECT_EQ(plan.code, 3);
  EXPECT_THAT(plan.err, AllOf(HasSubstr("(MatMul)"), HasSubstr("input 0 is \"rows\""),
                              HasSubstr("input 1 is \"weights\"")));
}

TEST_F(TerminalTest, ElementTypesHaveNames) {
  for (const auto& [code, name] : std::vector<std::pair<int, std::string>>{
           {8, "STRING (8)"}, {14, "COMPLEX64 (14)"}, {99, "number 99"}}) {
    TestModel m;
    m.Input("x", {4}).Node("Relu", {"x"}, {"y"}).Output("y");
    onnx::ModelProto model = m.proto();
    model.mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type()->set_elem_type(
        code);
    EXPECT_THAT(Ctl({"plan", WriteAs("typed.onnx", model)}).err,
                AllOf(HasSubstr("\"x\""), HasSubstr(name)));
    TestModel cast;
    cast.Input("x", {4}).Node("Cast", {"x"}, {"y"}).Attr("to", int64_t{code}).Output("y");
    EXPECT_THAT(Ctl({"plan", WriteAs("cast.onnx", cast.proto())}).err,
                AllOf(HasSubstr("(Cast)"), HasSubstr(name)));
  }
}

TEST_F(TerminalTest, VerifyShowsHowFarIntegersAndInfinitiesAreOff) {
  TestModel m;
  m.Input("x", {3}, DType::kI32).Node("Neg", {"x"}, {"y"}).Output("y");
  const std::string integers = WriteAs("integers.onnx", m.proto());
  TestModel f;
  f.Input("x", {3}).Node("Neg", {"x"}, {"y"}).Output("y");
  const std::string floats = WriteAs("floats.onnx", f.proto());
  auto data = [&](const std::string& name, DType dtype, const std::vector<double>& x,
                  const std::vector<double>& y) {
    HostTensor in(dtype, {3}), out(dtype, {3});
    for (int64_t i = 0; i < 3; ++i) {
      in.SetDouble(i, x[static_cast<size_t>(i)]);
      out.SetDouble(i, y[static_cast<size_t>(i)]);
    }
    const std::string directory = dir_.path(name);
    TestDataSet set;
    set.inputs.push_back({"x", std::move(in)});
    set.outputs.push_back({"y", std::move(out)});
    FUSION_CHECK(SaveTestDataSet(directory, set).ok(), "files of a test");
    return directory;
  };
  const std::string off = data("off", DType::kI32, {1, 2, 3}, {-1, 40, -3});
  Json result = CtlJson({"verify", integers, "--data", off}, 1);
  EXPECT_EQ(result["outputs"][0]["max_abs"], 42);
  EXPECT_THAT(Ctl({"verify", integers, "--data", off}).out, HasSubstr("  42 "));
  const double infinity = std::numeric_limits<double>::infinity();
  const std::string open = data("open", DType::kF32, {1, 2, 3}, {-1, infinity, -3});
  result = CtlJson({"verify", floats, "--data", open}, 1);
  EXPECT_EQ(result["outputs"][0]["max_abs"], "inf");
  EXPECT_THAT(Ctl({"verify", floats, "--data", open}).out, HasSubstr("  inf "));
}

TEST_F(TerminalTest, UnknownWordsAreAnsweredWithTheNearest) {
  const ProgramResult command = BareCtl({"verfiy", "m.onnx"});
  EXPECT_EQ(command.code, 2);
  ExpectOneErrorLine(command);
  EXPECT_THAT(command.err, HasSubstr("did you mean verify? see fusionctl --help"));
  const ProgramResult option = BareCtl({"list", "--serv", "a:1"});
  EXPECT_EQ(option.code, 2);
  EXPECT_THAT(option.err, HasSubstr("did you mean --server? see fusionctl list --help"));
}

}  // namespace
}  // namespace fusion
