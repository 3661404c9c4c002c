#include "core/compile/toolchain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/support/fake_toolchain.h"

namespace fusion {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

Toolchain OpenFake() {
  FakeTools tools;
  absl::StatusOr<Toolchain> toolchain = Toolchain::Open(FakeToolchainOptions(), tools);
  EXPECT_TRUE(toolchain.ok()) << toolchain.status();
  return *std::move(toolchain);
}

TEST(Toolchain, OnlyAllowedCompilersAreRun) {
  FakeTools tools;
  ToolchainOptions options = FakeToolchainOptions();
  options.compiler = "/usr/bin/evil";
  absl::Status status = Toolchain::Open(options, tools).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(Message(status)),
              HasSubstr("\"/usr/bin/evil\" is not allowed; allowed: /bin/true"));
  options.compiler.clear();
  options.allowed = {"g++"};
  EXPECT_EQ(Toolchain::Open(options, tools).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(Toolchain, TheFirstThatExistsIsTaken) {
  FakeTools tools;
  ToolchainOptions options = FakeToolchainOptions();
  options.allowed = {"/nowhere/g++", "/bin/true"};
  EXPECT_EQ(Toolchain::Open(options, tools).value().version(), "g++ (Fake) 99.1");
  options.allowed = {"/nowhere/g++"};
  EXPECT_THAT(std::string(Message(Toolchain::Open(options, tools).status())),
              HasSubstr("no compiler found; looked for /nowhere/g++"));
}

TEST(Toolchain, AProgramThatOnlyNamesGnuIsNoCompiler) {
  FakeTools tools;
  tools.program_path = "\n";
  absl::Status status = Toolchain::Open(FakeToolchainOptions(), tools).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(Message(status)),
              HasSubstr("compiler \"/bin/true\" is neither GCC nor clang"));
}

TEST(Toolchain, AnIsaTheCompilerDoesNotKnowIsToldClearly) {
  FakeTools tools;
  tools.on_compile = [](const Command& command) {
    CommandResult result;
    const auto& argv = command.argv;
    bool unknown = std::find(argv.begin(), argv.end(), "-mavx512f") != argv.end();
    result.exit_code = unknown ? 1 : 0;
    result.how = StrCat("exited with ", result.exit_code);
    if (unknown) result.output = "error: unrecognized command-line option '-mavx512f'\n";
    return result;
  };
  Toolchain toolchain = Toolchain::Open(FakeToolchainOptions(), tools).value();
  EXPECT_TRUE(toolchain.SupportsIsa(Isa::kX86V2).ok());
  EXPECT_TRUE(toolchain.SupportsIsa(Isa::kAvx2).ok());
  absl::Status status = toolchain.SupportsIsa(Isa::kAvx512);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(Message(status)),
              HasSubstr("g++ (Fake) 99.1 cannot make kernels for avx512"));
  EXPECT_THAT(std::string(Message(status)), HasSubstr("unrecognized command-line option"));
}

