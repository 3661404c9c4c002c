// What the terminal of a user gets of texts that others wrote, and what messages and help say.
#include "client/fusionctl/output/shown_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>

#include "client/fusionctl/args/arguments.h"
#include "client/fusionctl/args/help.h"
#include "client/fusionctl/args/user_words.h"
#include "client/fusionctl/output/terminal.h"
#include "core/base/text/text.h"

namespace fusion {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Shown, NothingDrivesTheTerminal) {
  EXPECT_EQ(Shown("a\x1b[31mb\x1b]0;title\x07", false), "a\\x1b[31mb\\x1b]0;title\\x07");
  EXPECT_EQ(Shown("cr\r back\b del\x7f", false), "cr\\x0d back\\x08 del\\x7f");
  EXPECT_EQ(Shown("c1 \xc2\x9b"
                  "31m raw \x9b",
                  false),
            "c1 \\u009b31m raw \\x9b");
  EXPECT_EQ(Shown("turned \xe2\x80\xae end \xe2\x81\xa6", false), "turned \\u202e end \\u2066");
  EXPECT_EQ(Shown(std::string_view("nul \0.", 6), false), "nul \\x00.");
}

TEST(Shown, TextStays) {
  for (const char* text :
       {"", "plain\n  and\ttabs", "caf\xc3\xa9 \xe6\x97\xa5\xe6\x9c\xac \xf0\x9f\x98\x80"}) {
    EXPECT_EQ(Shown(text, false), text);
  }
}

TEST(Shown, BytesThatAreNoUtf8AreNamed) {
  EXPECT_EQ(Shown("\xff\xc0\xaf \xed\xa0\x80 \xe2\x82", false),
            "\\xff\\xc0\\xaf \\xed\\xa0\\x80 \\xe2\\x82");
}

TEST(Shown, OwnColoursStayAndEnd) {
  EXPECT_EQ(Shown("\x1b[1mhead\x1b[0m \x1b[32mPASS\x1b[0m", true),
            "\x1b[1mhead\x1b[0m \x1b[32mPASS\x1b[0m");
  EXPECT_EQ(Shown("theirs \x1b[31m", true), "theirs \x1b[31m\x1b[0m") << "it does not go on";
  EXPECT_EQ(Shown("\x1b[8mhidden \x1b[2J", true), "\\x1b[8mhidden \\x1b[2J");
}

TEST(UserWords, FieldsOfTheRequestAreOptions) {
  Arguments a;
  a.lock = "my.lock";
  EXPECT_EQ(InUserWords("lock.groups[0].ops[1]: 7; the program has 3 loop ops", a),
            "--lock \"my.lock\": groups[0].ops[1]: 7; the program has 3 loop ops");
  EXPECT_EQ(InUserWords("lock.bodies[0]: lock.groups: op 1 is in none", a),
            "--lock \"my.lock\": bodies[0]: groups: op 1 is in none");
  EXPECT_EQ(InUserWords("options.dim_ranges[\"a]b\"]: 5..3; options.dim_bindings has it", a),
            "--range \"a]b\": 5..3; --bind has it");
  EXPECT_EQ(InUserWords("bind it with dim_bindings or, if it is the batch, with batch_size, or", a),
            "bind it with --bind or, if it is the batch, with --batch, or");
  EXPECT_EQ(InUserWords("opt_level: 3; hints.memory_pressure: 2; target.isa: no", a),
            "--opt-level: 3; --memory-pressure: 2; --isa: no");
}

TEST(UserWords, NamesOfTheModelStay) {
  const Arguments none;
  for (const char* text : {"node \"batch_size\" (Add): no", "lock.groups: as it is without --lock",
                           "my_batch_size", "node \"a \\\" dim_ranges\""}) {
    EXPECT_EQ(InUserWords(text, none), text);
  }
  Arguments writes;
  writes.write_lock = "a.lock";
  EXPECT_EQ(InUserWords("lock: group 0 runs the registered kernel \"lock:\"", writes),
            "--write-lock: group 0 runs the registered kernel \"lock:\"");
}

// Of every command, and of the program.
TEST(Help, FitsAndHasAnExample) {
  Arguments arguments;
  std::unique_ptr<CLI::App> app = MakeCommandLine(&arguments);
  std::vector<std::vector<const char*>> all = {{"fusionctl", "--help"}};
  for (const CLI::App* command : app->get_subcommands([](const CLI::App*) { return true; })) {
    all.push_back({"fusionctl", command->get_name().c_str(), "--help"});
  }
  ASSERT_EQ(all.size(), 22u);
  for (const std::vector<const char*>& words : all) {
    const ParsedArguments parsed = ParseArguments(static_cast<int>(words.size()), words.data());
    ASSERT_EQ(parsed.exit_code, kExitOk);
    for (std::string_view line : StrSplit(parsed.text, '\n')) {
      EXPECT_LE(line.size(), kHelpColumns) << words[1] << ": " << line;
    }
    const std::string command = words.size() > 2 ? StrCat(words[1], " ") : "";
    EXPECT_THAT(parsed.text, HasSubstr(StrCat("Example:\n  fusionctl ", command))) << words[1];
    EXPECT_THAT(parsed.text, Not(HasSubstr("Needs:"))) << words[1];
  }
}

