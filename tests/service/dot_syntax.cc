#include "tests/service/dot_syntax.h"

#include <cctype>
#include <set>
#include <vector>

#include "core/base/text/text.h"

namespace fusion {
namespace {

// Names, quoted strings, "->" and single punctuation characters.
bool Tokenise(std::string_view text, std::vector<std::string>* tokens) {
  for (size_t i = 0; i < text.size();) {
    auto c = static_cast<unsigned char>(text[i]);
    size_t begin = i;
    if (std::isspace(c) != 0) {
      ++i;
      continue;
    }
    if (c == '"') {
      for (++i; i < text.size() && text[i] != '"'; ++i) {
        if (text[i] == '\\') ++i;
        if (i < text.size() && (text[i] == '\n' || static_cast<unsigned char>(text[i]) < 0x20)) {
          return false;
        }
      }
      if (i++ >= text.size()) return false;
    } else if (text.substr(i, 2) == "->") {
      i += 2;
    } else if (std::isalnum(c) != 0 || c == '_') {
      while (i < text.size() && (std::isalnum(static_cast<unsigned char>(text[i])) != 0 ||
                                 text[i] == '_' || text[i] == '.')) {
        ++i;
      }
    } else if (std::string_view("{}[];,=").find(text[i]) != std::string_view::npos) {
      ++i;
    } else {
      return false;
    }
    tokens->emplace_back(text.substr(begin, i - begin));
  }
  return true;
}

class DotParser {
 public:
  explicit DotParser(std::vector<std::string> tokens) : tokens_(std::move(tokens)) {}

  std::string Run() {
    if (!Accept("digraph") || !Id() || !Block()) {
      return StrCat("token ", at_, ": unexpected ", at_ < tokens_.size() ? tokens_[at_] : "end");
    }
    if (at_ != tokens_.size()) return "text behind the graph";
    for (const std::string& end : ends_) {
      if (nodes_.count(end) == 0) return StrCat("edge to ", end, ", which is no node");
    }
    return nodes_.empty() ? "no nodes" : "";
  }

 private:
  bool Accept(std::string_view token) {
    if (at_ >= tokens_.size() || tokens_[at_] != token) return false;
    ++at_;
    return true;
  }
  bool Id() {
    if (at_ >= tokens_.size()) return false;
    const std::string& t = tokens_[at_];
    if (t[0] != '"' && std::isalnum(static_cast<unsigned char>(t[0])) == 0) return false;
    last_ = t;
    ++at_;
    return true;
  }
  bool Attributes() {
    while (!Accept("]")) {
      if (!Id() || !Accept("=") || !Id()) return false;
      Accept(",");
    }
    return true;
  }
  bool Statement() {
    if (Accept("subgraph")) return Id() && Block();
    if (!Id()) return false;
    std::string first = last_;
    if (Accept("=")) return Id();
    bool edge = false;
    while (Accept("->")) {
      edge = true;
      ends_.push_back(first);
      if (!Id()) return false;
      ends_.push_back(last_);
    }
    bool defaults = first == "node" || first == "edge" || first == "graph";
    if (!edge && !defaults) nodes_.insert(first);
    return !Accept("[") || Attributes();
  }
  bool Block() {
    if (!Accept("{")) return false;
    while (!Accept("}")) {
      if (!Statement()) return false;
      Accept(";");
    }
    return true;
  }

  std::vector<std::string> tokens_;
  size_t at_ = 0;
  std::string last_;
  std::set<std::string> nodes_;
  std::vector<std::string> ends_;
};

}  // namespace

std::string DotError(std::string_view text) {
  std::vector<std::string> tokens;
  if (!Tokenise(text, &tokens)) return "a character or string that is none";
  return DotParser(std::move(tokens)).Run();
}

}  // namespace fusion
