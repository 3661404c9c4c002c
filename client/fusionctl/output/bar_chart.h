#pragma once

#include <string>
#include <vector>

namespace fusion {

/// Horizontal bars under their labels, for a page.
///
///   BarChart chart{.title = "Time", .series = {"real", "estimated"}};
///   chart.rows.push_back({"MatMul+Add", {{707, "707 us"}, {690, "690 us"}}});
///   page += ToSvg(chart);
struct BarChart {
  struct Bar {
    double value = 0;  // its length, in proportion to the longest; below 0 is 0
    std::string text;  // beside it
  };
  struct Row {
    std::string label;
    std::vector<Bar> bars;  // by series
  };
  std::string title;  // for those who do not see it
  std::vector<std::string> series;
  std::vector<Row> rows;
};

/// As an <svg> element that is well-formed XML. Colours come from the page: `.s0`, `.s1`, ... by
/// series. Labels are cut to the width of the chart, the whole one is a tool tip; nothing overlaps.
std::string ToSvg(const BarChart& chart);

}  // namespace fusion
