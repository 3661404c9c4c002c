// What the READMEs show is what the programs do: examples, text forms, lists, paths and links. The
// tests read every README.md of the tree, so a new one is covered without being listed here.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "core/base/files/file.h"
#include "core/base/text/text.h"
#include "core/import/sources/supported_ops.h"
#include "core/onnx/model_io.h"
#include "tests/models/models.h"
#include "tests/models/onnx_builder.h"
#include "tests/service/run_program.h"
#include "tests/support/daemon.h"

namespace fusion {
namespace {

using testing::HasSubstr;

const std::string kSource = FUSION_SOURCE_DIR;
constexpr std::string_view kThisFile = "documentation_test.cc";

std::string ReadOrDie(const std::string& name) {
  absl::StatusOr<std::string> text = ReadFile(StrCat(kSource, "/", name), 1 << 20);
  FUSION_CHECK(text.ok(), Message(text.status()));
  return *std::move(text);
}

// Contents of the fenced blocks of a Markdown text whose opening line is ``` + `kind`.
std::vector<std::string> Blocks(const std::string& text, std::string_view kind) {
  std::vector<std::string> blocks;
  bool inside = false;
  bool wanted = false;
  for (std::string_view line : StrSplit(text, '\n')) {
    if (line.starts_with("```")) {
      inside = !inside;
      wanted = inside && line.substr(3) == kind;
      if (wanted) blocks.emplace_back();
    } else if (wanted) {
      StrAppend(&blocks.back(), StrCat(line, "\n"));
    }
  }
  return blocks;
}

// Files below the root of the repository for which `wanted` holds, by their paths from there,
// sorted. Build trees and hidden folders are not part of it.
template <typename Wanted>
std::vector<std::string> FilesOfTheTree(const Wanted& wanted) {
  std::vector<std::string> files;
  std::filesystem::recursive_directory_iterator it(kSource), end;
  for (; it != end; ++it) {
    const std::string name = it->path().filename().string();
    if (it->is_directory()) {
      const bool build_trees = name == "build" && it.depth() == 0;
      if (name.starts_with(".") || build_trees) it.disable_recursion_pending();
    } else if (wanted(it->path())) {
      files.push_back(std::filesystem::relative(it->path(), kSource).string());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

const std::vector<std::string>& Readmes() {
  static const std::vector<std::string> files = FilesOfTheTree(
      [](const std::filesystem::path& path) { return path.filename() == "README.md"; });
  return files;
}

// Fenced blocks of this kind in all READMEs.
std::vector<std::string> AllBlocks(std::string_view kind) {
  std::vector<std::string> blocks;
  for (const std::string& name : Readmes()) {
    for (std::string& block : Blocks(ReadOrDie(name), kind)) blocks.push_back(std::move(block));
  }
  return blocks;
}

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  for (std::string_view line : StrSplit(text, '\n')) {
    if (!StripSpace(line).empty()) lines.emplace_back(line);
  }
  return lines;
}

class DocumentationTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    absl::StatusOr<std::unique_ptr<TestDaemon>> daemon = TestDaemon::Start(FUSIOND);
    ASSERT_TRUE(daemon.ok()) << daemon.status();
    daemon_ = daemon->release();
    dir_ = new ScratchDir;
    ModelParams params = FindModel("softmax")->defaults;
    params.rows = 4;
    params.cols = 8;
    GeneratedModel model = GenerateModel(*FindModel("softmax"), params).value();
    ASSERT_TRUE(SaveModel(model.model, dir_->path("softmax.onnx")).ok());
  }
  static void TearDownTestSuite() {
    delete dir_;
    delete daemon_;
  }

  static TestDaemon* daemon_;
  static ScratchDir* dir_;
};
TestDaemon* DocumentationTest::daemon_ = nullptr;
ScratchDir* DocumentationTest::dir_ = nullptr;

// Every C++ block is an excerpt of a source, and each program in tests/examples has its excerpt.
TEST_F(DocumentationTest, TheLibraryExamplesAreTheProgramsThatAreBuilt) {
  std::map<std::string, std::string> sources;
  for (const std::string& name : FilesOfTheTree(
           [](const std::filesystem::path& path) { return path.extension() == ".cc"; })) {
    sources[name] = ReadOrDie(name);
  }
  std::set<std::string> shown;
  for (const std::string& block : AllBlocks("cpp")) {
    const auto found = std::find_if(sources.begin(), sources.end(), [&](const auto& source) {
      return source.second.find(block) != std::string::npos;
    });
    EXPECT_NE(found, sources.end()) << "no source has\n" << block;
    if (found != sources.end()) shown.insert(found->first);
  }
  for (const char* program :
       {"run_decoder", "run_family", "run_in_place", "run_model", "run_resilient"}) {
    EXPECT_THAT(shown, testing::Contains(StrCat("tests/examples/", program, ".cc")));
  }
}

TEST_F(DocumentationTest, TheExampleOfAServiceThatIsAwayRuns) {
  const std::string model = dir_->path("softmax.onnx");
  const std::string numbers = "f32[4,8]: 0.125 0.125 0.125 0.125 ...";
  for (const auto& [server, mode] : {std::pair<std::string, const char*>{"unix:/no", "op by op"},
                                     {"unix:/no," + daemon_->address(), "fused (service)"},
                                     {"unix:/no", "fused (cache)"}}) {
    ProgramResult run = RunProgram({RUN_RESILIENT, server, model});
    EXPECT_EQ(run.code, 0) << run.err;
    EXPECT_THAT(run.out, AllOf(testing::StartsWith(mode), HasSubstr(numbers)));
  }
}

TEST_F(DocumentationTest, TheExampleOfStridesRuns) {
  ProgramResult run = RunProgram({RUN_IN_PLACE, daemon_->address(), dir_->path("softmax.onnx")});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("f32[4,8]: 0.125 0.125 0.125 0.125 ..."));
}

TEST_F(DocumentationTest, TheLibraryExampleRuns) {
  ProgramResult run = RunProgram({RUN_MODEL, daemon_->address(), dir_->path("softmax.onnx")});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("f32[4,8]: 0.125 0.125 0.125 0.125 ..."));
  EXPECT_EQ(RunProgram({RUN_MODEL, daemon_->address(), "none.onnx"}).code, 1);
  EXPECT_EQ(RunProgram({RUN_MODEL}).code, 2);
}

