// fusion_opt as people run it.
#include <gtest/gtest.h>

#include "core/base/files/file.h"
#include "tests/service/run_program.h"

namespace fusion {
namespace {

constexpr const char* kGraph = R"(graph "g" {
  %0 = input "x" : f32[4,8]
  %1 = Softmax(%0) {axis=-1} : f32[4,8]  "y" @ "softmax"
  output %1
}
)";

class FusionOpt : public testing::Test {
 protected:
  ProgramResult Run(const std::vector<std::string>& words, std::string_view graph = kGraph) {
    EXPECT_TRUE(WriteFile(path_, graph).ok());
    std::vector<std::string> all = {FUSION_OPT, path_};
    all.insert(all.end(), words.begin(), words.end());
    return RunProgram(all);
  }

  ScratchDir dir_;
  const std::string path_ = StrCat(dir_.path(), "/graph.txt");
};

TEST_F(FusionOpt, PrintsWhatTheLastStageMakes) {
  ProgramResult parsed = Run({"--stages", "parse"});
  EXPECT_EQ(parsed.code, 0) << parsed.err;
  EXPECT_EQ(parsed.out, kGraph);
  ProgramResult source = Run({"--stages", "canonicalise,source", "--device", "generic-avx512"});
  EXPECT_EQ(source.code, 0) << source.err;
  EXPECT_NE(source.out.find("FusionKernelDescriptor k0_descriptor"), std::string::npos);
  EXPECT_EQ(source.out.find("graph \"\""), std::string::npos);
}

TEST_F(FusionOpt, FollowsRules) {
  constexpr const char* kChain = R"(graph "g" {
  %0 = input "x" : f32[64,64]
  %1 = Relu(%0) : f32[64,64]  "" @ "relu"
  %2 = Exp(%1) : f32[64,64]  "" @ "exp"
  output %2
}
)";
  std::string rules = dir_.Write("rules.textproto",
                                 "rules { name: 'apart' pattern { nodes { id: 'a' ops: 'Relu' } "
                                 "nodes { id: 'b' ops: 'Exp' } edges { from: 'a' to: 'b' } } "
                                 "forbid {} }");
  EXPECT_NE(Run({"--stages", "plan"}, kChain).out.find("Relu+Exp"), std::string::npos);
  ProgramResult apart = Run({"--stages", "plan", "--rules", rules}, kChain);
  EXPECT_EQ(apart.code, 0) << apart.err;
  EXPECT_NE(apart.out.find("rule \"apart\" forbids"), std::string::npos) << apart.out;
  EXPECT_NE(Run({"--stages", "plan", "--rules", dir_.path("none")}, kChain).code, 0);
}

TEST_F(FusionOpt, PrintsAfterAllStagesThatRanBeforeAFailure) {
  ProgramResult all = Run({"--stages", "program,smg,slices,plan,schedule", "--print-after-all"});
  EXPECT_EQ(all.code, 0) << all.err;
  size_t at = 0;
  for (const char* part : {"== program\nprogram {", "== smg\nsmg {", "== slices\nslices {",
                           "== plan\nfused, ", "== schedule\nschedule "}) {
    at = all.out.find(part, at);
    ASSERT_NE(at, std::string::npos) << part << " is missing in\n" << all.out;
  }
  ProgramResult symbolic = Run({"--stages", "parse,program", "--print-after-all"}, R"(graph "g" {
  symbol s0 "rows" min 1 max 64 multiple 1 likely []
  %0 = input "x" : f32[s0]
  %1 = Exp(%0) : f32[s0]  "y" @ "exp"
  output %1
}
)");
  EXPECT_EQ(symbolic.code, 3);
  EXPECT_NE(symbolic.out.find("== parse\ngraph \"g\""), std::string::npos);
  EXPECT_NE(symbolic.err.find("graph.txt: stage program: "), std::string::npos) << symbolic.err;
}

TEST_F(FusionOpt, OptionsChangeThePlan) {
  ProgramResult plan =
      Run({"--stages", "plan", "--fusion", "op-by-op", "--threads", "2", "--numerics", "bitwise"});
  EXPECT_EQ(plan.code, 0) << plan.err;
  EXPECT_TRUE(plan.out.starts_with("op by op, bitwise, for generic-avx2 (avx2, 2 threads)\n"))
      << plan.out;
}

// The block of core/README.md that shows it: a graph, a command, its output.
TEST_F(FusionOpt, DoesWhatTheReadmeShows) {
  std::string readme = ReadFile(FUSION_SOURCE_DIR "/core/README.md", int64_t{1} << 20).value();
  const std::string cat = "$ cat softmax.txt\n";
  const std::string command = "$ build/release/bin/fusion_opt softmax.txt --stages ";
  size_t graph = readme.find(cat) + cat.size();
  size_t at = readme.find(command, graph);
  ASSERT_NE(at, std::string::npos);
  size_t stages = at + command.size();
  size_t shown = readme.find('\n', stages) + 1;
  ProgramResult run = Run({"--stages", readme.substr(stages, shown - 1 - stages)},
                          readme.substr(graph, at - graph));
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(run.out, readme.substr(shown, readme.find("```", shown) - shown));
}

TEST_F(FusionOpt, ErrorsSayWhere) {
  ProgramResult bad = Run({"--stages", "plan"}, "graph \"g\" {\n  %0 = Input\n}\n");
  EXPECT_EQ(bad.code, 3);
  EXPECT_EQ(bad.out, "");
  EXPECT_NE(bad.err.find("graph.txt: line 2, column 8: expected"), std::string::npos) << bad.err;
  ProgramResult stage = Run({"--stages", "plan,fuse"});
  EXPECT_EQ(stage.code, 2);
  EXPECT_NE(stage.err.find("--stages: stage \"fuse\" does not exist"), std::string::npos);
  ProgramResult device = Run({"--stages", "plan", "--device", "nowhere"});
  EXPECT_EQ(device.code, 2);
  EXPECT_NE(device.err.find("nowhere"), std::string::npos) << device.err;
  EXPECT_EQ(RunProgram({FUSION_OPT, "--stages", "plan", "/nonexistent"}).code, 3);
}

}  // namespace
}  // namespace fusion
