// Every message, enum, value, field and call of proto/ says what it is, and every message and enum
// who sets it.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <sstream>

#include "core/base/text/text.h"
#include "core/bundle/what_if_words.h"

namespace fusion {
namespace {

/// What is declared without a comment, or by nobody known: "plan.proto:12: int32 node = 1;".
struct Findings {
  std::vector<std::string> lines;
  int declarations = 0;
};

bool SaysWhoSetsIt(const std::string& comment) {
  static const std::regex who(
      "[Ss]et(\\s|//)+by(\\s|//)+the(\\s|//)+(client|server|planner|worker|operator)\\b");
  return std::regex_search(comment, who);
}

/// Reads a .proto as this repository writes them: one declaration a line, its comment right above
/// it or behind it.
Findings Read(std::istream& in, const std::string& name) {
  static const std::regex type("\\s*(message|enum|service)\\s+\\w+\\s*\\{.*");
  static const std::regex item(
      "\\s*(rpc|oneof)\\s.*|\\s*[\\w.<>, ]+\\s\\w+\\s*=\\s*\\d+\\s*(\\[.*\\])?;.*|"
      "\\s*[A-Z]\\w*\\s*=\\s*\\d+\\s*;.*");
  static const std::regex skipped("\\s*(syntax|option|import|package|reserved)\\b.*");
  Findings out;
  std::string line, comment;
  for (int number = 1; std::getline(in, line); ++number) {
    size_t text = line.find_first_not_of(' ');
    if (text != std::string::npos && line.compare(text, 2, "//") == 0) {
      comment += line + "\n";
      continue;
    }
    bool is_type = std::regex_match(line, type);
    bool declares = is_type || (std::regex_match(line, item) && !std::regex_match(line, skipped));
    size_t behind = line.find("//");
    if (behind != std::string::npos) comment += line.substr(behind);
    if (declares) {
      ++out.declarations;
      bool service = line.find("service ") == text;
      bool good = comment.size() > 4 && (!is_type || service || SaysWhoSetsIt(comment));
      if (!good) out.lines.push_back(StrCat(name, ":", number, ": ", StripSpace(line)));
    }
    comment.clear();
  }
  return out;
}

TEST(ProtoDocumentation, EveryDeclarationHasAComment) {
  int files = 0;
  int declarations = 0;
  for (const auto& entry : std::filesystem::directory_iterator(FUSION_PROTO_DIR)) {
    if (entry.path().extension() != ".proto") continue;
    ++files;
    std::ifstream in(entry.path());
    Findings found = Read(in, entry.path().filename());
    declarations += found.declarations;
    for (const std::string& line : found.lines) ADD_FAILURE() << line;
  }
  EXPECT_GE(files, 3);
  EXPECT_GE(declarations, 200);
}

std::vector<std::string> FindingsIn(const std::string& text) {
  std::istringstream in(text);
  return Read(in, "x").lines;
}

TEST(ProtoDocumentation, NoticesWhatHasNone) {
  EXPECT_EQ(FindingsIn("// Set by the client.\nmessage M {\n  // One.\n  int32 a = 1;\n"
                       "  repeated M b = 2;  // two\n}\n"
                       "// Which. Set by\n// the server.\nenum E {\n  E_NONE = 0;  // none\n}\n"),
            std::vector<std::string>());
  EXPECT_EQ(
      FindingsIn("// Set by the client.\nmessage M {\n  // One.\n  int32 a = 1;\n"
                 "  map<string, int64> b = 2;\n\n  oneof c {\n    fusion.v1.M d = 3;\n  }\n}\n"),
      (std::vector<std::string>{"x:5: map<string, int64> b = 2;", "x:7: oneof c {",
                                "x:8: fusion.v1.M d = 3;"}));
  EXPECT_EQ(FindingsIn("// Some words.\nenum E {\n  E_NONE = 0;\n}\n// Far.\n\nmessage N {}\n"
                       "// Calls.\nservice S {\n  rpc C(M) returns (M);\n}\n"),
            (std::vector<std::string>{"x:2: enum E {", "x:3: E_NONE = 0;", "x:7: message N {}",
                                      "x:10: rpc C(M) returns (M);"}));
}

// Programs compare the words: PlanFlip.what has all of them, and no other.
TEST(ProtoDocumentation, PlanFlipHasEveryWord) {
  std::ifstream in(std::string(FUSION_PROTO_DIR) + "/plan.proto");
  std::string text{std::istreambuf_iterator<char>(in), {}};
  size_t begin = text.find("message PlanFlip {");
  size_t end = text.find("string what = 1;", begin);
  ASSERT_NE(end, std::string::npos);
  const std::string comment = text.substr(begin, end - begin);
  std::set<std::string> documented;
  const std::regex word("\"([^\"]*)\"");
  for (std::sregex_iterator it(comment.begin(), comment.end(), word), none; it != none; ++it) {
    documented.insert((*it)[1]);
  }
  EXPECT_EQ(documented, std::set<std::string>(std::begin(kWhatIfWords), std::end(kWhatIfWords)));
}

}  // namespace
}  // namespace fusion
