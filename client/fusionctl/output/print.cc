#include "client/fusionctl/output/print.h"

#include <cstdio>
#include <nlohmann/json.hpp>
#include <vector>

#include "client/fusionctl/output/shown_text.h"
#include "client/fusionctl/output/terminal.h"
#include "core/base/text/text.h"
#include "core/base/text/utf8.h"
#include "core/base/text/wrapped_text.h"

namespace fusion {

void PrintJson(const Json& json) {
  const std::string text =
      ShownJson(json.dump(2, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace));
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fputc('\n', stdout);
}

void Print(const std::string& text) { PrintAsItIs(Wrapped(text, StdoutColumns())); }

void PrintAsItIs(const std::string& text) {
  const std::string shown = Shown(text, /*own_colours=*/ColourOnStdout());
  std::fwrite(shown.data(), 1, shown.size(), stdout);
}

FrameOnTerminal::FrameOnTerminal() { std::fputs("\x1b[?25l\x1b[2J", stdout); }

FrameOnTerminal::~FrameOnTerminal() {
  std::fputs("\x1b[?25h", stdout);
  std::fflush(stdout);
}

void FrameOnTerminal::Draw(const std::string& text) {
  const std::string shown = Shown(Wrapped(text, StdoutColumns()), ColourOnStdout());
  std::vector<std::string_view> lines = StrSplit(shown, '\n');
  if (!lines.empty() && lines.back().empty()) lines.pop_back();
  // The cursor is on the line behind the last one.
  const size_t room = StdoutRows() > 1 ? StdoutRows() - 1 : 1;
  if (lines.size() > room) lines.resize(room);
  std::string out = "\x1b[H";
  for (std::string_view line : lines) out += StrCat(line, "\x1b[K\n");
  out += "\x1b[J";
  std::fwrite(out.data(), 1, out.size(), stdout);
  std::fflush(stdout);
}

void PrintWarning(std::string_view text) {
  std::fprintf(stderr, "fusionctl: %s\n", Shown(text, /*own_colours=*/false).c_str());
}

}  // namespace fusion
