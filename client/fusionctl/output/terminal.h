#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fusion {

/// Once at start: no colours, wherever the text goes.
void ForbidColour();
/// True if text for people goes there in colour: a terminal, and ForbidColour was not called.
bool ColourOnStdout();
/// Of the terminal that stdout is; 0: it is none.
size_t StdoutColumns();

/// One line (OneLine) in bold where ColourOnStdout(). On a terminal what is too long for it loses
/// its middle.
std::string Bold(const std::string& text);
/// In green or red.
std::string Good(const std::string& text);
std::string Bad(const std::string& text);

/// How far something is, in `width` cells: "[####----]". `total` > 0.
std::string ProgressBar(int64_t done, int64_t total, int width);

/// A line on stderr that says what is being waited for; only if stderr is a terminal. The next one
/// replaces it; the destructor removes it. It never wraps.
class Progress {
 public:
  /// `wanted`: false shows nothing; so it must be on a terminal that cannot clear a line.
  explicit Progress(bool wanted = true);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// True if what is shown is seen.
  bool enabled() const { return enabled_; }
  void Show(const std::string& what);
  /// The same with a bar.
  void Show(const std::string& what, int64_t done, int64_t total);
  void Clear();

 private:
  void Draw(const std::string& line);
  bool shown_ = false;
  const bool enabled_;
};

/// Rows under aligned headings, for people.
///
///   Table table({{"kernel"}, {"time", Table::kRight}});
///   table.Add({"MatMul+Add", "12.0 us"});
///   std::fputs(table.ToString().c_str(), stdout);
///
/// Cells are one line each (OneLine). On a terminal that is too narrow columns
/// are cut or left out, and the line below says which; elsewhere every column is there, whole.
class Table {
 public:
  enum Align : uint8_t { kLeft, kRight, kCut };  // kCut: cut off at the width of the terminal
  struct Column {
    std::string heading;
    Align align = kLeft;
    int spare = 0;  // > 0: left out where there is no room, the one with the most first
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  /// As many cells as columns.
  void Add(std::vector<std::string> cells);
  std::string ToString() const { return ToString(StdoutColumns()); }
  /// The same on a terminal of so many columns; 0: none.
  std::string ToString(size_t terminal_columns) const;

 private:
  std::vector<size_t> Widths() const;
  std::vector<bool> Fitting(size_t terminal_columns) const;
  size_t LongestHeading(const std::vector<bool>& shown, size_t terminal_columns) const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

/// Numbers for people.
std::string HumanMicroseconds(double us);  // "812 us", "12.3 ms", "1.52 s"
std::string HumanMilliseconds(double ms);
std::string HumanFlops(double flops);   // "1.81 Gflop"
std::string HumanPercent(double part);  // 0.774 -> "77.4 %"
std::string HumanAge(double seconds);   // "42 s", "3 min", "5 h", "12 d"
std::string ShortNumber(double value);  // "1.2e-06", "0.775"

}  // namespace fusion
