#include "client/fusionctl/args/help.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "client/fusionctl/args/arguments.h"
#include "core/base/text/nearest_word.h"
#include "core/base/text/text.h"
#include "core/base/text/wrapped_text.h"

namespace fusion {
namespace {

constexpr size_t kNameColumns = 28;  // of an option and its value

constexpr const char* kExitCodes =
    "Exit codes: 0 success; 1 verify, run --compare or repro --replay found values outside the "
    "tolerance, store verify found damage, store import refused plans; 2 bad usage; 3 bad input "
    "(missing or malformed file, unsupported op, data that do not fit the model, a "
    "report that the service refuses) or a request that cannot be served as it is (a range that no "
    "single plan covers, a lock that does not fit, a "
    "rule that forces an impossible kernel, more steps or memory than one request may use); 4 the "
    "service cannot be reached or started, is busy, refuses this caller, lacks a requirement (a "
    "compiler, a store), or failed, or a file system is full or read-only; 5 this machine has too "
    "little memory to run or evaluate the model.\n"
    "Errors are one line on stderr; with --json also {\"error\":{\"code\",\"message\"}} on "
    "stdout.\n"
    "NO_COLOR disables colours; colours and progress appear on terminals only.";

struct Example {
  std::string_view command;
  std::string_view line;
};
constexpr std::array<Example, 22> kExamples = {{
    {"", "fusionctl verify model.onnx --bind batch=8"},
    {"plan", "fusionctl plan model.onnx --bind batch=8 --nodes"},
    {"run", "fusionctl run model.onnx --input x=x.npy --out results --npy"},
    {"bench", "fusionctl bench model.onnx --seconds 10 --kernels"},
    {"verify", "fusionctl verify model.onnx --data test_data_set_0"},
    {"show", "fusionctl show model.onnx source"},
    {"kernels", "fusionctl kernels model.onnx --server unix:/run/fusiond.sock"},
    {"export", "fusionctl export model.onnx --fused --out model.fused.onnx"},
    {"explain", "fusionctl explain model.onnx --why MatMul_3 Softmax_4"},
    {"diff", "fusionctl diff model.onnx 68d807d5 --server unix:/run/fusiond.sock"},
    {"repro", "fusionctl repro model.onnx --out model.tar.gz"},
    {"tune", "fusionctl tune model.onnx --store plans --seconds 60"},
    {"probe", "fusionctl probe --seconds 5 --out constants.json"},
    {"report", "fusionctl report --server unix:/run/fusiond.sock --html report.html"},
    {"list", "fusionctl list --server unix:/run/fusiond.sock --limit 20"},
    {"capabilities", "fusionctl capabilities --ops"},
    {"status", "fusionctl status --server 127.0.0.1:50051"},
    {"top", "fusionctl top --server unix:/run/fusiond.sock"},
    {"epochs", "fusionctl epochs --server unix:/run/fusiond.sock"},
    {"token", "fusionctl token ci --role plan --expires 2027-01-31 --out ci.token"},
    {"store", "fusionctl store export --server unix:/run/fusiond.sock --out plans.archive"},
    {"completion",
     "fusionctl completion bash > ~/.local/share/bash-completion/completions/fusionctl"},
}};

std::string JoinNames(const std::set<CLI::Option*>& options) {
  std::vector<std::string> names;
  for (const CLI::Option* option : options) names.push_back(option->get_name());
  std::sort(names.begin(), names.end());  // the set is by address
  return StrJoin(names, ", ");
}

// `text` in a column that begins after `before` cells, the first line too.
std::string InColumn(const std::string& text, size_t before) {
  const std::string margin(before, ' ');
  const std::string wrapped = Wrapped(text, kHelpColumns - before - 2);
  return StrJoin(StrSplit(wrapped, '\n'), "\n",
                 [&](std::string_view line) { return StrCat(margin, StripSpace(line)); });
}

class HelpFormatter final : public CLI::Formatter {
 public:
  std::string make_option(const CLI::Option* option, bool positional) const override {
    std::string name = StrCat("  ", make_option_name(option, positional), make_option_opts(option));
    return WithDescription(std::move(name), make_option_desc(option));
  }
  std::string make_subcommand(const CLI::App* command) const override {
    return WithDescription(StrCat("  ", command->get_name()), command->get_description());
  }
  // Only the value: the description names the options that it needs.
  std::string make_option_opts(const CLI::Option* option) const override {
    if (option->get_type_size() == 0) return "";
    std::string out;
    if (!option->get_type_name().empty()) out = StrCat(" ", option->get_type_name());
    if (option->get_required()) out += " (required)";
    return out;
  }
  std::string make_option_desc(const CLI::Option* option) const override {
    std::string out = option->get_description();
    if (!option->get_default_str().empty()) {
      StrAppend(&out, StrCat("; default: ", option->get_default_str()));
    }
    if (!option->get_needs().empty()) {
      StrAppend(&out, StrCat(" [with ", JoinNames(option->get_needs()), "]"));
    }
    if (!option->get_excludes().empty()) {
      StrAppend(&out, StrCat(" [not with ", JoinNames(option->get_excludes()), "]"));
    }
    return out;
  }
  std::string make_description(const CLI::App* app) const override {
    return StrCat(Wrapped(CLI::Formatter::make_description(app), kHelpColumns));
  }

