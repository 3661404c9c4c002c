#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/text/human_numbers.h"

namespace fusion {

/// Turns colours off. Call it before other threads start.
void ForbidColour();
/// Whether stdout is a terminal and ForbidColour was not called.
bool ColourOnStdout();
/// Width of the terminal; 0: stdout is not a terminal.
size_t StdoutColumns();
/// Height of the terminal in lines; 0: stdout is not a terminal.
size_t StdoutRows();

/// `text` as one line (OneLine), in bold if ColourOnStdout(). If stdout is a terminal, the middle
/// of a text longer than a line is cut out.
std::string Bold(const std::string& text);
/// The same in green or red.
std::string Good(const std::string& text);
std::string Bad(const std::string& text);

/// Progress of `done` out of `total` (> 0) in `width` cells: "[####----]".
std::string ProgressBar(int64_t done, int64_t total, int width);

/// A progress line on stderr, if that is a terminal. Each Show replaces the line; the destructor
/// removes it. It never wraps. Not thread-safe.
class Progress {
 public:
  /// If not `wanted`, or if the terminal cannot clear a line, nothing is shown.
  explicit Progress(bool wanted = true);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// False if Show does nothing.
  bool enabled() const { return enabled_; }
  void Show(const std::string& what);
  /// The same with a ProgressBar.
  void Show(const std::string& what, int64_t done, int64_t total);
  void Clear();

 private:
  void Draw(const std::string& line);
  bool shown_ = false;
  const bool enabled_;
};

/// A text table with aligned columns.
///
///   Table table({{"kernel"}, {"time", Table::kRight}});
///   table.Add({"MatMul+Add", "12.0 us"});
///   std::fputs(table.ToString().c_str(), stdout);
///
/// Cells are one line each (OneLine). On a terminal that is too narrow, columns are cut or left
/// out, and a line below names those left out. Otherwise all columns are complete.
class Table {
 public:
  enum Align : uint8_t { kLeft, kRight, kCut };  // kCut: left, cut at the width of the terminal
  struct Column {
    std::string heading;
    Align align = kLeft;
    int spare = 0;  // > 0: left out if there is no room, the highest number first
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  /// Needs as many cells as there are columns.
  void Add(std::vector<std::string> cells);
  std::string ToString() const { return ToString(StdoutColumns()); }
  /// For a terminal of this width; 0: not a terminal.
  std::string ToString(size_t terminal_columns) const;

 private:
  std::vector<size_t> Widths() const;
  std::vector<bool> Fitting(size_t terminal_columns) const;
  size_t LongestHeading(const std::vector<bool>& shown, size_t terminal_columns) const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace fusion
