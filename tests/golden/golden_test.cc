// golden_test [--update]: runs every case of tests/golden, a test each. --update writes what stages
// make into the cases that expect whole texts; look at the difference before you commit it.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "core/base/files/file.h"
#include "tests/golden/case.h"

namespace fusion {
namespace {

constexpr int64_t kMostBytes = int64_t{1} << 20;

class GoldenTest : public testing::Test {
 public:
  GoldenTest(std::string path, bool update) : path_(std::move(path)), update_(update) {}

  void TestBody() override {
    absl::StatusOr<std::string> text = ReadFile(path_, kMostBytes);
    ASSERT_TRUE(text.ok()) << text.status();
    absl::StatusOr<GoldenCase> golden = ParseCase(*text);
    ASSERT_TRUE(golden.ok()) << path_ << ": " << golden.status();
    EXPECT_EQ(ToString(*golden), *text) << path_ << " is not in the usual form";
    EXPECT_TRUE(golden->comment.starts_with("# ")) << path_ << " does not say what it claims";
    absl::Status passed = RunCase(&*golden, update_);
    EXPECT_TRUE(passed.ok()) << path_ << ": " << Message(passed)
                             << "\nif the new text is right: golden_test --update";
    if (update_ && passed.ok() && ToString(*golden) != *text) {
      ASSERT_TRUE(WriteFile(path_, ToString(*golden)).ok());
    }
  }

 private:
  const std::string path_;
  const bool update_;
};

// A test each; their number.
int RegisterCases(bool update) {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(FUSION_GOLDEN_DIR)) {
    if (entry.path().extension() == ".txt") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  for (const std::string& path : paths) {
    std::filesystem::path file(path);
    testing::RegisterTest(
        file.parent_path().filename().c_str(), file.stem().c_str(), nullptr, nullptr, __FILE__,
        __LINE__, [path, update]() -> testing::Test* { return new GoldenTest(path, update); });
  }
  return static_cast<int>(paths.size());
}

constexpr const char* kCase = R"(# A claim.
input:
graph "g" {
  %0 = input "x" : f32[4]
  %1 = Relu(%0) : f32[4]  "y" @ "n"
  output %1
}
expect program contains:
  %1 = Relu @0 : f32[4] = for d0:4 [d0] = map(%0[d0]) : max(in0, f32(0x0p+0))
expect program:
program {
}
)";

TEST(GoldenCases, SayWhatDiffers) {
  GoldenCase golden = ParseCase(kCase).value();
  EXPECT_EQ(ToString(golden), kCase);
  std::string message(Message(RunCase(&golden, /*update=*/false)));
  EXPECT_NE(message.find("  - }\n"), std::string::npos) << message;
  EXPECT_NE(message.find("  +   %0 = input 0 : f32[4]\n"), std::string::npos) << message;
}

TEST(GoldenCases, UpdateReplacesWholeTextsOnly) {
  GoldenCase golden = ParseCase(kCase).value();
  ASSERT_TRUE(RunCase(&golden, /*update=*/true).ok());
  EXPECT_TRUE(RunCase(&golden, /*update=*/false).ok());
  golden.expected[0].body = "  a line that is not there\n";
  EXPECT_FALSE(RunCase(&golden, /*update=*/true).ok());
}

TEST(GoldenCases, MalformedOnesAreRefused) {
  EXPECT_FALSE(ParseCase("# only a comment\n").ok());
  EXPECT_FALSE(ParseCase("input:\ngraph \"g\" {}\n").ok());
  EXPECT_FALSE(ParseCase("options: --threads 1\nstray\ninput:\n").ok());
  const std::string good = kCase;
  for (const char* empty : {"expect program contains:\n", "expect program lacks:\n\n",
                            "expect program:\n", "expect error:\n"}) {
    EXPECT_FALSE(ParseCase(good + empty).ok()) << empty << "would pass whatever happens";
  }
}

TEST(GoldenCases, LacksNamesPartsOfLines) {
  GoldenCase golden = ParseCase(kCase).value();
  golden.expected = {{.kind = Expectation::kLacks, .stage = "program", .body = "= Exp\n"}};
  EXPECT_TRUE(RunCase(&golden, /*update=*/false).ok());
  golden.expected[0].body = "= Exp\n= Relu\n";
  std::string message(Message(RunCase(&golden, /*update=*/false)));
  EXPECT_NE(message.find("has \"= Relu\" in"), std::string::npos) << message;
}

}  // namespace
}  // namespace fusion

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  bool update = argc == 2 && std::strcmp(argv[1], "--update") == 0;
  if (argc > 1 && !update) {
    fprintf(stderr, "usage: golden_test [--update]\n");
    return 2;
  }
  if (fusion::RegisterCases(update) == 0) {
    fprintf(stderr, "golden_test: no case in %s\n", FUSION_GOLDEN_DIR);
    return 1;
  }
  return RUN_ALL_TESTS();
}
