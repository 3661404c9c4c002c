// Lock files, as people use them: written by one fusiond, read by another.
#include <fstream>
#include <regex>
#include <sstream>

#include "tests/service/fusionctl_fixture.h"

namespace fusion {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class LockCommandTest : public FusionctlTest {
 protected:
  std::string Model() {
    return Write("bert_tiny",
                 {.seq = 16, .layers = 2, .hidden = 32, .heads = 2, .kv_heads = 2, .ff = 64});
  }
  std::string WriteText(const std::string& name, const std::string& text) const {
    std::ofstream(dir_.path(name), std::ios::binary) << text;
    return dir_.path(name);
  }
  static std::string ReadAll(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::stringstream out;
    out << file.rdbuf();
    return out.str();
  }
  // The lock that planning writes, by the shared server or by one of its own.
  std::string LockOf(const std::string& name, std::vector<std::string> words, bool shared = true) {
    std::string file = dir_.path(name);
    words.insert(words.begin(), "plan");
    words.insert(words.end(), {"--plan-only", "--write-lock", file});
    ProgramResult result = shared ? Ctl(words) : BareCtl(words);
    EXPECT_EQ(result.code, 0) << result.err;
    return file;
  }
};

TEST_F(LockCommandTest, EveryProcessWritesTheSameBytes) {
  std::string model = Model();
  std::string first = ReadAll(LockOf("first", {model}));
  EXPECT_THAT(first, AllOf(HasSubstr("graph_sha256: \""), HasSubstr("kernels {")));
  EXPECT_EQ(ReadAll(LockOf("again", {model})), first);
  EXPECT_EQ(ReadAll(LockOf("other", {model}, /*shared=*/false)), first);
}

TEST_F(LockCommandTest, PinsWhatOtherHintsWouldChange) {
  std::string model = Model();
  std::string lock = LockOf("lock", {model});
  std::string pinned = LockOf(
      "pinned", {model, "--lock", lock, "--compute-pressure", "0.9", "--memory-pressure", "0.9"},
      /*shared=*/false);
  EXPECT_EQ(ReadAll(pinned), ReadAll(lock));
  Json free = CtlJson({"plan", model, "--plan-only"});
  Json again = CtlJson({"plan", model, "--plan-only", "--lock", lock, "--compute-pressure", "0.9"});
  ASSERT_EQ(again["kernels"].size(), free["kernels"].size());
  for (size_t k = 0; k < free["kernels"].size(); ++k) {
    EXPECT_EQ(again["kernels"][k]["key"], free["kernels"][k]["key"]);
  }
  EXPECT_EQ(again["launches"], free["launches"]);
  EXPECT_NE(again["plan_key"], free["plan_key"]);
}

TEST_F(LockCommandTest, PinnedPlansRunAndPass) {
  ModelParams params = SmallMlp();
  std::string model = Write("mlp", params);
  std::string lock = LockOf("lock", {model});
  Json verified = CtlJson({"verify", model, "--lock", lock});
  EXPECT_EQ(verified["pass"], true);
  EXPECT_EQ(Ctl({"run", model, "--lock", lock}).code, 0);
  EXPECT_EQ(Ctl({"bench", model, "--lock", lock, "--pairs", "1", "--warmup", "0"}).code, 0);
  ProgramResult explained = Ctl({"explain", model, "--lock", lock});
  EXPECT_EQ(explained.code, 0) << explained.err;
}

// Sequences that go through several phases of a launch: nothing of one is needed for another one.
// So small that barriers are estimated at a fifth of their time, whatever the CPU.
TEST_F(LockCommandTest, PinsPipelinesWhichRunRight) {
  std::string model =
      Write("bert_tiny",
            {.batch = 8, .seq = 4, .layers = 3, .hidden = 16, .heads = 2, .kv_heads = 2, .ff = 32});
  auto with = [&](std::vector<std::string> words, const std::vector<std::string>& more = {}) {
    words.insert(words.end(),
                 {model, "--low-latency", "--target", "generic-avx2", "--threads", "2"});
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  std::string lock = LockOf("pipelines", with({}));
  std::string text = ReadAll(lock);
  EXPECT_THAT(text, HasSubstr("pipelines {"));
  EXPECT_EQ(ReadAll(LockOf("pinned", with({}, {"--lock", lock}))), text);
  ProgramResult explained = Ctl(with({"explain"}, {"--why", "#0"}));
  EXPECT_EQ(explained.code, 0) << explained.err;
  EXPECT_THAT(explained.out, AllOf(HasSubstr("pipeline: "), HasSubstr("are a pipeline")));
  // Those of the machine at hand run.
  std::string host = LockOf("host", {model, "--low-latency", "--threads", "2"});
  EXPECT_THAT(ReadAll(host), HasSubstr("pipelines {"));
  Json verified = CtlJson({"verify", model, "--low-latency", "--threads", "2", "--lock", host});
  EXPECT_EQ(verified["pass"], true);
  EXPECT_EQ(verified["fallbacks"], 0);
  std::string wrong = std::regex_replace(text, std::regex("(slices \\{\\s*dim: )\"[^\"]*\""),
                                         "$1\"nowhere\"", std::regex_constants::format_first_only);
  ASSERT_NE(wrong, text);
  ProgramResult refused = Ctl(with({"plan"}, {"--plan-only", "--lock", WriteText("wrong", wrong)}));
  EXPECT_EQ(refused.code, 3);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("pipelines[0].slices[0].dim: \"nowhere\""),
                                 HasSubstr("slices may be of ")));
}

