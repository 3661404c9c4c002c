#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fusion {

/// Once at start: no colours, wherever the text goes.
void ForbidColour();
/// True if text for people goes there in colour: a terminal, and ForbidColour was not called.
bool ColourOnStdout();

/// `text` in bold where ColourOnStdout().
std::string Bold(const std::string& text);
/// In green or red.
std::string Good(const std::string& text);
std::string Bad(const std::string& text);

/// A line on stderr that says what is being waited for; only if stderr is a terminal. The next one
/// replaces it; the destructor removes it.
class Progress {
 public:
  Progress();
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void Show(const std::string& what);
  void Clear();

 private:
  bool shown_ = false;
  const bool enabled_;
};

/// Rows under aligned headings, for people.
///
///   Table table({{"kernel"}, {"time", Table::kRight}});
///   table.Add({"MatMul+Add", "12.0 us"});
///   std::fputs(table.ToString().c_str(), stdout);
///
/// What is no printable ASCII in a cell comes out escaped.
class Table {
 public:
  enum Align : uint8_t { kLeft, kRight, kCut };  // kCut: cut off at the width of the terminal
  struct Column {
    std::string heading;
    Align align = kLeft;
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  /// As many cells as columns.
  void Add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  std::string ToString() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

/// Numbers for people.
std::string HumanMicroseconds(double us);  // "812 us", "12.3 ms", "1.52 s"
std::string HumanMilliseconds(double ms);
std::string HumanFlops(double flops);   // "1.81 Gflop"
std::string HumanPercent(double part);  // 0.774 -> "77.4 %"
std::string ShortNumber(double value);  // "1.2e-06", "0.775"

}  // namespace fusion
