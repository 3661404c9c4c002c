#include <CLI/CLI.hpp>

#include "client/fusionctl/args/arguments.h"
#include "client/fusionctl/commands/commands.h"
#include "client/fusionctl/output/print.h"
#include "client/fusionctl/output/terminal.h"

namespace fusion {
namespace {

/// The completions that the shell offers for a word.
struct Offer {
  enum Kind : uint8_t { kNothing, kWords, kFiles, kModels, kDirectories };
  Kind kind = kNothing;
  std::vector<std::string> words;
};

/// An option or a positional argument.
struct Word {
  std::string name;  // "--threads"; empty for a positional
  std::string help;
  bool takes_value = false;
  bool repeats = false;
  Offer value;
};

struct CompletedCommand {
  std::string name;
  std::string help;
  std::vector<Word> options;
  std::vector<Word> positionals;
};

// By the type name; see MakeCommandLine.
Offer OfferFor(const std::string& type) {
  Offer out;
  if (type.size() > 2 && type.front() == '{' && type.back() == '}') {
    out.kind = Offer::kWords;
    const std::string inside = type.substr(1, type.size() - 2);
    for (std::string_view word : StrSplit(inside, ',')) out.words.emplace_back(word);
  } else if (type.ends_with("FILE.onnx")) {
    out.kind = Offer::kModels;
  } else if (type == "FILE" || type == "PROGRAM") {
    out.kind = Offer::kFiles;
  } else if (type == "DIR") {
    out.kind = Offer::kDirectories;
  }
  return out;
}

CompletedCommand Describe(const CLI::App& app) {
  CompletedCommand out{.name = app.get_name(), .help = app.get_description()};
  for (const CLI::Option* option : app.get_options()) {
    Word word{.help = option->get_description(),
              .takes_value = option->get_items_expected_max() > 0,
              .repeats = option->get_expected_max() > 1};
    if (word.takes_value) word.value = OfferFor(option->get_type_name());
    if (option->get_positional()) out.positionals.push_back(word);
    for (const std::string& name : option->get_lnames()) {
      word.name = "--" + name;
      out.options.push_back(word);
    }
  }
  return out;
}

std::vector<CompletedCommand> Commands(const CLI::App& app) {
  std::vector<CompletedCommand> out;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    out.push_back(Describe(*command));
  }
  return out;
}

std::string Names(const std::vector<CompletedCommand>& commands) {
  return StrJoin(commands, " ", [](const CompletedCommand& c) { return c.name; });
}
std::string Names(const std::vector<Word>& words) {
  return StrJoin(words, " ", [](const Word& w) { return w.name; });
}

// --- bash

// One line of a case: the completions for the value of an option or for a positional argument.
std::string BashOffer(const std::string& pattern, const Offer& offer) {
  constexpr std::string_view kKinds[] = {"", "words", "files", "models", "directories"};
  std::string out = StrCat("    '", pattern, "') kind=", kKinds[offer.kind]);
  if (!offer.words.empty()) StrAppend(&out, StrCat(" words='", StrJoin(offer.words, " "), "'"));
  return out + " ;;\n";
}

// Four generated cases precede this text; they contain all that depends on commands and options.
constexpr std::string_view kBashRest = R"(
  # bash cuts words at ':' and '=': "unix:/x" is three of them. Here they are one again.
  local typed=() word last= i
  for ((i = 1; i <= COMP_CWORD; ++i)); do
    word=${COMP_WORDS[i]}
    if [[ ${#typed[@]} -gt 0 && ($word == [:=]* || ($last == [:=]* && -n $word)) ]]; then
      typed[-1]+=$word
    else
      typed+=("$word")
    fi
    last=$word
  done

  # Words before the one being typed: which command, how many arguments, and what awaits a value.
  local cur=${typed[-1]} command= awaits= position=0
  for ((i = 0; i + 1 < ${#typed[@]}; ++i)); do
    word=${typed[i]}
    if [[ -n $awaits ]]; then
      awaits=
    elif [[ $word == --*=* ]]; then
      continue
    elif [[ $word == --* ]]; then
      _fusionctl_takes_value "$command $word" && awaits=$word
    elif [[ -z $command ]]; then
      command=$word
    else
      ((++position))
    fi
  done
  if [[ -z $awaits && $cur == --*=* ]] && _fusionctl_takes_value "$command ${cur%%=*}"; then
    awaits=${cur%%=*} cur=${cur#*=}
  fi

  local kind= words=
  COMPREPLY=()
  if [[ -n $awaits ]]; then
    _fusionctl_offer "$command $awaits"
  elif [[ $cur == -* ]]; then
    kind=words words=$(_fusionctl_options "$command")
  elif [[ -z $command ]]; then
    kind=words words=$_fusionctl_commands
  else
    _fusionctl_offer "$command $position"
  fi
  case $kind in
    words) mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur") ;;
    files) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
    models) mapfile -t COMPREPLY < <(compgen -d -- "$cur"; compgen -f -X '!*.onnx' -- "$cur") ;;
    directories) mapfile -t COMPREPLY < <(compgen -d -- "$cur") ;;
  esac
  case $kind in
    files | models | directories) compopt -o filenames 2>/dev/null ;;
  esac
  # What is offered takes the place of the word as bash cut it: COMP_WORDBREAKS may lack ':' and '='.
  local cut=${COMP_WORDS[COMP_CWORD]}
  [[ $cut == [:=] ]] && cut=
  if [[ $cut == --*=* && -n $awaits ]]; then
    local option=${cut%%=*}=
    COMPREPLY=("${COMPREPLY[@]/#/$option}")
  else
    COMPREPLY=("${COMPREPLY[@]#"${cur%"$cut"}"}")
  fi
  return 0
}
complete -F _fusionctl fusionctl
)";

std::string BashScript(const CompletedCommand& top, const std::vector<CompletedCommand>& commands) {
  std::string options, takes, offers;
  auto add = [&](const CompletedCommand& command, const std::string& name) {
    options += StrCat("    '", name, "') echo '", Names(command.options), "' ;;\n");
    std::vector<std::string> patterns;
    for (const Word& option : command.options) {
      if (!option.takes_value) continue;
      std::string pattern = StrCat(name, " ", option.name);
      patterns.push_back(StrCat("'", pattern, "'"));
      if (option.value.kind != Offer::kNothing) offers += BashOffer(pattern, option.value);
    }
    if (!patterns.empty()) takes += StrCat("    ", StrJoin(patterns, " | "), ") return 0 ;;\n");
    for (size_t i = 0; i < command.positionals.size(); ++i) {
      offers += BashOffer(StrCat(name, " ", i), command.positionals[i].value);
    }
  };
  add(top, "");
  for (const CompletedCommand& command : commands) add(command, command.name);
  return StrCat("# Completion of fusionctl ", FUSION_VERSION, " for bash.\n",
                "_fusionctl_commands='", Names(commands), "'\n",
                "_fusionctl_options() {  # of a command\n  case $1 in\n", options, "  esac\n}\n",
                "_fusionctl_takes_value() {  # \"command --option\"\n  case $1 in\n", takes,
                "  esac\n  return 1\n}\n",
                "_fusionctl_offer() {  # for the value of \"command --option\", or for an argument "
                "by its number\n  case $1 in\n",
                offers, "  esac\n}\n_fusionctl() {", kBashRest);
}

// --- zsh

// Inside single quotes, in a specification of _arguments or _describe.
std::string ZshText(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '\'') {
      out += "'\\''";
      continue;
    }
    if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string ZshAction(const Offer& offer) {
  switch (offer.kind) {
    case Offer::kNothing:
      return " ";
    case Offer::kWords:
      return StrCat("(", StrJoin(offer.words, " "), ")");
    case Offer::kFiles:
      return "_files";
    case Offer::kModels:
      return "_files -g \"*.onnx\"";
    case Offer::kDirectories:
      return "_files -/";
  }
  return " ";
}

std::string ZshArguments(const CompletedCommand& command) {
  std::string out = "_arguments";
  for (const Word& option : command.options) {
    StrAppend(&out, StrCat(" \\\n        '", option.repeats ? "*" : "", option.name,
                           option.takes_value ? "=" : "", "[", ZshText(option.help), "]"));
    if (option.takes_value) StrAppend(&out, StrCat(":value:", ZshAction(option.value)));
    out += "'";
  }
  for (size_t i = 0; i < command.positionals.size(); ++i) {
    StrAppend(&out, StrCat(" \\\n        '", i + 1, ":", ZshText(command.positionals[i].help), ":",
                           ZshAction(command.positionals[i].value), "'"));
  }
  return out + "\n";
}

std::string ZshScript(const CompletedCommand& top, const std::vector<CompletedCommand>& commands) {
  std::string described, cases;
  for (const CompletedCommand& command : commands) {
    described += StrCat("    '", command.name, ":", ZshText(command.help), "'\n");
    cases += StrCat("    ", command.name, ")\n      ", ZshArguments(command), "      ;;\n");
  }
  std::string flags = StrJoin(top.options, " ", [](const Word& option) {
    return StrCat("'(- *)", option.name, "[", ZshText(option.help), "]'");
  });
  return StrCat("#compdef fusionctl\n# Completion of fusionctl ", FUSION_VERSION,
                " for zsh.\n_fusionctl() {\n  local context state state_descr line\n",
                "  typeset -A opt_args\n  local -a commands=(\n", described, "  )\n",
                "  _arguments -C ", flags,
                " '1:command:->command' '*::argument:->arguments' && return\n",
                "  if [[ $state == command ]]; then\n    _describe command commands\n",
                "    return\n  fi\n  case $line[1] in\n", cases, "  esac\n}\n",
                "if [[ $funcstack[1] == _fusionctl ]]; then\n  _fusionctl \"$@\"\n",
                "else\n  compdef _fusionctl fusionctl\nfi\n");
}

// --- fish

std::string FishText(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string FishValue(const Offer& offer) {
  switch (offer.kind) {
    case Offer::kNothing:
      return " -x";
    case Offer::kWords:
      return StrCat(" -x -a '", StrJoin(offer.words, " "), "'");
    case Offer::kFiles:
      return " -r -F";
    case Offer::kModels:
      return " -k -x -a '(__fish_complete_suffix .onnx)'";
    case Offer::kDirectories:
      return " -x -a '(__fish_complete_directories)'";
  }
  return "";
}

std::string FishScript(const CompletedCommand& top, const std::vector<CompletedCommand>& commands) {
  std::string out = StrCat("# Completion of fusionctl ", FUSION_VERSION,
                           " for fish.\ncomplete -c fusionctl -f\n");
  auto add = [&out](const std::string& condition, const std::string& what,
                    const std::string& help) {
    out +=
        StrCat("complete -c fusionctl -n '", condition, "'", what, " -d '", FishText(help), "'\n");
  };
  for (const Word& option : top.options) {
    add("__fish_use_subcommand", StrCat(" -l ", option.name.substr(2)), option.help);
  }
  for (const CompletedCommand& command : commands) {
    add("__fish_use_subcommand", StrCat(" -a ", command.name), command.help);
    std::string inside = StrCat("__fish_seen_subcommand_from ", command.name);
    for (const Word& option : command.options) {
      add(inside,
          StrCat(" -l ", option.name.substr(2), option.takes_value ? FishValue(option.value) : ""),
          option.help);
    }
    for (const Word& positional : command.positionals) {
      if (positional.value.kind == Offer::kNothing) continue;
      add(inside, FishValue(positional.value), positional.help);
    }
  }
  return out;
}

}  // namespace

absl::StatusOr<ExitCode> RunCompletion(const Arguments& arguments, Progress*) {
  Arguments ignored;
  std::unique_ptr<CLI::App> app = MakeCommandLine(&ignored);
  CompletedCommand top = Describe(*app);
  std::vector<CompletedCommand> commands = Commands(*app);
  switch (arguments.shell) {
    case Shell::kBash:
      PrintAsItIs(BashScript(top, commands));
      break;
    case Shell::kZsh:
      PrintAsItIs(ZshScript(top, commands));
      break;
    case Shell::kFish:
      PrintAsItIs(FishScript(top, commands));
      break;
  }
  return kExitOk;
}

}  // namespace fusion