TEST_F(LockCommandTest, AnEditedCutNeedsNewDigests) {
  std::string model = Write("mlp", SmallMlp());
  std::string text = ReadAll(LockOf("lock", {model, "--isa", "avx2"}));
  // The last dim of the last kernel in blocks of one.
  size_t last = text.rfind("tile: ");
  ASSERT_NE(last, std::string::npos) << text;
  size_t end = text.find('\n', last);
  ASSERT_NE(text.substr(last, end - last), "tile: 1") << text;
  std::string edited = StrCat(text.substr(0, last), "tile: 1", text.substr(end));
  ProgramResult refused =
      Ctl({"plan", model, "--isa", "avx2", "--plan-only", "--lock", WriteText("edited", edited)});
  EXPECT_EQ(refused.code, 3);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("edited\": kernels["), HasSubstr("schedule_sha256 is "),
                                 testing::Not(HasSubstr("lock.kernels"))));
  ExpectOneErrorLine(refused);
  std::string bare = std::regex_replace(
      edited, std::regex("\n *(schedule_sha256|source_sha256|kernel_key|plan_sha256): [^\n]*"), "");
  std::string file = LockOf("whole", {model, "--isa", "avx2", "--lock", WriteText("bare", bare)});
  std::string whole = ReadAll(file);
  EXPECT_THAT(whole, AllOf(HasSubstr("tile: 1\n"), HasSubstr("plan_sha256")));
  EXPECT_EQ(ReadAll(LockOf("pinned", {model, "--isa", "avx2", "--lock", file})), whole);
}

TEST_F(LockCommandTest, WhatDoesNotFitIsBadInput) {
  std::string model = Write("mlp", SmallMlp());
  std::string lock = LockOf("lock", {model});
  ProgramResult missing = Ctl({"plan", model, "--lock", dir_.path("none")});
  EXPECT_EQ(missing.code, 3);
  EXPECT_THAT(missing.err, HasSubstr("--lock"));
  ExpectOneErrorLine(missing);
  ProgramResult nonsense = Ctl({"plan", model, "--lock", WriteText("bad", "version: one\n")});
  EXPECT_EQ(nonsense.code, 3);
  EXPECT_THAT(nonsense.err, HasSubstr("line 1, column"));
  std::string deep = "choices { parts { ";
  for (int i = 0; i < 50'000; ++i) deep += "split { partial { ";
  ProgramResult too_deep = Ctl({"plan", model, "--lock", WriteText("deep", deep)});
  EXPECT_EQ(too_deep.code, 3) << "not a crash";
  EXPECT_THAT(too_deep.err, AllOf(HasSubstr("deep\": line 1, column "), HasSubstr("limit of 80")));
  ExpectOneErrorLine(too_deep);
  std::string text = ReadAll(lock);
  ProgramResult twice = Ctl({"plan", model, "--lock",
                             WriteText("twice", StrCat(text, "groups { ops: [0] choice: 0 }\n"))});
  EXPECT_EQ(twice.code, 3);
  EXPECT_THAT(twice.err, HasSubstr("].ops[0]: 0 is in group "));
  ModelParams wider = SmallMlp();
  wider.rows = 5;
  ProgramResult other = Ctl({"plan", Write("mlp", wider), "--lock", lock});
  EXPECT_EQ(other.code, 3);
  EXPECT_THAT(other.err, HasSubstr(StrCat("--lock ", Quote(lock), ": graph_sha256")));
}

TEST_F(LockCommandTest, StructuresAreShown) {
  std::string model = Model();
  Json plan = CtlJson({"plan", model, "--plan-only"});
  Json explained = CtlJson({"explain", model});
  ASSERT_EQ(plan["groups"].size(), explained["groups"].size());
  int fused = 0;
  for (size_t g = 0; g < plan["groups"].size(); ++g) {
    std::string structure = plan["groups"][g]["structure"];
    EXPECT_EQ(structure, explained["groups"][g]["structure"]);
    fused += structure.size() == 16 ? 1 : 0;
  }
  EXPECT_GT(fused, 2);
}

}  // namespace
}  // namespace fusion