// An example that the parser refuses helps nobody.
TEST(Help, ExamplesAreCommandLines) {
  Arguments arguments;
  std::unique_ptr<CLI::App> app = MakeCommandLine(&arguments);
  for (const CLI::App* command : app->get_subcommands([](const CLI::App*) { return true; })) {
    const std::string footer = HelpFooter(command->get_name());
    const size_t begin = footer.find("fusionctl ");
    std::string line = footer.substr(begin, footer.find('\n') == std::string::npos
                                                ? std::string::npos
                                                : footer.find('\n', begin) - begin);
    line = line.substr(0, line.find(" > "));
    std::vector<std::string> words;
    for (std::string_view word : StrSplit(line, ' ')) words.emplace_back(word);
    std::vector<const char*> argv;
    for (const std::string& word : words) argv.push_back(word.c_str());
    const ParsedArguments parsed = ParseArguments(static_cast<int>(argv.size()), argv.data());
    EXPECT_FALSE(parsed.exit_code.has_value()) << line << ": " << parsed.text;
  }
}

std::string Refused(std::vector<const char*> words) {
  words.insert(words.begin(), "fusionctl");
  const ParsedArguments parsed = ParseArguments(static_cast<int>(words.size()), words.data());
  EXPECT_EQ(parsed.exit_code, kExitUsage);
  return parsed.text;
}

TEST(Help, AnUnknownWordIsNamedWithTheOneThatWasMeant) {
  EXPECT_EQ(Refused({"paln", "m.onnx"}), "\"paln\" is no command; did you mean plan?");
  EXPECT_EQ(Refused({"plan", "m.onnx", "--theads", "2"}),
            "\"--theads\" is no option of fusionctl plan; did you mean --threads?");
  EXPECT_EQ(Refused({"plan", "--bnd=a=1", "m.onnx"}),
            "\"--bnd\" is no option of fusionctl plan; did you mean --bind?");
  EXPECT_EQ(Refused({"bench", "m.onnx", "--no-reprot"}),
            "\"--no-reprot\" is no option of fusionctl bench; did you mean --no-report?");
  EXPECT_EQ(Refused({"plan", "m.onnx", "--colour"}), "\"--colour\" is no option of fusionctl plan");
  EXPECT_EQ(Refused({"--verison"}), "\"--verison\" is no option; did you mean --version?");
  EXPECT_THAT(Refused({"plan", "m.onnx", "--threads", "0"}), HasSubstr("--threads"));
}

Table Wide() {
  Table table({{"key"},
               {"name", Table::kCut},
               {"target", Table::kLeft, /*spare=*/2},
               {"size", Table::kRight, /*spare=*/1}});
  table.Add({"0123abcd", std::string(60, 'n'), "intel-skylake-server", "12.34 MiB"});
  return table;
}

TEST(Table, FitsTheTerminal) {
  for (size_t columns : {52U, 60U, 80U, 100U, 200U}) {
    const std::string text = Wide().ToString(columns);
    for (std::string_view line : StrSplit(text, '\n')) EXPECT_LE(line.size(), columns) << text;
    EXPECT_THAT(text, HasSubstr("0123abcd"));
  }
  EXPECT_THAT(Wide().ToString(52), HasSubstr("(no room for target: --json, or a wider terminal)"));
  EXPECT_THAT(Wide().ToString(52), HasSubstr("12.34 MiB"));
  EXPECT_THAT(Wide().ToString(100), Not(HasSubstr("no room")));
}

TEST(Table, LongHeadingsAreCutAndEmptyColumnsAreNotMissed) {
  Table table({{"groups"},
               {"the smallest change, or the reason why not", Table::kCut},
               {"pinned", Table::kLeft, /*spare=*/1}});
  table.Add({"0 > 4", std::string(90, 'r'), ""});
  const std::string text = table.ToString(30);
  for (std::string_view line : StrSplit(text, '\n')) EXPECT_LE(line.size(), 30U) << text;
  EXPECT_THAT(text, HasSubstr("groups  the smallest change"));
  EXPECT_THAT(text, Not(HasSubstr("pinned")));
}

TEST(Table, WideNamesStayAndAlign) {
  Table table({{"model", Table::kCut}, {"nodes", Table::kRight}});
  table.Add({"\xe3\x83\xa2\xe3\x83\x87\xe3\x83\xab.onnx", "1"});  // 11 cells
  table.Add({"a\nplan b\xe2\x80\xae", "12"});
  EXPECT_EQ(table.ToString(0),
            "model              nodes\n"
            "\xe3\x83\xa2\xe3\x83\x87\xe3\x83\xab.onnx            1\n"
            "a\\x0aplan b\\u202e     12\n");
}

// Who names a model forges no line of the headline in which it stands.
TEST(Bold, IsOneLine) {
  EXPECT_EQ(Bold("x\nplan 1234 of y.onnx\xe2\x80\xae"), "x\\x0aplan 1234 of y.onnx\\u202e");
  EXPECT_EQ(Bold("caf\xc3\xa9"), "caf\xc3\xa9");
}

TEST(Table, IsWholeWhereThereIsNoTerminal) {
  EXPECT_THAT(Wide().ToString(0), HasSubstr(std::string(60, 'n')));
  EXPECT_THAT(Wide().ToString(0), HasSubstr("intel-skylake-server  12.34 MiB"));
}

}  // namespace
}  // namespace fusion