TEST(Toolchain, ACompilerThatCompilesNothingIsRefused) {
  FakeTools tools;
  tools.on_compile = [](const Command&) {
    CommandResult result;
    result.end = CommandEnd::kTimedOut;
    result.how = "killed after 30 s";
    return result;
  };
  EXPECT_EQ(Toolchain::Open(FakeToolchainOptions(), tools).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(Toolchain, FlagsFollowIsaAndNumerics) {
  Toolchain toolchain = OpenFake();
  std::vector<std::string> base = toolchain.CompileArgv(Isa::kX86V2, Numerics::kBitwise);
  EXPECT_THAT(base, Contains("-ffp-contract=off"));
  EXPECT_THAT(base, Not(Contains("-mavx2")));
  std::vector<std::string> avx2 = toolchain.CompileArgv(Isa::kAvx2, Numerics::kFp32Accumulate);
  EXPECT_THAT(avx2, Contains("-mfma"));
  EXPECT_THAT(avx2, Contains("-ffp-contract=fast"));
  EXPECT_THAT(avx2, Not(Contains("-mavx512f")));
  std::vector<std::string> avx512 = toolchain.CompileArgv(Isa::kAvx512, Numerics::kFast);
  EXPECT_THAT(avx512, Contains("-mprefer-vector-width=512"));
  EXPECT_THAT(avx512, Contains("-fno-tree-loop-distribute-patterns"));
  for (const auto& argv : {base, avx2, avx512, toolchain.LinkArgv()}) {
    EXPECT_THAT(argv, Not(Contains("-ffast-math")));
    EXPECT_THAT(argv, Not(Contains("-march=native")));
  }
  EXPECT_THAT(toolchain.LinkArgv(), Contains("-shared"));
}

TEST(Toolchain, TextsNameNoPathAndKeysDifferByIsaAndNumerics) {
  Toolchain toolchain = OpenFake();
  EXPECT_EQ(toolchain.CommandText(Isa::kAvx2, Numerics::kFast).find('/'), std::string::npos);
  std::set<std::string> keys;
  for (Isa isa : kIsas) {
    keys.insert(toolchain.KeyText(isa, Numerics::kFp32Accumulate));
    keys.insert(toolchain.KeyText(isa, Numerics::kBitwise));
  }
  EXPECT_EQ(keys.size(), 2 * kIsas.size());
  EXPECT_THAT(*keys.begin(), HasSubstr(toolchain.identity().ToHex()));
}

TEST(Toolchain, DebugKeepsLineTablesAndHasAKeyOfItsOwn) {
  Toolchain toolchain = OpenFake();
  const Isa isa = Isa::kAvx2;
  const Numerics numerics = Numerics::kFp32Accumulate;
  EXPECT_THAT(toolchain.CompileArgv(isa, numerics),
              testing::AllOf(Contains("-g0"), Not(Contains("-g"))));
  EXPECT_THAT(toolchain.CompileArgv(isa, numerics, /*debug=*/true),
              testing::AllOf(Contains("-g"), Not(Contains("-g0"))));
  EXPECT_NE(toolchain.KeyText(isa, numerics), toolchain.KeyText(isa, numerics, /*debug=*/true));
}

TEST(Toolchain, TheBytesOfTheToolsAreItsIdentity) {
  FakeTools tools;
  ToolchainOptions options = FakeToolchainOptions();
  Digest before = Toolchain::Open(options, tools).value().identity();
  EXPECT_EQ(Toolchain::Open(options, tools).value().identity(), before);
  options.linker = "/bin/false";
  EXPECT_NE(Toolchain::Open(options, tools).value().identity(), before);
}

TEST(Toolchain, ARecordIsTakenOrLeftWhateverItsMembersAre) {
  const ToolchainOptions options = FakeToolchainOptions();
  const absl::Status why = FailedPrecondition("no compiler");
  const Toolchain before = OpenFake();
  const std::string record = before.Record();
  EXPECT_EQ(Toolchain::Without(options, why, record).KeyText(Isa::kAvx2, Numerics::kFast),
            before.KeyText(Isa::kAvx2, Numerics::kFast));
  EXPECT_TRUE(Toolchain::Without(options, why, record).SupportsIsa(Isa::kAvx2).ok());
  const nlohmann::json members = nlohmann::json::parse(record);
  for (const auto& [name, value] : members.items()) {
    for (const char* text : {"1", "null", "[1, {}]", "{}", "\"\"", "true"}) {
      nlohmann::json changed = members;
      changed[name] = nlohmann::json::parse(text);
      const Toolchain toolchain = Toolchain::Without(options, why, changed.dump());
      EXPECT_EQ(toolchain.Available(), why) << changed;
    }
  }
  for (const char* text : {"", "{", "[]", "{\"compiler\": 1}"}) {
    EXPECT_EQ(Toolchain::Without(options, why, text).version(), "") << text;
  }
}

TEST(Toolchain, TheCompilersOfThisMachineMakeKernelsForEveryIsa) {
  auto runner = MakeProcessRunner(FUSION_EXEC);
  for (const char* compiler : {"/usr/bin/g++", "/usr/bin/clang++"}) {
    ToolchainOptions options;
    options.compiler = compiler;
    options.scratch_dir = testing::TempDir();
    absl::StatusOr<Toolchain> toolchain = Toolchain::Open(options, *runner);
    if (!toolchain.ok() && std::string_view(compiler) != options.allowed[0]) continue;
    ASSERT_TRUE(toolchain.ok()) << toolchain.status();
    for (Isa isa : kIsas) {
      EXPECT_TRUE(toolchain->SupportsIsa(isa).ok()) << toolchain->SupportsIsa(isa);
    }
    bool clang = std::string_view(compiler).find("clang") != std::string_view::npos;
    EXPECT_EQ(toolchain->family(), clang ? CompilerFamily::kClang : CompilerFamily::kGcc);
  }
}

}  // namespace
}  // namespace fusion