// What a program prints that runs a model of the generator, its dims open.
std::string OutputOf(const char* program, const std::string& model, const std::string& server,
                     const std::string& file) {
  ModelParams params = FindModel(model)->defaults;
  params.dynamic = true;
  absl::Status saved = SaveModel(GenerateModel(*FindModel(model), params).value().model, file);
  EXPECT_TRUE(saved.ok()) << saved;
  ProgramResult run = RunProgram({program, server, file});
  EXPECT_EQ(run.code, 0) << run.err;
  return run.out;
}

TEST_F(DocumentationTest, TheExampleOfOpenDimsRuns) {
  const std::string out =
      OutputOf(RUN_FAMILY, "bert_tiny", daemon_->address(), dir_->path("bert.onnx"));
  for (const char* rows : {"f32[2,7,", "f32[2,128,", "f32[2,512,"})
    EXPECT_THAT(out, HasSubstr(rows));
}

TEST_F(DocumentationTest, TheExampleOfSharedBuffersRuns) {
  const std::string out =
      OutputOf(RUN_DECODER, "llama_small_decode", daemon_->address(), dir_->path("decoder.onnx"));
  for (const char* rows : {"cached f32[1,2,1,64]", "cached f32[1,2,4,64]", "f32[1,1,512]"}) {
    EXPECT_THAT(out, HasSubstr(rows));
  }
}

