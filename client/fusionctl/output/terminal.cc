#include "client/fusionctl/output/terminal.h"

#include <fmt/format.h>
#include <libsmartcols/libsmartcols.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "core/base/check.h"
#include "core/base/text/cells.h"
#include "core/base/text/text.h"
#include "core/base/text/utf8.h"
#include "core/base/text/wrapped_text.h"

namespace fusion {
namespace {

bool g_colour_allowed = true;

// Names are untrusted: OneLine keeps them from forging lines. They are cut, with room for other
// text.
std::string Coloured(const std::string& text, const char* code) {
  constexpr size_t kRoom = 8;  // an indent, and what follows the word
  const size_t columns = StdoutColumns();
  std::string line = OneLine(text);
  if (columns > kRoom) line = CutToCells(line, columns - kRoom);
  return ColourOnStdout() ? fmt::format("\x1b[{}m{}\x1b[0m", code, line) : line;
}

// libsmartcols pads the last column. With colours, the padding ends in an escape sequence and
// stays.
std::string WithoutTrailingSpaces(std::string_view text) {
  std::string out;
  for (std::string_view line : StrSplit(text, '\n')) {
    size_t last = line.find_last_not_of(' ');
    out += line.substr(0, last == std::string_view::npos ? 0 : last + 1);
    out += '\n';
  }
  while (out.size() > 1 && out[out.size() - 2] == '\n') out.pop_back();
  return out;
}

size_t ColumnsOf(int terminal) {
  winsize size{};
  const bool known = ioctl(terminal, TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
  return known ? size.ws_col : 80;
}

constexpr size_t kSeparator = 2;  // spaces between two columns
// Minimum width of a column that is cut.
constexpr size_t kLeastCut = 16;

struct FreeTable {
  void operator()(libscols_table* table) const { scols_unref_table(table); }
};

int Flags(Table::Align align) {
  switch (align) {
    case Table::kRight:
      return SCOLS_FL_RIGHT;
    case Table::kCut:
      return SCOLS_FL_TRUNC;
    case Table::kLeft:
      return 0;
  }
  return 0;
}

}  // namespace

void ForbidColour() { g_colour_allowed = false; }

bool ColourOnStdout() { return g_colour_allowed && isatty(STDOUT_FILENO) != 0; }

size_t StdoutColumns() { return isatty(STDOUT_FILENO) != 0 ? ColumnsOf(STDOUT_FILENO) : 0; }

size_t StdoutRows() {
  winsize size{};
  if (isatty(STDOUT_FILENO) == 0) return 0;
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 1 ? size.ws_row : 24;
}

std::string Bold(const std::string& text) { return Coloured(text, "1"); }
std::string Good(const std::string& text) { return Coloured(text, "32"); }
std::string Bad(const std::string& text) { return Coloured(text, "31"); }

std::string ProgressBar(int64_t done, int64_t total, int width) {
  auto filled = static_cast<size_t>(std::clamp<int64_t>(done * width / total, 0, width));
  return StrCat("[", std::string(filled, '#'),
                std::string(static_cast<size_t>(width) - filled, '-'), "]");
}

Progress::Progress(bool wanted) : enabled_(wanted && isatty(STDERR_FILENO) != 0) {}
Progress::~Progress() { Clear(); }

void Progress::Show(const std::string& what) { Draw(what + " ..."); }

void Progress::Show(const std::string& what, int64_t done, int64_t total) {
  constexpr int kBarWidth = 20;
  Draw(StrCat(ProgressBar(done, total, kBarWidth), " ", what, " ", done, "/", total));
}

void Progress::Draw(const std::string& line) {
  if (!enabled_) return;
  // Addresses and stages are untrusted text.
  const std::string printable = CutToCells(OneLine(line), ColumnsOf(STDERR_FILENO) - 1);
  std::fprintf(stderr, "\r\x1b[K%s", printable.c_str());
  std::fflush(stderr);
  shown_ = true;
}

void Progress::Clear() {
  if (!shown_) return;
  std::fputs("\r\x1b[K", stderr);
  std::fflush(stderr);
  shown_ = false;
}

// The minimum width of each column.
std::vector<size_t> Table::Widths() const {
  std::vector<size_t> widths;
  for (size_t i = 0; i < columns_.size(); ++i) {
    size_t width = CellsOf(columns_[i].heading);
    for (const auto& row : rows_) width = std::max(width, CellsOf(row[i]));
    widths.push_back(columns_[i].align == kCut ? std::min(width, kLeastCut) : width);
  }
  return widths;
}

// Which columns are shown.
std::vector<bool> Table::Fitting(size_t terminal_columns) const {
  std::vector<bool> shown(columns_.size(), true);
  if (terminal_columns == 0) return shown;
  const std::vector<size_t> widths = Widths();
  for (;;) {
    size_t all = 0;
    size_t next = columns_.size();
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (!shown[i]) continue;
      all += widths[i] + (all > 0 ? kSeparator : 0);
      const bool more = next == columns_.size() || columns_[i].spare > columns_[next].spare;
      if (columns_[i].spare > 0 && more) next = i;
    }
    if (all <= terminal_columns || next == columns_.size()) return shown;
    shown[next] = false;
  }
}

// For a column that is cut: libsmartcols cuts cells but not headings.
size_t Table::LongestHeading(const std::vector<bool>& shown, size_t terminal_columns) const {
  if (terminal_columns == 0) return std::string::npos;
  const std::vector<size_t> widths = Widths();
  size_t others = 0;
  size_t cut = 0;
  for (size_t i = 0; i < columns_.size(); ++i) {
    if (!shown[i]) continue;
    others += kSeparator + (columns_[i].align == kCut ? 0 : widths[i]);
    cut += columns_[i].align == kCut ? 1 : 0;
  }
  const size_t room = terminal_columns + kSeparator - std::min(others, terminal_columns);
  return std::max(kLeastCut, room / std::max<size_t>(cut, 1));
}

void Table::Add(std::vector<std::string> cells) {
  for (std::string& cell : cells) cell = OneLine(cell);
  rows_.push_back(std::move(cells));
}

std::string Table::ToString(size_t terminal_columns) const {
  const Utf8Locale utf8;  // for the library
  const std::vector<bool> shown = Fitting(terminal_columns);
  const size_t longest = LongestHeading(shown, terminal_columns);
  std::unique_ptr<libscols_table, FreeTable> table(scols_new_table());
  FUSION_CHECK(table != nullptr, "memory for a table");
  scols_table_enable_colors(table.get(), ColourOnStdout() ? 1 : 0);
  scols_table_enable_noencoding(table.get(), 1);  // Add did it
  scols_table_set_column_separator(table.get(), std::string(kSeparator, ' ').c_str());
  scols_table_set_termforce(table.get(),
                            terminal_columns > 0 ? SCOLS_TERMFORCE_ALWAYS : SCOLS_TERMFORCE_NEVER);
  if (terminal_columns > 0) scols_table_set_termwidth(table.get(), terminal_columns);
  std::vector<std::string> left_out;
  for (size_t i = 0; i < columns_.size(); ++i) {
    const Column& column = columns_[i];
    if (!shown[i]) {
      const bool says_something =
          std::any_of(rows_.begin(), rows_.end(), [i](const auto& row) { return !row[i].empty(); });
      if (says_something && !column.heading.empty()) left_out.push_back(column.heading);
      continue;
    }
    const std::string heading =
        column.align == kCut ? column.heading.substr(0, longest) : column.heading;
    libscols_column* c =
        scols_table_new_column(table.get(), heading.c_str(), 0, Flags(column.align));
    FUSION_CHECK(c != nullptr, "memory for a column");
    scols_cell_set_color(scols_column_get_header(c), "bold");
  }
  for (const auto& row : rows_) {
    libscols_line* line = scols_table_new_line(table.get(), nullptr);
    FUSION_CHECK(line != nullptr && row.size() == columns_.size(), "a cell for each column");
    size_t at = 0;
    for (size_t i = 0; i < row.size(); ++i) {
      if (shown[i]) scols_line_set_data(line, at++, row[i].c_str());
    }
  }
  char* text = nullptr;
  int result = scols_print_table_to_string(table.get(), &text);
  FUSION_CHECK(result == 0, "memory for the text of a table");
  std::string out = text == nullptr ? "" : text;
  std::free(text);
  out = WithoutTrailingSpaces(out);
  if (left_out.empty()) return out;
  const std::string note =
      StrCat("(no room for ", StrJoin(left_out, ", "), ": --json, or a wider terminal)");
  return StrCat(out, Wrapped(note, terminal_columns), "\n");
}

}  // namespace fusion
