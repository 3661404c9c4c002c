#pragma once

#include <string>
#include <vector>

namespace fusion {

/// A chart of horizontal bars under their labels, for an HTML page.
///
///   BarChart chart{.title = "Time", .series = {"real", "estimated"}};
///   chart.rows.push_back({"MatMul+Add", {{707, "707 us"}, {690, "690 us"}}});
///   page += ToSvg(chart);
struct BarChart {
  struct Bar {
    double value = 0;  // length, relative to the longest; negative counts as 0
    std::string text;  // shown beside the bar
  };
  struct Row {
    std::string label;
    std::vector<Bar> bars;  // one for each series
  };
  std::string title;  // for screen readers
  std::vector<std::string> series;
  std::vector<Row> rows;
};

/// The chart as an <svg> element, which is well-formed XML. The page defines the colours of the
/// series: classes `.s0`, `.s1`, ... Labels are cut to the width of the chart and complete in a
/// tool tip; nothing overlaps.
std::string ToSvg(const BarChart& chart);

}  // namespace fusion
