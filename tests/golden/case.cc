#include "tests/golden/case.h"

#include <algorithm>
#include <array>

#include "tests/tools/stage_arguments.h"

namespace fusion {
namespace {

constexpr std::string_view kSuffixes[] = {"", " contains", " lacks", ""};  // by kind

// The words before the colon of a line that starts a section; empty if it starts none.
std::string_view SectionOf(std::string_view line) {
  size_t colon = line.find(':');
  if (colon == std::string_view::npos) return "";
  std::string_view head = line.substr(0, colon);
  bool known = head == "input" || head == "options" || head == "stages" ||
               (head.starts_with("expect ") && line.substr(colon + 1).empty());
  return known ? head : "";
}

Expectation ExpectationOf(std::string_view words) {
  if (words == "error") return {.kind = Expectation::kError};
  for (Expectation::Kind kind : {Expectation::kContains, Expectation::kLacks}) {
    if (words.ends_with(kSuffixes[kind])) {
      words.remove_suffix(kSuffixes[kind].size());
      return {.kind = kind, .stage = std::string(words)};
    }
  }
  return {.stage = std::string(words)};
}

std::vector<std::string_view> Lines(std::string_view text) {
  std::vector<std::string_view> lines;
  for (std::string_view line : StrSplit(text, '\n')) {
    if (!StripSpace(line).empty()) lines.push_back(StripSpace(line));
  }
  return lines;
}

// The first line that differs, with what stands there on both sides.
std::string Difference(std::string_view wanted, std::string_view got) {
  std::vector<std::string_view> a = StrSplit(wanted, '\n');
  std::vector<std::string_view> b = StrSplit(got, '\n');
  size_t same = 0;
  while (same < a.size() && same < b.size() && a[same] == b[same]) ++same;
  std::string out;
  size_t from = same < 2 ? 0 : same - 2;
  for (size_t i = from; i < same; ++i) StrAppend(&out, StrCat("    ", a[i], "\n"));
  for (size_t i = same; i < std::min(a.size(), same + 6); ++i) {
    StrAppend(&out, StrCat("  - ", a[i], "\n"));
  }
  for (size_t i = same; i < std::min(b.size(), same + 6); ++i) {
    StrAppend(&out, StrCat("  + ", b[i], "\n"));
  }
  return out;
}

// What is wrong with `text`; empty if nothing is.
std::string Compare(const Expectation& expected, std::string_view text) {
  if (expected.kind == Expectation::kText) {
    if (expected.body == text) return "";
    return StrCat("line by line (- expected, + got):\n", Difference(expected.body, text));
  }
  std::vector<std::string_view> got = Lines(text);
  if (expected.kind == Expectation::kLacks) {
    for (std::string_view part : Lines(expected.body)) {
      bool has = std::any_of(got.begin(), got.end(), [part](std::string_view line) {
        return line.find(part) != std::string_view::npos;
      });
      if (has) return StrCat("has ", Quote(part), " in\n", text);
    }
    return "";
  }
  auto from = got.begin();
  for (std::string_view line : Lines(expected.body)) {
    auto at = expected.kind == Expectation::kError
                  ? std::find_if(from, got.end(),
                                 [line](std::string_view l) {
                                   return l.find(line) != std::string_view::npos;
                                 })
                  : std::find(from, got.end(), line);
    if (at == got.end()) return StrCat("lacks, in its place, ", Quote(line), "; it is\n", text);
    from = expected.kind == Expectation::kError ? at : at + 1;
  }
  return "";
}

absl::StatusOr<StageOptions> OptionsOf(const GoldenCase& golden) {
  CLI::App app;
  StageArguments arguments;
  AddStageArguments(&app, &arguments);
  try {
    app.parse(golden.options);
  } catch (const CLI::ParseError& e) {
    return InvalidArgument("options: ", e.what());
  }
  return Resolve(arguments);
}

absl::StatusOr<std::vector<std::string>> StagesOf(const GoldenCase& golden) {
  if (!golden.stages.empty()) return ParseStages(golden.stages);
  std::vector<std::string> stages;
  for (const Expectation& expected : golden.expected) {
    bool known = std::find(stages.begin(), stages.end(), expected.stage) != stages.end();
    if (!expected.stage.empty() && !known) stages.push_back(expected.stage);
  }
  return ParseStages(StrJoin(stages, ","));
}

}  // namespace

absl::StatusOr<GoldenCase> ParseCase(std::string_view text) {
  GoldenCase golden;
  std::string* body = &golden.comment;
  int number = 0;
  if (text.ends_with('\n')) text.remove_suffix(1);
  for (std::string_view line : StrSplit(text, '\n')) {
    ++number;
    std::string_view section = SectionOf(line);
    if (section.empty()) {
      if (body == nullptr) {
        if (!line.empty()) return InvalidArgument("line ", number, ": expected a section");
        continue;
      }
      StrAppend(body, StrCat(line, "\n"));
      continue;
    }
    std::string_view rest = StripSpace(line.substr(section.size() + 1));
    if (section == "options" || section == "stages") {
      (section == "options" ? golden.options : golden.stages) = std::string(rest);
      body = nullptr;
    } else if (section == "input") {
      body = &golden.input;
    } else {
      golden.expected.push_back(ExpectationOf(section.substr(std::string_view("expect ").size())));
      body = &golden.expected.back().body;
    }
  }
  if (golden.input.empty()) return InvalidArgument("no input");
  if (golden.expected.empty()) return InvalidArgument("nothing is expected");
  for (const Expectation& e : golden.expected) {
    if (!Lines(e.body).empty()) continue;
    return InvalidArgument("expect ", e.kind == Expectation::kError ? "error" : e.stage,
                           kSuffixes[static_cast<size_t>(e.kind)], ": no line");
  }
  return golden;
}

std::string ToString(const GoldenCase& golden) {
  std::string out = StrCat(golden.comment, "input:\n", golden.input);
  if (!golden.options.empty()) StrAppend(&out, StrCat("options: ", golden.options, "\n"));
  if (!golden.stages.empty()) StrAppend(&out, StrCat("stages: ", golden.stages, "\n"));
  for (const Expectation& e : golden.expected) {
    StrAppend(&out, e.kind == Expectation::kError
                        ? StrCat("expect error:\n", e.body)
                        : StrCat("expect ", e.stage, kSuffixes[static_cast<size_t>(e.kind)], ":\n",
                                 e.body));
  }
  return out;
}

absl::Status RunCase(GoldenCase* golden, bool update) {
  ASSIGN_OR_RETURN(StageOptions options, OptionsOf(*golden));
  ASSIGN_OR_RETURN(std::vector<std::string> stages, StagesOf(*golden));
  std::vector<StageText> texts;
  absl::Status done = RunStages(golden->input, stages, options, &texts);
  bool may_fail = std::any_of(golden->expected.begin(), golden->expected.end(),
                              [](const Expectation& e) { return e.kind == Expectation::kError; });
  if (!done.ok() && !may_fail) return done;
  for (Expectation& expected : golden->expected) {
    std::string text;
    if (expected.kind == Expectation::kError) {
      if (done.ok()) return FailedPrecondition("the stages did not fail");
      text = std::string(Message(done));
    } else {
      auto found = std::find_if(texts.rbegin(), texts.rend(),
                                [&](const StageText& t) { return t.stage == expected.stage; });
      if (found == texts.rend())
        return FailedPrecondition("stage ", expected.stage, " did not run");
      text = found->text;
    }
    std::string wrong = Compare(expected, text);
    if (wrong.empty()) continue;
    if (!update || expected.kind != Expectation::kText) {
      return FailedPrecondition("expect ", expected.stage, ": ", wrong);
    }
    expected.body = text;
  }
  return absl::OkStatus();
}

}  // namespace fusion