TEST_F(DocumentationTest, TheExampleOfARegisteredKernelRuns) {
  std::string registration;
  for (const std::string& block : AllBlocks("textproto")) {
    if (block.starts_with("kernels {")) registration = block;
  }
  std::vector<std::string> sources = AllBlocks("c");
  ASSERT_EQ(sources.size(), 1U);
  dir_->Write("linear_relu.c", sources[0]);
  const size_t cost = registration.find("  cost {");
  ASSERT_NE(cost, std::string::npos);
  registration.insert(cost, "  force: true\n");  // whatever is faster on the machine of the test
  std::string file = dir_->Write("linear_relu.textproto", registration);
  auto daemon = TestDaemon::Start(FUSIOND, {"--kernels", file});
  ASSERT_TRUE(daemon.ok()) << daemon.status();

  OnnxBuilder b("linear", /*seed=*/1);
  std::string x = b.Input("x", DType::kF32, {{5}, {24}});
  x = b.Op("MatMul", {x, b.Weight("weight", {24, 40})});
  x = b.Op("Relu", {b.Op("Add", {x, b.Weight("bias", {40}, 0.5f)})});
  b.Output(x, DType::kF32, {{5}, {40}});
  std::string model = dir_->path("linear.onnx");
  ASSERT_TRUE(SaveModel(std::move(b).Finish(), model).ok());
  const std::vector<std::string> server = {"--server", (*daemon)->address()};
  ProgramResult verify = RunProgram({FUSIONCTL, "verify", model, server[0], server[1]});
  EXPECT_EQ(verify.code, 0) << verify.err;
  EXPECT_THAT(verify.out, HasSubstr("0 fallbacks")) << (*daemon)->output();
  ProgramResult plan = RunProgram({FUSIONCTL, "plan", model, server[0], server[1]});
  EXPECT_THAT(plan.out, HasSubstr("registered \"linear-relu\": ")) << plan.out;
  ProgramResult known = RunProgram({FUSIONCTL, "capabilities", server[0], server[1]});
  EXPECT_THAT(known.out, testing::ContainsRegex("linear-relu +[0-9a-f]{8} +ready +always"));
}

TEST_F(DocumentationTest, TheExampleOfReportsIsAccepted) {
  ProgramResult planned = RunProgram({FUSIONCTL, "plan", dir_->path("softmax.onnx"), "--plan-only",
                                      "--threads", "1", "--json", "--server", daemon_->address()});
  ASSERT_EQ(planned.code, 0) << planned.err;
  std::smatch key;
  ASSERT_TRUE(std::regex_search(planned.out, key, std::regex("\"plan_key\": ?\"([0-9a-f]{64})\"")));
  int posted = 0;
  for (const std::string& block : AllBlocks("json")) {
    if (!block.starts_with("{\"plan_key\"")) continue;
    const std::string reports = std::regex_replace(block, std::regex("[0-9a-f]{64}"), key[1].str());
    const ProgramResult run =
        RunProgram({FUSIONCTL, "report", "--post", dir_->Write("reports.jsonl", reports),
                    "--server", daemon_->address()});
    EXPECT_EQ(run.code, 0) << run.out << run.err;
    EXPECT_THAT(run.out, HasSubstr("2 reports: 2 stored with 19 samples"));
    ++posted;
  }
  EXPECT_EQ(posted, 1);
}

TEST_F(DocumentationTest, TheListOfOperatorsIsComplete) {
  // Those of which the text before it says what they become are not in it.
  const std::set<std::string> told = {"Constant", "Dropout", "If", "Loop", "Scan"};
  std::vector<std::string> names;
  for (const SupportedOp& op : SupportedOps()) {
    if (!told.contains(op.name)) names.push_back(op.name);
  }
  const std::string all = StrJoin(names, " ");
  std::vector<std::string> lists;
  for (const std::string& block : AllBlocks("")) {
    if (block.starts_with("Abs ")) lists.push_back(StrJoin(Lines(block), " "));
  }
  EXPECT_EQ(lists, std::vector<std::string>{all});
}

// "$ fusionctl show softmax.onnx ..." and what it prints; lines with "..." are cut.
TEST_F(DocumentationTest, TextFormsAreWhatFusionctlShows) {
  std::set<std::string> forms;
  for (const std::string& block : AllBlocks("")) {
    if (!block.starts_with("$ fusionctl show softmax.onnx ")) continue;
    std::vector<std::string> shown = Lines(block);
    std::vector<std::string> words = {FUSIONCTL, "show", dir_->path("softmax.onnx")};
    std::istringstream command(shown[0]);
    std::vector<std::string> typed{std::istream_iterator<std::string>(command), {}};
    words.insert(words.end(), typed.begin() + 4, typed.end());
    forms.insert(typed[4]);
    words.insert(words.end(), {"--server", daemon_->address()});
    ProgramResult run = RunProgram(words);
    ASSERT_EQ(run.code, 0) << run.err << daemon_->output();
    std::vector<std::string> printed = Lines(run.out);
    ASSERT_EQ(printed.size(), shown.size() - 1) << run.out;
    for (size_t i = 0; i < printed.size(); ++i) {
      if (shown[i + 1].find("...") != std::string::npos) continue;
      EXPECT_EQ(shown[i + 1], printed[i]) << shown[0];
    }
  }
  EXPECT_EQ(forms, (std::set<std::string>{"graph", "program", "smg", "schedule", "plan"}));
}