 private:
  static std::string WithDescription(std::string name, const std::string& description) {
    if (description.empty()) return StrCat(Wrapped(name, kHelpColumns), "\n");
    std::string text = InColumn(description, kNameColumns);
    if (name.size() + 2 <= kNameColumns) {
      text.replace(0, name.size(), name);
      return StrCat(text, "\n");
    }
    return StrCat(Wrapped(name, kHelpColumns), "\n", text, "\n");
  }
};

const CLI::App* CommandCalled(const CLI::App& app, std::string_view name) {
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (command->get_name() == name) return command;
  }
  return nullptr;
}

// "--no-report" of "--no-report{false}" and the like: the options as they are typed.
std::vector<std::string> OptionsOf(const CLI::App& app) {
  std::vector<std::string> out;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) out.push_back(StrCat("--", name));
    for (const std::string& name : option->get_snames()) out.push_back(StrCat("-", name));
  }
  return out;
}

// The first unknown option; empty: there is none.
std::string UnknownOption(const CLI::App& app, const std::string& of,
                          const std::vector<std::string_view>& words) {
  const std::vector<std::string> known = OptionsOf(app);
  for (std::string_view word : words) {
    if (word == "--") break;
    if (!word.starts_with("--")) continue;
    const std::string_view name = word.substr(0, word.find('='));
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    return StrCat(QuoteShort(name), " is no option", of, DidYouMean(name, known));
  }
  return "";
}

}  // namespace

void FormatHelp(CLI::App* app) { app->formatter(std::make_shared<HelpFormatter>()); }

std::string HelpFooter(std::string_view name) {
  std::string out;
  for (const Example& example : kExamples) {
    if (example.command == name) out = StrCat("Example:\n  ", example.line, "\n\n");
  }
  const std::string codes = Wrapped(kExitCodes, kHelpColumns);
  return StrCat(out, codes);
}

bool IsCommand(const CLI::App& app, std::string_view word) {
  return CommandCalled(app, word) != nullptr;
}

std::string UnknownWord(const CLI::App& app, int argc, const char* const* argv) {
  std::vector<std::string> commands;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    commands.push_back(command->get_name());
  }
  if (argc < 2) return StrCat("no command is given; expected one of ", StrJoin(commands, ", "));
  const std::string_view word = argv[1];
  if (word.starts_with("-")) return UnknownOption(app, "", {word});
  const CLI::App* command = CommandCalled(app, word);
  if (command != nullptr) {
    return UnknownOption(*command, StrCat(" of fusionctl ", word), {argv + 2, argv + argc});
  }
  const std::string near = DidYouMean(word, commands);
  return StrCat(QuoteShort(word), " is no command",
                near.empty() ? StrCat("; expected one of ", StrJoin(commands, ", ")) : near);
}

}  // namespace fusion
