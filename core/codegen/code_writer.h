#pragma once

#include <string>
#include <string_view>

#include "core/base/text/text.h"
#include "core/base/threads/job.h"

namespace fusion {

/// Writes indented C-like text. Each Line and Open counts one Job::Step, which may end the current
/// job by an exception.
///
///   CodeWriter out;
///   out.Open("for (i64 m = 0; m < 8; ++m)");   // "for (...) {" and one level deeper
///   out.Line("x += m;  // sum");
///   out.Close();
class CodeWriter {
 public:
  template <typename... Parts>
  void Line(const Parts&... parts) {
    Job::Step();
    text_.append(static_cast<size_t>(2 * depth_), ' ');
    (StrAppend(&text_, parts), ...);
    text_ += '\n';
  }
  template <typename... Parts>
  void Open(const Parts&... parts) {
    Line(parts..., " {");
    ++depth_;
  }
  void Close(std::string_view suffix = "") {
    --depth_;
    Line("}", suffix);
  }
  /// Appends complete lines as they are, without indentation.
  void Raw(std::string_view text) { text_ += text; }
  void Blank() { text_ += '\n'; }

  /// Moves the text out; call it last.
  std::string Take() { return std::move(text_); }

 private:
  std::string text_;
  int depth_ = 0;
};

/// `value` as a C++ literal of the float type that reads back exactly: "0x1.8p+1f",
/// "__builtin_inff()", "-0x0p+0f".
std::string FloatLiteral(double value);
std::string DoubleLiteral(double value);

}  // namespace fusion