// What `regex` finds in its first group, all over the text.
std::vector<std::string> FindAll(const std::string& text, const char* regex) {
  std::vector<std::string> found;
  std::regex compiled(regex);
  for (std::sregex_iterator it(text.begin(), text.end(), compiled), end; it != end; ++it) {
    found.push_back((*it)[1]);
  }
  return found;
}

TEST_F(DocumentationTest, TheStepsOfTheQuickstartAreThoseOfTheScript) {
  std::string script = ReadOrDie("deploy/quickstart.sh");
  std::vector<std::string> work = FindAll(script, "\\nwork=([^\n]*)");
  ASSERT_EQ(work.size(), 1U);
  std::vector<std::string> steps = FindAll(script, "\\bstep \"([^\"]*)\"");
  ASSERT_GT(steps.size(), 5U);
  for (std::string& step : steps) step = std::regex_replace(step, std::regex("\\$work"), work[0]);
  EXPECT_EQ(FindAll(ReadOrDie("deploy/README.md"), "\n== ([^\n]*)"), steps);
}

// README.md shows parts of the transcript in deploy/README.md: the same lines in the same order.
TEST_F(DocumentationTest, TheShortTranscriptIsAPartOfTheWholeOne) {
  std::vector<std::vector<std::string>> transcripts;
  for (const char* name : {"README.md", "deploy/README.md"}) {
    for (const std::string& block : Blocks(ReadOrDie(name), "")) {
      if (block.starts_with("$ deploy/quickstart.sh\n")) transcripts.push_back(Lines(block));
    }
  }
  ASSERT_EQ(transcripts.size(), 2U);
  EXPECT_LT(transcripts[0].size(), transcripts[1].size());
  auto at = transcripts[1].begin();
  for (const std::string& line : transcripts[0]) {
    if (line == "...") continue;
    at = std::find(at, transcripts[1].end(), line);
    ASSERT_NE(at, transcripts[1].end()) << "not there, or in another order: " << line;
  }
}

TEST_F(DocumentationTest, EveryPromiseHasTestsThatExist) {
  std::string sources;
  const std::filesystem::path tests = std::filesystem::path(kSource) / "tests";
  for (const auto& entry : std::filesystem::recursive_directory_iterator(tests)) {
    if (entry.path().extension() != ".cc") continue;
    const std::string name = std::filesystem::relative(entry.path(), kSource).string();
    StrAppend(&sources, ReadOrDie(name));
  }
  std::string all;
  for (const std::string& name : Readmes()) StrAppend(&all, StrCat(ReadOrDie(name), "\n## \n"));
  const std::string heading = "\n## Promises\n";
  const size_t begin = all.find(heading) + 1;
  ASSERT_NE(begin, 0U);
  ASSERT_EQ(all.find(heading, begin), std::string::npos) << "two lists of promises";
  int promises = 0;
  for (const std::string& line : Lines(all.substr(begin, all.find("\n## ", begin) - begin))) {
    if (!line.starts_with("|") || line.starts_with("| promise") || line.starts_with("| ---"))
      continue;
    const std::regex test("`(\\w+)\\.(\\w+)`");
    const std::sregex_iterator found(line.begin(), line.end(), test), none;
    EXPECT_NE(found, none) << "a promise without a test: " << line;
    for (auto it = found; it != none; ++it) {
      const std::string named = StrCat((*it)[1].str(), ", ", (*it)[2].str(), ")");
      EXPECT_NE(sources.find(named), std::string::npos) << named;
    }
    ++promises;
  }
  EXPECT_GT(promises, 20);
}

TEST_F(DocumentationTest, EveryPackageIsInTheTableOfDependencies) {
  std::string script = ReadOrDie("deploy/install_deps.sh");
  std::string readme = ReadOrDie("README.md");
  std::vector<std::string> lists = FindAll(script, "_packages=\\(([^)]*)\\)");
  ASSERT_EQ(lists.size(), 2U);
  int packages = 0;
  for (const std::string& list : lists) {
    std::istringstream words(list);
    for (std::string package; words >> package; ++packages) {
      EXPECT_THAT(readme,
                  testing::ContainsRegex(StrCat(
                      "\n\\| [^|]*`", std::regex_replace(package, std::regex("[.+]"), "[$&]"),
                      "`[^|]* \\| ")));
    }
  }
  EXPECT_GT(packages, 20);
}

