// fusion_opt: runs named stages of the compiler on the text form of a graph and prints what they
// make. For use and an example see core/README.md; `fusion_opt --help` lists the stages.
#include <iostream>
#include <iterator>

#include "core/base/files/file.h"
#include "tests/tools/stage_arguments.h"

namespace fusion {
namespace {

constexpr int kExitUsage = 2;
constexpr int kExitBadInput = 3;

absl::StatusOr<std::string> ReadInput(const std::string& path) {
  if (path != "-") return ReadFile(path, int64_t{64} << 20);
  return std::string(std::istreambuf_iterator<char>(std::cin), {});
}

int Fail(int code, std::string_view where, const absl::Status& status) {
  std::cerr << StrCat("fusion_opt: ", where, Message(status), "\n");
  return code;
}

int Main(int argc, char** argv) {
  CLI::App app("Runs stages of the compiler on the text form of a graph.", "fusion_opt");
  app.footer(StrCat("Stages:\n", StageList()));
  std::string path = "-";
  std::string list;
  bool print_all = false;
  StageArguments arguments;
  app.add_option("graph", path, "file with the text form of a graph; -: standard input")
      ->capture_default_str();
  app.add_option("--stages", list, "stages to run, in order, separated by commas")->required();
  app.add_flag("--print-after-all", print_all, "print what every stage makes, not only the last");
  AddStageArguments(&app, &arguments);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : kExitUsage;
  }
  auto stages = ParseStages(list);
  if (!stages.ok()) return Fail(kExitUsage, "--stages: ", stages.status());
  auto options = Resolve(arguments);
  if (!options.ok()) return Fail(kExitUsage, "--device: ", options.status());
  auto text = ReadInput(path);
  if (!text.ok()) return Fail(kExitBadInput, "", text.status());

  std::vector<StageText> texts;
  absl::Status done = RunStages(*text, *stages, *options, &texts);
  for (size_t i = 0; i < texts.size(); ++i) {
    if (print_all) std::cout << "== " << texts[i].stage << "\n" << texts[i].text;
    if (!print_all && done.ok() && i + 1 == texts.size()) std::cout << texts[i].text;
  }
  std::cout.flush();
  if (!done.ok()) return Fail(kExitBadInput, StrCat(path == "-" ? "<stdin>" : path, ": "), done);
  return 0;
}

}  // namespace
}  // namespace fusion

int main(int argc, char** argv) { return fusion::Main(argc, argv); }
