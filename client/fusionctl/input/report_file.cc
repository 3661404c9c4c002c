#include "client/fusionctl/input/report_file.h"

#include <absl/strings/escaping.h>
#include <google/protobuf/util/json_util.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "client/fusionctl/args/exit_code.h"
#include "core/base/files/file.h"
#include "core/base/text/text.h"

namespace fusion {
namespace {

constexpr std::string_view kSpaces = " \t\r\n";
constexpr std::string_view kUtf8Mark = "\xef\xbb\xbf";

// Finds the objects of a text, without reading what they hold.
class ReportSplitter {
 public:
  explicit ReportSplitter(std::string_view text) : text_(text) {
    if (text_.starts_with(kUtf8Mark)) at_ = kUtf8Mark.size();
    SkipSpaces();
    if (Next() == '[') {
      array_ = true;
      ++at_;
    }
  }

  // The next object; empty: there is none. Afterwards line() is where it begins, or that of the
  // error.
  absl::StatusOr<std::string_view> Take() {
    SkipSpaces();
    if (array_ && !first_ && Next() == ',') {
      ++at_;
      SkipSpaces();
    } else if (array_ && Next() == ']') {
      ++at_;
      SkipSpaces();
      if (at_ < text_.size()) return Unexpected("the end of the text after the array");
      return std::string_view();
    } else if (array_ && !first_) {
      return Unexpected("',' or ']' after a report");
    } else if (!array_ && at_ == text_.size()) {
      return std::string_view();
    }
    if (Next() != '{') return Unexpected("'{', where a report begins");
    first_ = false;
    return TakeObject();
  }

  int64_t line() const { return reported_line_; }

 private:
  // 0 at the end.
  char Next() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  void SkipSpaces() {
    const size_t next = text_.find_first_not_of(kSpaces, at_);
    MoveTo(next == std::string_view::npos ? text_.size() : next);
  }

  void MoveTo(size_t next) {
    const std::string_view passed = text_.substr(at_, next - at_);
    line_ += std::count(passed.begin(), passed.end(), '\n');
    at_ = next;
  }

  absl::Status Unexpected(std::string_view expected) {
    reported_line_ = line_;
    if (at_ == text_.size()) return InvalidArgument("the text ends; expected ", expected);
    return InvalidArgument("found ", QuoteShort(text_.substr(at_, 1)), "; expected ", expected);
  }

  absl::StatusOr<std::string_view> TakeObject() {
    reported_line_ = line_;
    int depth = 0;
    bool in_text = false;
    for (size_t end = at_; end < text_.size(); ++end) {
      const char c = text_[end];
      if (in_text) {
        if (c == '\\') ++end;
        if (c == '"') in_text = false;
        continue;
      }
      if (c == '"') in_text = true;
      if (c == '{' || c == '[') ++depth;
      if (depth > kMaxPostDepth) {
        return InvalidArgument("nested deeper than ", kMaxPostDepth, " levels");
      }
      if ((c == '}' || c == ']') && --depth == 0) {
        const std::string_view object = text_.substr(at_, end + 1 - at_);
        MoveTo(end + 1);
        return object;
      }
    }
    return InvalidArgument("the text ends within the report that begins here");
  }

  std::string_view text_;
  size_t at_ = 0;
  int64_t line_ = 1;  // of at_
  int64_t reported_line_ = 1;
  bool array_ = false;
  bool first_ = true;
};

bool IsHexDigest(const std::string& text) {
  return text.size() == 64 && std::all_of(text.begin(), text.end(),
                                          [](unsigned char c) { return std::isxdigit(c) != 0; });
}

// 64 hex digits would be 48 bytes in base64, which no field takes.
void AcceptHex(nlohmann::json* report) {
  for (const char* name :
       {"plan_key", "planKey", "kernels_sha256", "kernelsSha256", "report_id", "reportId"}) {
    const auto field = report->find(name);
    if (field == report->end() || !field->is_string()) continue;
    const auto& text = field->get_ref<const std::string&>();
    if (IsHexDigest(text)) *field = absl::Base64Escape(absl::HexStringToBytes(text));
  }
}

absl::Status ParseReport(std::string_view text, v1::ReportLatencyRequest* out) {
  nlohmann::json json;
  try {
    json = nlohmann::json::parse(text);
  } catch (const nlohmann::json::exception& error) {
    // "[json.exception.parse_error.101] parse error at line 1, column 9: syntax error ..."
    std::string_view why = error.what();
    if (const size_t end = why.find("] "); end != std::string_view::npos)
      why.remove_prefix(end + 2);
    return InvalidArgument("no JSON: ", why);
  }
  AcceptHex(&json);
  const google::protobuf::util::Status read =
      google::protobuf::util::JsonStringToMessage(json.dump(), out);
  if (read.ok()) return absl::OkStatus();
  return InvalidArgument("no report: ",
                         std::string_view(read.message().data(), read.message().size()));
}

absl::StatusOr<std::string> ReadStandardInput() {
  std::string text;
  std::string part(1 << 16, '\0');
  for (;;) {
    const ssize_t got = read(STDIN_FILENO, part.data(), part.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Unavailable("standard input: ", std::strerror(errno));
    if (got == 0) return text;
    text.append(part, 0, static_cast<size_t>(got));
    if (text.size() > static_cast<size_t>(kMaxPostBytes)) {
      return InvalidArgument("standard input: more than ", HumanBytes(kMaxPostBytes));
    }
  }
}

}  // namespace

absl::StatusOr<std::vector<PostedReport>> ParseReports(std::string_view text,
                                                       std::string_view file) {
  std::vector<PostedReport> out;
  ReportSplitter splitter(text);
  for (;;) {
    auto at = [&](const absl::Status& status) {
      return Annotate(status, StrCat(file, ":", splitter.line()));
    };
    absl::StatusOr<std::string_view> object = splitter.Take();
    if (!object.ok()) return at(object.status());
    if (object->empty()) break;
    out.push_back({.line = splitter.line()});
    const absl::Status parsed = ParseReport(*object, &out.back().report);
    if (!parsed.ok()) return at(parsed);
  }
  if (out.empty()) return InvalidArgument(file, ": no report in it");
  return out;
}

absl::StatusOr<std::vector<PostedReport>> ReadReports(const std::string& path) {
  const bool piped = path == "-";
  absl::StatusOr<std::string> text = piped ? ReadStandardInput() : ReadFile(path, kMaxPostBytes);
  if (!text.ok()) return Annotate(BadFile(text.status()), "--post");
  return ParseReports(*text, piped ? "standard input" : path);
}

}  // namespace fusion