// The text without its fenced blocks.
std::string Prose(const std::string& text) {
  std::string prose;
  bool inside = false;
  for (std::string_view line : StrSplit(text, '\n')) {
    if (line.starts_with("```")) {
      inside = !inside;
    } else if (!inside) {
      StrAppend(&prose, StrCat(line, "\n"));
    }
  }
  return prose;
}

std::vector<std::string> Headings(const std::string& text) {
  return FindAll(Prose(text), "(?:^|\n)#+ ([^\n]*)");
}

// The names by which links find the headings of a text, made as GitHub makes them.
std::set<std::string> Anchors(const std::string& text) {
  std::set<std::string> anchors;
  std::map<std::string, int> seen;
  for (const std::string& heading : Headings(text)) {
    std::string anchor;
    for (char c : heading) {
      const auto byte = static_cast<unsigned char>(c);
      if (c == ' ') anchor += '-';
      if (std::isalnum(byte) || c == '-' || c == '_') {
        anchor += static_cast<char>(std::tolower(byte));
      }
    }
    const int before = seen[anchor]++;
    anchors.insert(before == 0 ? anchor : StrCat(anchor, "-", before));
  }
  return anchors;
}

// Targets of the links of the README `name` that lead into the repository: {file, anchor or ""}.
std::vector<std::pair<std::string, std::string>> LocalLinks(const std::string& name) {
  std::vector<std::pair<std::string, std::string>> links;
  for (const std::string& target : FindAll(Prose(ReadOrDie(name)), R"(\[[^\]]*\]\(([^)\s]+)\))")) {
    if (std::regex_search(target, std::regex("^[a-z]+:"))) continue;
    const std::string file = target.substr(0, target.find('#'));
    const std::filesystem::path folder = std::filesystem::path(name).parent_path();
    links.emplace_back(file.empty() ? name : (folder / file).lexically_normal().string(),
                       file.size() < target.size() ? target.substr(file.size() + 1) : "");
  }
  return links;
}

TEST_F(DocumentationTest, EveryReadmeIsReachedByLinksFromTheFirst) {
  std::set<std::string> reached = {"README.md"};
  for (std::vector<std::string> open = {"README.md"}; !open.empty();) {
    const std::string name = open.back();
    open.pop_back();
    for (const auto& [file, anchor] : LocalLinks(name)) {
      if (file.ends_with("README.md") && reached.insert(file).second) open.push_back(file);
    }
  }
  EXPECT_THAT(std::vector<std::string>(reached.begin(), reached.end()),
              testing::UnorderedElementsAreArray(Readmes()));
}

// Commands that `fusionctl --help` lists.
std::vector<std::string> CommandsOfFusionctl() {
  const std::string help = RunProgram({FUSIONCTL, "--help"}).out;
  const size_t begin = help.find("\nSubcommands:");
  FUSION_CHECK(begin != std::string::npos, help);
  return FindAll(help.substr(begin, help.find("\n\n", begin) - begin), "\n  ([a-z]+) ");
}

// Every command of fusionctl has a row in the table of its README, and no other has.
TEST_F(DocumentationTest, TheTableOfCommandsIsComplete) {
  const std::string readme = ReadOrDie("client/fusionctl/README.md");
  const size_t table = readme.find("| command |");
  ASSERT_NE(table, std::string::npos);
  EXPECT_THAT(FindAll(readme.substr(table, readme.find("\n\n", table) - table), "\n\\| `([a-z]+)"),
              testing::UnorderedElementsAreArray(CommandsOfFusionctl()));
}

// Words of the text that look like long flags. Not by std::regex, which takes seconds for all
// sources.
std::set<std::string> FlagsIn(std::string_view text) {
  auto is_letter = [](char c) { return c >= 'a' && c <= 'z'; };
  std::set<std::string> flags;
  for (size_t at = text.find("--"); at != text.npos; at = text.find("--", at)) {
    size_t end = at + 2;
    while (end < text.size() && (is_letter(text[end]) || text[end] == '-')) ++end;
    if (end > at + 2 && is_letter(text[at + 2])) flags.emplace(text.substr(at, end - at));
    at = end;
  }
  return flags;
}

// A flag that a README names is one of fusiond, of a command of fusionctl, or of a program or
// script in deploy/, docker/ or tests/.
TEST_F(DocumentationTest, EveryFlagExists) {
  std::set<std::string> known = {"--append", "--groups", "--now",  // of usermod and systemctl
                                 "--health-cmd"};                  // of podman
  known.merge(FlagsIn(RunProgram({FUSIOND, "--help"}).out));
  for (const std::string& command : CommandsOfFusionctl()) {
    known.merge(FlagsIn(RunProgram({FUSIONCTL, command, "--help"}).out));
  }
  for (const std::string& name : FilesOfTheTree([](const std::filesystem::path& path) {
         const std::string kind = path.extension();
         return kind == ".sh" || kind == ".py" || kind == ".cc";
       })) {
    // Tests of the programs try flags that are none.
    if (name.starts_with("tests/unit/") || name.starts_with("tests/service/")) continue;
    for (const char* folder : {"tests/", "deploy/", "docker/"}) {
      if (name.starts_with(folder)) known.merge(FlagsIn(ReadOrDie(name)));
    }
  }
  std::set<std::string> named;
  for (const std::string& readme : Readmes()) named.merge(FlagsIn(ReadOrDie(readme)));
  EXPECT_GT(named.size(), 100U);
  for (const std::string& flag : named) EXPECT_THAT(known, testing::Contains(flag));
}

// Comments, messages and scripts name a README by its path from the root, and a section of it as
// `README.md, "Title"`.
TEST_F(DocumentationTest, WhatSourcesSayOfReadmesIsThere) {
  const std::set<std::string> kinds = {".cc", ".h",    ".cmake",   ".txt",      ".proto",    ".sh",
                                       ".py", ".conf", ".service", ".sysusers", ".textproto"};
  const std::regex mention("([A-Za-z0-9_/]*)README\\.md(?:, \"([^\"\n]+)\")?");
  int mentions = 0;
  for (const std::string& source : FilesOfTheTree([&](const std::filesystem::path& path) {
         return kinds.contains(path.extension().string()) && path.filename() != kThisFile;
       })) {
    if (source.starts_with("tests/unit/onnx/")) continue;  // a file of that name is test data
    const std::string text = ReadOrDie(source);
    EXPECT_THAT(text, testing::Not(HasSubstr("README, "))) << source << ": which one?";
    if (text.find("README.md") == std::string::npos) continue;
    for (std::sregex_iterator it(text.begin(), text.end(), mention), end; it != end; ++it) {
      ++mentions;
      const std::string folder = (*it)[1].str();
      const std::string file = StrCat(folder.substr(folder.starts_with("/") ? 1 : 0), "README.md");
      ASSERT_THAT(Readmes(), testing::Contains(file)) << source;
      if (!(*it)[2].matched) continue;
      EXPECT_THAT(Headings(ReadOrDie(file)), testing::Contains((*it)[2].str())) << source;
    }
  }
  EXPECT_GT(mentions, 10);
}

class ReadmeTest : public testing::TestWithParam<std::string> {};

TEST_P(ReadmeTest, NamesOnlyFilesThatExist) {
  std::string text = ReadOrDie(GetParam());
  std::regex path(
      "(^|[^A-Za-z0-9_./-])((core|server|client|proto|deploy|docker|tests)/[A-Za-z0-9_./]*[a-z])");
  for (std::sregex_iterator it(text.begin(), text.end(), path), end; it != end; ++it) {
    EXPECT_TRUE(std::filesystem::exists(StrCat(kSource, "/", (*it)[2].str()))) << (*it)[2];
  }
}

TEST_P(ReadmeTest, ItsLinksLeadSomewhere) {
  for (const auto& [file, anchor] : LocalLinks(GetParam())) {
    ASSERT_TRUE(std::filesystem::exists(StrCat(kSource, "/", file))) << file;
    if (anchor.empty()) continue;
    EXPECT_THAT(Anchors(ReadOrDie(file)), testing::Contains(anchor)) << "in " << file;
  }
}

TEST_P(ReadmeTest, IsShortEnoughToRead) {
  const std::string text = ReadOrDie(GetParam());
  EXPECT_LE(std::count(text.begin(), text.end(), '\n'), GetParam() == "README.md" ? 200 : 500);
}

INSTANTIATE_TEST_SUITE_P(All, ReadmeTest, testing::ValuesIn(Readmes()), [](const auto& test) {
  std::string name = test.param.substr(0, test.param.size() - std::string(".md").size());
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return name;
});

}  // namespace
}  // namespace fusion
